"""The lab: trained models that run in the reader's browser, with the roles of their heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathsum.claims.formatting import head_label
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import Lab, Section
from pathsum.report.symbols import visible
from pathsum.report.themes.behaviour import names

TITLE = "The lab"


def section(exported: Mapping[str, Any], results: Results) -> Section:
    """Return the section with the lab of the ``exported`` models, and with a text on how to use it."""
    tokenizer = exported["tokenizer"]
    shown = {**tokenizer, "words": [visible(word) for word in tokenizer["words"]]}
    models = tuple({**model, **roles(results.cells[model["name"]])} for model in exported["models"])
    text = (
        "Trained models run in the browser: type any text, then switch off a head, cut an edge between two heads, or "
        "split a prediction or an attention score into paths. “Cut the key edge” removes what the induction head's "
        "keys read from the previous-token head.",
        "For each depth: the model with the lowest loss among those with the middle number of heads, in float16.",
    )
    return Section(TITLE, text, (Lab(TITLE, {"tokenizer": shown, "passages": exported["passages"]}, models),))


def roles(cell: Cell) -> dict[str, Any]:
    """Return the role of each head (its first label), and the previous-token head and the induction head (None without
    one)."""
    heads = {(h.layer, h.head): names(cell, h.layer, h.head) for h in cell.rows(HeadRow)}
    previous, induction = cell.previous_token_head(), cell.formed_induction_head()
    return {
        "roles": {head_label(*place): labels[0] if labels else "no label" for place, labels in heads.items()},
        "previous": head_label(previous.layer, previous.head) if previous else None,
        "induction": head_label(induction.layer, induction.head) if induction else None,
    }
