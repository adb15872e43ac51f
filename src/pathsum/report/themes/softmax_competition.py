"""Why one layer cannot do induction (docs/framework.md §5.14). The words are in softmax_competition.md."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames, intervals, labels

TITLE = "Softmax competition"
PLACES = {"after": "token after the match", "match": "the match itself", "before": "token before the match"}


def facts(t: Frames) -> dict[str, Any]:
    """Return the rows of each place, for the head that prefers the token after the match most in each model of one or
    two layers. Empty without such models."""
    rows = t.softmax_competition[t.softmax_competition["n_layers"].isin((1, 2))]
    if rows.empty:
        return {}
    after = rows[rows["place"] == "after"].sort_values("n_layers", kind="stable")
    best = after.loc[after.groupby("cell", sort=False)["preference_high"].idxmax(), ["cell", "layer", "head"]]
    return {place: best.merge(rows[rows["place"] == place]) for place in PLACES}


def section(results: Results, _: Figures) -> Section:
    """Show the preference that a repetition causes for the match and its neighbors, with one and with two layers."""
    if not (found := facts(Frames(results.cells))):
        return told.absent(TITLE)
    after, ends = found["after"], ("preference_nats", "preference_low", "preference_high")
    shown = {
        "model": after["cell"],
        "head": labels(after),
        **{name: intervals(found[place], *ends) for place, name in PLACES.items()},
        "change of other keys (nats)": after["inhibition_nats"],
    }
    caption = (
        "Preference (nats, 95 % intervals over windows; chance is 0) of the head of each model whose interval for the "
        "token after the match has the highest upper end."
    )
    table = told.table(pd.DataFrame(shown), caption, csv="softmax_competition.csv")
    return told.section(TITLE, "softmax_competition", found, {"softmax_competition": table})


THEME = Theme(TITLE, section, tables=("softmax_competition",))
