"""Comparison and joining of tokens in records."""

from __future__ import annotations

SPACES = " ␣Ġ▁"  # a leading space, as tokenizers print it


JOINER = "\u241f"  # joins printable tokens, none of which holds it


def word_of(token: str) -> str:
    """Strip case and a leading space: tokens that differ in these alone are the same word."""
    return token.lstrip(SPACES).casefold() or token
