"""The labels of a head in words, and the roles of the heads of a model."""

from typing import Any

from pathsum.claims.formatting import head_label
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.results import Cell


def names(cell: Cell, layer: int, head: int) -> list[str]:
    """List the labels of a head."""
    names = [
        r.name if r.distance is None else f"attends {r.distance} back" if r.distance else "attends to itself"
        for r in cell.rows(LabelRow)
        if (r.layer, r.head) == (layer, head) and r.labelled and r.distance not in (1, 2)
    ]
    return list(dict.fromkeys(names))


def roles(cell: Cell) -> dict[str, Any]:
    """Return the role of each head (its first label, or "no label"), the previous-token head (None without heads) and
    the induction head (None if none has formed)."""
    heads = {(h.layer, h.head): names(cell, h.layer, h.head) for h in cell.rows(HeadRow)}
    previous, induction = cell.previous_token_head(), cell.formed_induction_head()
    return {
        "roles": {head_label(*place): labels[0] if labels else "no label" for place, labels in heads.items()},
        "previous": head_label(previous.layer, previous.head) if previous else None,
        "induction": head_label(induction.layer, induction.head) if induction else None,
    }
