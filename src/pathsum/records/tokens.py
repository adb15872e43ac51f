"""How records join and compare tokens."""

import re
import unicodedata

SPACES = " ␣"  # leading spaces as tokens are printed
JOINER = "\u241f"  # joins printable tokens, none of which contains it


def word_of(token: str) -> str:
    """Return ``token`` without case, Unicode form, leading spaces and the marks of pieces of words ("##", "</w>")."""
    word = re.sub(r"^##(?=[^\W_])", "", token.lstrip(SPACES).removesuffix("</w>"))
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", word).casefold())
    return unicodedata.normalize("NFC", folded.replace("i\u0307", "i")) or token  # İ is a capital i
