"""Onsets with more or less built in than in the grid (docs/framework.md §6.7). The words are in onset_twins.md."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pathsum.claims.onset_twins import CLAMPED, SMEARED, onset, twin
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Kind, Section
from pathsum.report.theme import Figures, Theme

TITLE = "What limits the onset"
COLUMNS = ["control", "what differs", "onset", "onset of the twin", "prefix matching", "prefix matching of the twin"]
DIFFERING = {  # by name of the control
    SMEARED: "smeared keys: every key mixes in the key of the previous token",
    CLAMPED: "clamped head: one first-layer head attends to the previous token",
    "equal_position_rates": "equal position rates: the position biases of both layers learn at one rate",
    "old_recipe": "the earlier recipe: equal and lower position rates, twice the batch, 1.5 times the tokens",
}


def facts(results: Results) -> dict[str, Any]:
    """Return the table of these controls and their twins. Empty if none has a twin in the grid."""
    rows = [
        (name, differing, onset(one), onset(plain), one.summary.prefix_matching, plain.summary.prefix_matching)
        for name, differing in DIFFERING.items()
        if (one := results.controls.get(name)) and (plain := twin(one, results))
    ]
    return {"twins": pd.DataFrame(rows, columns=COLUMNS)} if rows else {}


def section(results: Results, _: Figures) -> Section:
    """Compare each of these controls with its twin: the model of the grid with the same layers, heads and seed."""
    if not (found := facts(results)):
        return told.absent(TITLE)
    caption = "Onset of induction (tokens seen; in brackets: at the evaluations around it) and final prefix matching."
    kinds: dict[str, Kind] = {"control": "text", "what differs": "text"}
    table = told.table(found["twins"], caption, kinds=kinds, csv="controls.csv")
    return told.section(TITLE, "onset_twins", found, {"twins": table})


THEME = Theme(TITLE, section)
