"""How much data the value of each model rests on (n), computed from the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pathsum.claims.chance import UNKNOWN, or_unknown
from pathsum.claims.formatting import span
from pathsum.records.results import Cell, Results

Sample = Callable[[Results, Sequence[Cell]], str]  # the models are those that the claim concerns


def held_out(results: Results, _: Sequence[Cell]) -> str:
    """Print the number of held-out windows on which losses are judged, and of their documents."""
    corpus = results.corpus
    return f"{corpus.judged_windows:,} held-out windows of {corpus.judged_documents:,} documents"


def over(count: Callable[[Cell], Iterable[int | None]], of: str) -> Sample:
    """Print the numbers that ``count`` returns, as a range over models. Zeros and None are left out."""
    return lambda _, cells: or_unknown(span([n for cell in cells for n in count(cell) if n], 0), f" {of}")


def setting(name: str, of: str) -> Sample:
    """Print the number ``name`` of the configuration of extraction."""
    return lambda results, _: or_unknown(str(results.provenance.get("extract", {}).get(name, UNKNOWN)), f" {of}")


TEXT = setting("windows", "held-out windows")
REPEATS = setting("repeated_windows", "windows of repeated random tokens")
EVALUATIONS = over(lambda cell: [len(cell.log)], "evaluations")
