"""Agreement of weights, behaviour and intervention on heads and edges: each is yes or no, by a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from pathsum.claims.formatting import head_label
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import COPYING, HeadRow, LabelRow
from pathsum.records.results import Cell, Results

NEEDED = 0.1  # nats: rise of the loss without an edge, which has no control of its own

COPIES, INDUCTION, PREVIOUS = "copies", "induction", "previous token"
EDGES = ("K-edge", "Q-edge", "V-edge")
QUESTIONS = (COPIES, INDUCTION, PREVIOUS, *EDGES)
KINDS = ("weights", "behaviour", "intervention")
CARRIES = {  # behaviours that make a head one for induction to read
    "K": ("previous token", "two tokens back"),
    "Q": ("offset", "previous token"),
}

Place = tuple[int, int]
Edge = tuple[str, Place, Place]  # kind, early, late


@dataclass(frozen=True)
class Evidence:
    """One yes or no, and the number behind it."""

    says: bool
    value: float
    low: float | None  # 95 % bootstrap over windows; None of weights
    bar: float  # what ``low``, of weights the value, must exceed


@dataclass(frozen=True)
class Judged:
    """What each kind of evidence says of one head or edge; None where it was not measured."""

    cell: str
    n_layers: int
    question: str
    name: str  # of the head or the edge
    weights: Evidence | None
    behaviour: Evidence | None
    intervention: Evidence | None
    text_nats: float | None  # rise of the held-out loss under the same intervention

    def of(self, kind: str) -> Evidence | None:
        return {"weights": self.weights, "behaviour": self.behaviour, "intervention": self.intervention}[kind]

    @property
    def agreed(self) -> bool:
        """Do all that were measured, at least two, say yes?"""
        found = [e.says for e in (self.weights, self.behaviour, self.intervention) if e is not None]
        return len(found) > 1 and all(found)


@dataclass(frozen=True)
class Agreement:
    n: int  # of which both were measured
    share: float  # of which both say the same, 0..1
    kappa: float | None  # Cohen's: 1 always the same, 0 as often as by chance; None where both have one answer for all


def agreement(said: Sequence[tuple[bool, bool]]) -> Agreement | None:
    """Return how often two kinds of evidence agree, and how much more often than their counts of yes alone would
    give: κ = (share − chance) / (1 − chance). None without answers."""
    n = len(said)
    if not n:
        return None
    share = sum(a == b for a, b in said) / n
    first, second = sum(a for a, _ in said) / n, sum(b for _, b in said) / n
    chance = first * second + (1 - first) * (1 - second)
    return Agreement(n, share, None if chance == 1 else (share - chance) / (1 - chance))


def answers(items: Sequence[Judged], first: str, second: str) -> list[tuple[bool, bool]]:
    """What two kinds of evidence say where both were measured."""
    both = [(item.of(first), item.of(second)) for item in items]
    return [(a.says, b.says) for a, b in both if a is not None and b is not None]


def table(results: Results) -> pd.DataFrame:
    """Every head and edge of every model."""
    columns = ["cell", "n_layers", "question", "name"]
    parts = ("says", "value", "low", "bar")
    rows = [
        (
            *(getattr(item, column) for column in columns),
            *(None if (e := item.of(kind)) is None else getattr(e, part) for kind in KINDS for part in parts),
            item.text_nats,
        )
        for cell in results.cells.values()
        for item in judged(cell)
    ]
    columns += [f"{kind}_{part}" for kind in KINDS for part in parts]
    return pd.DataFrame(rows, columns=[*columns, "text_nats"]).drop(columns="weights_low").convert_dtypes()


# ---- each head and edge ---------------------------------------------------------------------------------------------


def judged(cell: Cell) -> list[Judged]:
    """Judge each head on each question that applies, and each edge. Empty without heads."""
    return [*_heads(cell), *_edges(cell)]


def _heads(cell: Cell) -> Iterator[Judged]:
    ablated = {((a.layer, a.head), a.method): a for a in cell.rows(AblationRow) if _counts(a, "head")}
    composed, best = _composed(cell), cell.formed_induction_head()
    for h in cell.rows(HeadRow):
        place = (h.layer, h.head)
        without = ablated.get((place, "resample"))
        needed = _above_control(without, ablated.get((place, "turned")))
        asked: list[tuple[str, Evidence | None, Evidence | None]] = [
            (COPIES, _positive(h.copying_positivity), _copies(cell, place))
        ]
        if h.qk_matching_positivity is not None:
            both = min(h.qk_matching_positivity, h.copying_positivity)
            asked.append((INDUCTION, _positive(both), _called(cell, place, "induction")))
        if h.layer == 0 and cell.summary.n_layers > 1:
            read = None if best is None else composed.get(("K", place, (best.layer, best.head)))
            asked.append((PREVIOUS, _composes(read), _called(cell, place, "previous token")))
        for question, weights, behaviour in asked:
            yield _judged(cell, question, head_label(*place), (weights, behaviour, needed), without)


def _edges(cell: Cell) -> Iterator[Judged]:
    ablated = {
        (a.kind, (a.early_layer, a.early_head), (a.layer, a.head)): a
        for a in cell.rows(AblationRow)
        if _counts(a, "edge") and a.method == "resample"
    }
    for edge, score in _composed(cell).items():
        kind, early, late = edge
        without = ablated.get(edge)
        carried = (_called(cell, early, name) for name in CARRIES.get(kind, ()))
        reads = max((e for e in carried if e is not None), key=_margin, default=None)
        behaviour = _weaker(reads, _called(cell, late, "induction"))
        needed = None if without is None else _above(without, NEEDED)
        name = f"{head_label(*early)} → {head_label(*late)}"
        yield _judged(cell, f"{kind}-edge", name, (_composes(score), behaviour, needed), without)


def _judged(
    cell: Cell,
    question: str,
    name: str,
    evidence: tuple[Evidence | None, Evidence | None, Evidence | None],
    without: AblationRow | None,
) -> Judged:
    text_nats = None if without is None else without.loss_nats
    return Judged(cell.name, cell.summary.n_layers, question, name, *evidence, text_nats)


def _composed(cell: Cell) -> dict[Edge, CompositionRow]:
    return {(e.kind, (e.early_layer, e.early_head), (e.late_layer, e.late_head)): e for e in cell.rows(CompositionRow)}


def _counts(a: AblationRow, target: str) -> bool:
    return a.target == target and a.patterns == "recomputed"


# ---- each kind of evidence ------------------------------------------------------------------------------------------


def _positive(value: float) -> Evidence:
    return Evidence(value > COPYING, value, None, COPYING)


def _composes(e: CompositionRow | None) -> Evidence | None:
    return None if e is None else Evidence(e.composes, e.value, None, e.chance)


def _copies(cell: Cell, place: Place) -> Evidence | None:
    """A head that copies need not attend to the next token, so any clear excess over chance counts."""
    rows = [r for r in cell.rows(LabelRow) if (r.layer, r.head, r.behaviour) == (*place, "copies the next token")]
    return Evidence(rows[0].low > rows[0].chance, rows[0].score, rows[0].low, rows[0].chance) if rows else None


def _called(cell: Cell, place: Place, behaviour: str) -> Evidence | None:
    """Of several tests, the one that is nearest to failing. An offset must be 0: the head attends to itself."""
    found = [
        Evidence(r.labelled and r.distance in (None, 0), r.score, r.low, r.threshold)
        for r in cell.rows(LabelRow)
        if (r.layer, r.head) == place and r.name == behaviour and r.threshold is not None
    ]
    return min(found, key=_margin, default=None)


def _weaker(first: Evidence | None, second: Evidence | None) -> Evidence | None:
    """Both must hold: the one that does not, or is nearest to it."""
    return None if first is None or second is None else min(first, second, key=_margin)


def _margin(e: Evidence) -> tuple[bool, float]:
    return e.says, (e.value if e.low is None else e.low) - e.bar


def _above_control(without: AblationRow | None, control: AblationRow | None) -> Evidence | None:
    return None if without is None or control is None else _above(without, max(0.0, control.second_copy_high))


def _above(without: AblationRow, bar: float) -> Evidence:
    return Evidence(without.second_copy_low > bar, without.second_copy_nats, without.second_copy_low, bar)
