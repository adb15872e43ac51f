"""Agreement of three kinds of evidence on heads and edges: weights, behavior and intervention (docs/framework.md
§10.8). Each kind answers yes or no by a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

from pathsum.claims.formatting import head_label
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.copying import CopyingRow
from pathsum.records.heads import COPYING, HeadRow, LabelRow
from pathsum.records.results import Cell, Results

NEEDED = 0.1  # nats; an edge is needed if the second copy's loss rises by more without it (edges have no control)

COPIES, INDUCTION, PREVIOUS = "copies", "induction", "previous token"
EDGES = ("K-edge", "Q-edge", "V-edge")
QUESTIONS = (COPIES, INDUCTION, PREVIOUS, *EDGES)
KINDS = {"weights": "weights", "behaviour": "behavior", "intervention": "intervention"}  # as printed
CARRIES = {  # by kind of edge: labels of an early head whose output an induction head can use
    "K": ("previous token", "two tokens back"),
    "Q": ("offset", "previous token"),
}

Place = tuple[int, int]
Edge = tuple[str, Place, Place]  # kind, early, late


class Evidence(NamedTuple):
    """The answer of one kind of evidence, and the number that it is based on."""

    says: bool  # whether the answer is yes
    value: float
    low: float | None  # lower end of the 95 % bootstrap interval; None for weights
    bar: float  # what ``low`` (weights: ``value``) must exceed for yes; for composition, chance, which does not decide


@dataclass(frozen=True)
class Judged:
    """The evidence on one question about one head or edge. A kind of evidence that was not measured is None."""

    cell: str  # name of the model
    n_layers: int
    question: str  # one of QUESTIONS
    name: str  # of the head or the edge
    weights: Evidence | None
    behaviour: Evidence | None
    intervention: Evidence | None
    text_nats: float | None  # rise of the held-out loss under the intervention

    def of(self, kind: str) -> Evidence | None:
        """Return the evidence of one kind: ``weights``, ``behaviour`` or ``intervention``."""
        return {"weights": self.weights, "behaviour": self.behaviour, "intervention": self.intervention}[kind]

    def says(self, kind: str) -> bool:
        """Return whether this kind of evidence was measured and answers yes."""
        found = self.of(kind)
        return found is not None and found.says

    @property
    def agreed(self) -> bool:
        """Return whether at least two kinds were measured and all measured kinds answer yes."""
        found = [e.says for kind in KINDS if (e := self.of(kind)) is not None]
        return len(found) > 1 and all(found)


class Agreement(NamedTuple):
    """The agreement of two kinds of evidence."""

    n: int  # heads or edges for which both kinds were measured
    share: float  # share of equal answers, 0..1
    kappa: float | None  # Cohen's κ: 1 complete agreement, 0 chance; None if all answers of both are yes, or all no


def agreement(pairs: Sequence[tuple[bool, bool]]) -> Agreement | None:
    """Return the share of equal answers and Cohen's κ = (share − chance) / (1 − chance) (docs/framework.md §10.8), from
    pairs of answers. None without pairs."""
    n = len(pairs)
    if not n:
        return None
    share = Fraction(sum(a == b for a, b in pairs), n)
    first, second = Fraction(sum(a for a, _ in pairs), n), Fraction(sum(b for _, b in pairs), n)
    chance = first * second + (1 - first) * (1 - second)
    return Agreement(n, float(share), None if chance == 1 else float((share - chance) / (1 - chance)))


def answers(items: Sequence[Judged], first: str, second: str) -> list[tuple[bool, bool]]:
    """Return the pairs of answers of two kinds of evidence, for the items in which both were measured."""
    return [(a.says, b.says) for i in items if (a := i.of(first)) is not None and (b := i.of(second)) is not None]


def table(results: Results) -> pd.DataFrame:
    """Return the evidence on every head and edge of the grid's models as a table, one row per ``Judged``."""
    about = ("cell", "n_layers", "question", "name")
    rows = [
        (
            *(getattr(item, column) for column in about),
            *(part for kind in KINDS for part in item.of(kind) or (None,) * len(Evidence._fields)),
            item.text_nats,
        )
        for cell in results.cells.values()
        for item in judged(cell)
    ]
    evidence = [f"{kind}_{part}" for kind in KINDS for part in ("says", "value", "low", "bar")]
    data = pd.DataFrame(rows, columns=[*about, *evidence, "text_nats"])
    return data.drop(columns="weights_low").convert_dtypes()


