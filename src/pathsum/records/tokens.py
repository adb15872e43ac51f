"""Comparison and joining of tokens in records."""

SPACES = " ␣Ġ▁"  # leading spaces as tokenizers print them
JOINER = "\u241f"  # joins printable tokens, none of which contains it


def word_of(token: str) -> str:
    """Strip case and a leading space. Tokens that differ in these alone are the same word."""
    return token.lstrip(SPACES).casefold() or token
