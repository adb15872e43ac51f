"""Loss reduction by paths at frozen norm scales and at their own (docs/framework.md §2.7)."""

from typing import Any

import pandas as pd

from pathsum.report import told
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals

TITLE = "Frozen norm scales and own scales"


def facts(t: Frames) -> dict[str, Any]:
    if (rows := t.norm_scales).empty:
        return {}
    single = rows[rows["order"] == 1]
    ranks = single.groupby("cell")[["frozen_nats", "own_nats"]].corr(method="spearman")
    return {
        "single": single,
        "correlation": ranks["own_nats"].xs("frozen_nats", level=1),  # missing where the heads of a model are equal
        "most": rows.loc[rows.groupby(["cell", "order"], sort=False)["frozen_nats"].idxmax()],
    }


def table(found: dict[str, Any]) -> Table:
    most = found["most"]
    shown = {
        "model": most["cell"],
        "path": most["path"],
        "scales frozen (nats)": intervals(most, "frozen_nats"),
        "own scale (nats)": intervals(most, "own_nats"),
        "own − frozen (nats)": intervals(most, "difference_nats"),
        "random directions, frozen (nats)": most["frozen_control_nats"],
        "random directions, own scale (nats)": most["own_control_nats"],
    }
    caption = (
        "Loss reduction (nats per token, 95 % intervals) by the head and the pair of heads of each model that reduce "
        "the loss most at frozen scales."
    )
    return told.table(pd.DataFrame(shown), caption, texts=["path"], csv="norm_scales.csv")


section = told.from_facts(TITLE, "norm_scales", facts, norm_scales=table)
THEME = Theme(TITLE, section, few_windows=True, tables=("norm_scales",))
