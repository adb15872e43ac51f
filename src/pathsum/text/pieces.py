"""Cut documents into pieces, where a text has too few documents."""

import re

BORDERS = (re.compile(r"\n[ \t\r]*\n"), re.compile(r"\n"), re.compile(r"\s"))  # the first that occurs is used


def cut(document: str, size: int) -> list[str]:
    """Return a document in consecutive pieces of about ``size`` characters, at most twice as many."""
    n = max(1, round(len(document) / size))
    cuts = [0]
    for i in range(1, n):
        low, at, high = (round((i + shift) * len(document) / n) for shift in (-0.5, 0, 0.5))
        found = ([match.end() for match in border.finditer(document, low, high)] for border in BORDERS)
        ends = next((ends for ends in found if ends), [at])
        cuts.append(min(ends, key=lambda end: abs(end - at)))
    parts = [document[a:b] for a, b in zip(cuts, [*cuts[1:], len(document)], strict=True)]
    return [part for part in parts if part.strip()]
