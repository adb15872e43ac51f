"""Why one layer cannot do induction (docs/framework.md §5.14)."""

from typing import Any

import pandas as pd

from pathsum.report import told
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals, labels

TITLE = "Softmax competition"
PLACES = {"after": "token after the match", "match": "the match itself", "before": "token before the match"}


def facts(t: Frames) -> dict[str, Any]:
    """Return the rows of each place, for the head of each model that prefers the token after the match most."""
    rows = t.softmax_competition[t.softmax_competition["n_layers"] > 0]
    if rows.empty:
        return {}
    after = rows[rows["place"] == "after"].sort_values("n_layers", kind="stable")
    best = after.loc[after.groupby("cell", sort=False)["preference_high"].idxmax(), ["cell", "layer", "head"]]
    return {place: best.merge(rows[rows["place"] == place]) for place in PLACES}


def table(found: dict[str, Any]) -> Table:
    after = found["after"]
    shown = {
        "model": after["cell"],
        "head": labels(after),
        **{name: intervals(found[place], "preference_nats") for place, name in PLACES.items()},
        "change of other keys (nats)": after["inhibition_nats"],
    }
    caption = (
        "Preference (nats, 95 % intervals over windows; chance is 0) of the head of each model with the highest upper "
        "end for the token after the match."
    )
    return told.table(pd.DataFrame(shown), caption, csv="softmax_competition.csv")


section = told.from_facts(TITLE, "softmax_competition", facts, softmax_competition=table)
THEME = Theme(TITLE, section, tables=("softmax_competition",))
