"""The lab: trained models that run in the reader's browser, with the roles of their heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathsum.records.results import Results
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Lab, Section
from pathsum.report.page.roles import roles

TITLE = "The lab"


def section(exported: Mapping[str, Any], results: Results) -> Section:
    """Return the section with the lab of the ``exported`` models, and with a text on how to use it."""
    tokenizer = exported["tokenizer"]
    shown = {**tokenizer, "words": [visible(word) for word in tokenizer["words"]]}
    models = tuple({**model, **roles(results.cells[model["name"]])} for model in exported["models"])
    supported = " that the page supports" * (len(models) < len(results.layer_counts()))
    text = (
        "Trained models run in the browser: type any text, then switch off a head, cut an edge between two heads, or "
        "split a prediction or an attention score into paths. The button “Cut the key edge” removes what the induction "
        "head's keys read from the previous-token head.",
        f"There is one model of each depth{supported}: of those with the middle number of heads, the one with the "
        "lowest held-out loss. Its weights are rounded to float16.",
    )
    return Section(TITLE, text, (Lab(TITLE, {"tokenizer": shown, "passages": exported["passages"]}, models),))
