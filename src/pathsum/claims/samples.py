"""What a card prints beside the value of a claim, as text from the records: its chance level (what the measure would be
without the effect) and the sample size of each model (n)."""

import math
from collections.abc import Callable, Iterable, Sequence

from pathsum.claims.formatting import span
from pathsum.records.heads import LabelRow
from pathsum.records.results import Cell, Results

UNKNOWN = "–"
Level = Callable[[Results], str]
Sample = Callable[[Results, Sequence[Cell]], str]  # the models are those that the claim concerns


def or_unknown(known: str, after: str, before: str = "") -> str:
    """Return ``known`` with ``before`` and ``after`` around it, or only a dash if it is a dash."""
    return UNKNOWN if known == UNKNOWN else f"{before}{known}{after}"


def uniform(behaviour: str, cells: Callable[[Results], Iterable[Cell]]) -> Level:
    """Return a function that gives the score of uniform causal attention for ``behaviour`` as chance level."""

    def level(results: Results) -> str:
        levels = [r.chance for c in cells(results) for r in c.rows(LabelRow) if r.behaviour == behaviour]
        return or_unknown(span(levels, 3), " (uniform attention)")

    return level


def held_out(results: Results, _: Sequence[Cell]) -> str:
    """Format the numbers of held-out windows on which losses are judged and of the documents that contain them."""
    corpus = results.corpus
    return f"{corpus.judged_windows:,} held-out windows of {corpus.judged_documents:,} documents"


def over(count: Callable[[Cell], Iterable[int | None]], of: str) -> Sample:
    """Return a function that formats the range of what ``count`` gives for the models, followed by ``of``."""

    def sample(_: Results, cells: Sequence[Cell]) -> str:
        found = [n for cell in cells for n in count(cell) if n is not None]
        ends = dict.fromkeys((f"{min(found):,}", f"{max(found):,}")) if found else [UNKNOWN]
        return or_unknown(" to ".join(ends), f" {of}")

    return sample


def setting(name: str, of: str, most: Callable[[Results], float] = lambda _: math.inf) -> Sample:
    """Return a function that formats the setting ``name`` of extraction, at most ``most``, followed by ``of``."""

    def sample(results: Results, _: Sequence[Cell]) -> str:
        wanted = results.provenance.get("extract", {}).get(name)
        return UNKNOWN if wanted is None else f"{min(wanted, most(results)):,} {of}"

    return sample


TEXT = setting("windows", "held-out windows", lambda results: results.corpus.judged_windows)
REPEATS = setting("repeated_windows", "windows of repeated random tokens")
EVALUATIONS = over(lambda cell: [len(cell.log)], "evaluations")
