"""Find the names that repeat within a window (docs/framework.md §5.16)."""

import re
from collections.abc import Sequence
from itertools import groupby

from pathsum.records.tokens import JOINER


def repeated_names(tokens: Sequence[str]) -> dict[str, list[range]]:
    """Return the positions past the first token of each occurrence, for every name that occurs more than once.

    A name is a maximal run of letters, digits and underscores in two or more of the printable ``tokens``, with a
    capital letter. Its key is its parts by token, joined by ``JOINER``. An escaped byte counts as a space."""
    shown = [re.sub(r"\\x[0-9a-f]{2}", " ", token) for token in tokens]
    owner = [i for i, token in enumerate(shown) for _ in token]
    found: dict[str, list[range]] = {}
    for word in re.finditer(r"\w+", "".join(shown)):
        at = owner[word.start() : word.end()]
        if at[0] < at[-1] and any(map(str.isupper, word[0])):
            parts = groupby(zip(at, word[0], strict=True), key=lambda pair: pair[0])
            name = JOINER.join("".join(letter for _, letter in part) for _, part in parts)
            found.setdefault(name, []).append(range(at[0] + 1, at[-1] + 1))
    return {name: places for name, places in found.items() if len(places) > 1}