# ---- each head and edge ---------------------------------------------------------------------------------------------


def judged(cell: Cell) -> list[Judged]:
    """Return the evidence on each head, for each question that applies to it, and on each edge. Empty without heads."""
    return [*_heads(cell), *_edges(cell)]


def _heads(cell: Cell) -> Iterator[Judged]:
    ablated = {
        ((a.layer, a.head), a.method): a
        for a in cell.rows(AblationRow)
        if (a.target, a.patterns) == ("head", "recomputed")
    }
    composed, best = _composed(cell), cell.formed_induction_head()
    for h in cell.rows(HeadRow):
        place = (h.layer, h.head)
        without, control = ablated.get((place, "resample")), ablated.get((place, "rotated"))
        needed = None if control is None else _above(without, max(0.0, control.second_copy_high))
        asked: dict[str, tuple[Evidence | None, Evidence | None]] = {
            COPIES: (_positive(h.copying_positivity), _copies(cell, place))
        }
        if h.qk_matching_positivity is not None:
            both = min(h.qk_matching_positivity, h.copying_positivity)
            asked[INDUCTION] = (_positive(both), _labelled(cell, place, "induction"))
        if h.layer == 0 and cell.summary.n_layers > 1:
            read = None if best is None else composed.get(("K", place, (best.layer, best.head)))
            asked[PREVIOUS] = (_composes(read), _labelled(cell, place, "previous token"))
        for question, evidence in asked.items():
            yield _judged(cell, question, head_label(*place), *evidence, needed, without)


def _edges(cell: Cell) -> Iterator[Judged]:
    ablated = {
        (a.kind, (a.early_layer, a.early_head), (a.layer, a.head)): a
        for a in cell.rows(AblationRow)
        if (a.target, a.patterns, a.method) == ("edge", "recomputed", "resample")
    }
    for (kind, early, late), score in _composed(cell).items():
        without = ablated.get((kind, early, late))
        carries = [e for label in CARRIES.get(kind, ()) if (e := _labelled(cell, early, label)) is not None]
        matches = _labelled(cell, late, "induction")
        both = min(max(carries, key=_margin), matches, key=_margin) if carries and matches is not None else None
        name = f"{head_label(*early)} → {head_label(*late)}"
        yield _judged(cell, f"{kind}-edge", name, _composes(score), both, _above(without, NEEDED), without)


def _judged(
    cell: Cell,
    question: str,
    name: str,
    weights: Evidence | None,
    behaviour: Evidence | None,
    intervention: Evidence | None,
    without: AblationRow | None,
) -> Judged:
    text_nats = None if without is None else without.loss_nats
    return Judged(cell.name, cell.summary.n_layers, question, name, weights, behaviour, intervention, text_nats)


def _composed(cell: Cell) -> dict[Edge, CompositionRow]:
    return {(e.kind, (e.early_layer, e.early_head), (e.late_layer, e.late_head)): e for e in cell.rows(CompositionRow)}


# ---- each kind of evidence ------------------------------------------------------------------------------------------


def _positive(value: float) -> Evidence:
    return Evidence(value > COPYING, value, None, COPYING)


def _composes(e: CompositionRow | None) -> Evidence | None:
    return None if e is None else Evidence(e.composes, e.value, None, e.chance)


def _copies(cell: Cell, place: Place) -> Evidence | None:
    """Return the evidence on copying by behavior on text (docs/framework.md §3.18)."""
    found = next((r for r in cell.rows(CopyingRow) if (r.layer, r.head) == place), None)
    return None if found is None else Evidence(found.copies, found.attended_nats, found.attended_low, found.bar)


def _labelled(cell: Cell, place: Place, label: str) -> Evidence | None:
    """Return the evidence on a behavior label; None if it was not tested."""
    found = [
        Evidence(r.labelled and r.distance in (None, 0), r.score, r.low, r.threshold)
        for r in cell.rows(LabelRow)
        if (r.layer, r.head) == place and r.name == label and r.threshold is not None
    ]
    return min(found, key=_margin, default=None)


def _margin(e: Evidence) -> tuple[bool, float]:
    return e.says, (e.value if e.low is None else e.low) - e.bar


def _above(without: AblationRow | None, bar: float) -> Evidence | None:
    """Return the evidence by intervention: yes if the interval of the rise of the second copy's loss under an ablation
    lies above ``bar`` nats. None without the ablation."""
    if without is None:
        return None
    return Evidence(without.second_copy_low > bar, without.second_copy_nats, without.second_copy_low, bar)
