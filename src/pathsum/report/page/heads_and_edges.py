"""Data of “Heads and what they read” for one model, for heads.js: the evidence on each head, and each edge's effect."""

from typing import Any

from pathsum.claims.formatting import head_label
from pathsum.claims.one_layer import confirmed
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import CopyingRow, DistanceRow, HeadRow, LabelRow
from pathsum.records.results import Cell
from pathsum.report.figures.symbols import visible
from pathsum.report.page.roles import names

EXAMPLES = 3  # skip-trigrams of a head, and distances
SHOWN = 0.03  # least attention of a distance
METHOD = "resample"  # of all ablations here
SPELLED = {  # full names of scores, for cards, where the short names say too little
    "induction: uniform": "induction on uniform random tokens",
    "induction: by frequency": "induction on random tokens drawn by frequency",
    "induction: natural": "induction on held-out text",
}


def payload(cell: Cell) -> dict[str, Any]:
    """Return the data of ``cell``: its heads with the cost of their ablation, and its edges with that of a cut."""
    costs = {
        (r.target, r.kind, r.early_layer, r.early_head, r.layer, r.head): {
            "second": _rounded(3, r.second_copy_nats, r.second_copy_low, r.second_copy_high),
            "text": _rounded(4, r.loss_nats, r.loss_low, r.loss_high),
        }
        for r in cell.rows(AblationRow)
        if r.method == METHOD and r.patterns == "recomputed"
    }
    edges = [
        {
            "kind": e.kind,
            "early": head_label(e.early_layer, e.early_head),
            "late": head_label(e.late_layer, e.late_head),
            "composition": round(e.varying, 3),
            "chance": round(e.chance, 3),
            "composes": e.composes,
            "cost": costs.get(("edge", e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head)),
        }
        for e in cell.rows(CompositionRow)
    ]
    heads = [
        {
            "name": head_label(h.layer, h.head),
            "layer": h.layer,
            "labels": names(cell, h.layer, h.head),
            "scores": [
                [SPELLED.get(r.behaviour, r.behaviour), *_rounded(3, r.score, r.low, r.high)]
                for r in cell.rows(LabelRow)
                if (r.layer, r.head) == (h.layer, h.head) and r.labelled
            ],
            "prefix_matching": round(h.prefix_matching, 3),
            "previous_token": round(h.previous_token, 3),
            "positivity": round(h.copying_positivity, 2),
            "bos": round(h.bos, 3),
            "distances": [[r.distance, round(r.attention, 3)] for r in _farthest(cell, h)],
            "raises": next((_rounded(2, r.attended_nats, r.attended_low, r.attended_high) for r in _of(cell, h)), None),
            "cost": costs.get(("head", None, None, None, h.layer, h.head)),
            "examples": [
                [visible(r.source), visible(r.destination), visible(r.out)]
                for r in confirmed(cell)
                if (r.layer, r.head) == (h.layer, h.head)
            ][:EXAMPLES],
        }
        for h in cell.rows(HeadRow)
    ]
    return {"name": cell.name, "heads": heads, "edges": edges}


def _farthest(cell: Cell, h: HeadRow) -> list[DistanceRow]:
    """Return the distances to which a head attends most on text."""
    rows = [r for r in cell.rows(DistanceRow) if (r.layer, r.head) == (h.layer, h.head) and r.attention >= SHOWN]
    return sorted(rows, key=lambda r: -r.attention)[:EXAMPLES]


def _of(cell: Cell, h: HeadRow) -> list[CopyingRow]:
    return [r for r in cell.rows(CopyingRow) if (r.layer, r.head) == (h.layer, h.head)]


def _rounded(digits: int, *values: float) -> list[float]:
    return [round(value, digits) for value in values]
