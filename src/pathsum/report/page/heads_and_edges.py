"""Data of “Heads and what they read” for one model: the evidence on each head, and the effect of cutting each edge.

``templates/heads/heads.js`` reads them.
"""

from __future__ import annotations

from typing import Any

from pathsum.claims.formatting import head_label
from pathsum.claims.one_layer import confirmed
from pathsum.records.ablations import AblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.results import Cell
from pathsum.report.figures.symbols import visible
from pathsum.report.page.roles import names

EXAMPLES = 3  # skip-trigrams of a head
METHOD = "resample"  # of all ablations here
SPELLED = {  # full names of scores, for cards, where the short names say too little
    "induction: uniform": "induction on uniform random tokens",
    "induction: by frequency": "induction on random tokens drawn by frequency",
    "induction: natural": "induction on held-out text",
}


def payload(cell: Cell) -> dict[str, Any]:
    """Return the data of ``cell`` for heads.js: its heads, and its edges if it has several layers."""
    ablated = [r for r in cell.rows(AblationRow) if r.method == METHOD and r.patterns == "recomputed"]
    without = {(r.layer, r.head): _costs(r) for r in ablated if r.target == "head"}
    cut = {(r.kind, *_ends(r)): _costs(r) for r in ablated if r.target == "edge"}
    edges = [
        {
            "kind": e.kind,
            "early": head_label(e.early_layer, e.early_head),
            "late": head_label(e.late_layer, e.late_head),
            "composition": round(e.varying, 3),
            "chance": round(e.chance, 3),
            "composes": e.composes,
            "cost": cut.get((e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head)),
        }
        for e in cell.rows(CompositionRow)
    ]
    heads = [_head(cell, h, without.get((h.layer, h.head))) for h in cell.rows(HeadRow)]
    return {"name": cell.name, "heads": heads, "edges": edges}


def _ends(r: AblationRow) -> tuple[int | None, int | None, int, int]:
    return r.early_layer, r.early_head, r.layer, r.head


def _costs(r: AblationRow) -> dict[str, list[float]]:
    """Return the change of the loss on the second copy and on text, each with its interval."""
    return {
        "second": [round(x, 3) for x in (r.second_copy_nats, r.second_copy_low, r.second_copy_high)],
        "text": [round(x, 4) for x in (r.loss_nats, r.loss_low, r.loss_high)],
    }


def _head(cell: Cell, h: HeadRow, cost: dict[str, list[float]] | None) -> dict[str, Any]:
    """Return the data of one head: labels with scores, cost of its ablation, and up to EXAMPLES confirmed
    skip-trigrams."""
    labels = [r for r in cell.rows(LabelRow) if (r.layer, r.head) == (h.layer, h.head) and r.labelled]
    found = [r for r in confirmed(cell) if (r.layer, r.head) == (h.layer, h.head)]
    return {
        "name": head_label(h.layer, h.head),
        "layer": h.layer,
        "labels": names(cell, h.layer, h.head),
        "scores": [
            [SPELLED.get(r.behaviour, r.behaviour), round(r.score, 3), round(r.low, 3), round(r.high, 3)]
            for r in labels
        ],
        "prefix_matching": round(h.prefix_matching, 3),
        "previous_token": round(h.previous_token, 3),
        "positivity": round(h.copying_positivity, 2),
        "cost": cost,
        "examples": [[visible(r.source), visible(r.destination), visible(r.out)] for r in found[:EXAMPLES]],
    }
