"""Sample sizes (n): how much data the value of each model rests on, computed from the records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from pathsum.claims.chance import UNKNOWN, or_unknown
from pathsum.records.results import Cell, Results

Sample = Callable[[Results, Sequence[Cell]], str]  # the models are those that the claim concerns


def held_out(results: Results, _: Sequence[Cell]) -> str:
    """Format the numbers of held-out windows on which losses are judged and of the documents that contain them."""
    corpus = results.corpus
    return f"{corpus.judged_windows:,} held-out windows of {corpus.judged_documents:,} documents"


def over(count: Callable[[Cell], Iterable[int | None]], of: str) -> Sample:
    """Return a function that formats the range of the numbers that ``count`` gives for the models, followed by
    ``of``."""

    def sample(_: Results, cells: Sequence[Cell]) -> str:
        found = [n for cell in cells for n in count(cell) if n is not None]
        ends = dict.fromkeys((f"{min(found):,}", f"{max(found):,}")) if found else [UNKNOWN]
        return or_unknown(" to ".join(ends), f" {of}")

    return sample


def setting(name: str, of: str, most: Callable[[Results], float] = lambda _: math.inf) -> Sample:
    """Return a function that formats the setting ``name`` of extraction, limited to at most ``most``, followed by
    ``of``. The function returns a dash if the provenance does not contain the setting."""

    def sample(results: Results, _: Sequence[Cell]) -> str:
        wanted = results.provenance.get("extract", {}).get(name)
        return UNKNOWN if wanted is None else f"{min(wanted, most(results)):,} {of}"

    return sample


TEXT = setting("windows", "held-out windows", lambda results: results.corpus.judged_windows)
REPEATS = setting("repeated_windows", "windows of repeated random tokens")
EVALUATIONS = over(lambda cell: [len(cell.log)], "evaluations")
