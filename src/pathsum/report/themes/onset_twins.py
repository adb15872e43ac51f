"""Onsets with more or less built in than in the grid (docs/framework.md §6.7)."""

import pandas as pd

from pathsum.claims.onset_twins import CLAMPED, SMEARED, onset, twin
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures, Theme

TITLE = "What limits the onset"
DIFFERING = {  # by name of the control
    SMEARED: "smeared keys: every key mixes in the key of the previous token",
    CLAMPED: "clamped head: one first-layer head attends to the previous token",
    "equal_position_rates": "equal position rates: the position biases of both layers learn at one rate",
    "old_recipe": "the earlier recipe: equal and lower position rates, twice the batch, 1.5 times the tokens",
}


def section(results: Results, _: Figures) -> Section:
    """Compare controls with their twins, the models of the grid with the same layers, heads and seed."""
    rows = [
        {
            "control": name,
            "what differs": differing,
            "onset": onset(one),
            "onset of the twin": onset(plain),
            "prefix matching": one.summary.prefix_matching,
            "prefix matching of the twin": plain.summary.prefix_matching,
        }
        for name, differing in DIFFERING.items()
        if (one := results.controls.get(name)) and (plain := twin(one, results))
    ]
    if not rows:
        return told.absent(TITLE)
    caption = "Onset of induction (tokens seen; in brackets: at the evaluations around it) and final prefix matching."
    table = told.table(pd.DataFrame(rows), caption, texts=["control", "what differs"], csv="controls.csv")
    return told.section(TITLE, "onset_twins", {}, {"twins": table})


THEME = Theme(TITLE, section)
