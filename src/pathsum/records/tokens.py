"""How records join and compare tokens."""

SPACES = " ␣Ġ▁"  # leading spaces as tokenizers print them
JOINER = "\u241f"  # joins printable tokens, none of which contains it


def word_of(token: str) -> str:
    """Return ``token`` in lower case and without leading spaces, so that tokens of the same word are equal. A token of
    spaces alone is returned unchanged."""
    return token.lstrip(SPACES).casefold() or token
