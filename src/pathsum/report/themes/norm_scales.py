"""Loss reduction by paths at frozen norm scales and at their own (docs/framework.md §2.7). Words: norm_scales.md."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pathsum.claims.formatting import number
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames, intervals

TITLE = "Frozen norm scales and own scales"


def facts(t: Frames) -> dict[str, Any]:
    """Return what text and table show, over the models with a norm. Empty without such models."""
    if (rows := t.norm_scales).empty:
        return {}
    single = rows[rows["order"] == 1]
    ranks = single.groupby("cell")[["frozen_nats", "own_nats"]].corr(method="spearman")
    return {
        "single": single,
        "correlation": ranks["own_nats"].xs("frozen_nats", level=1),  # missing where the heads of a model are equal
        "most": rows.loc[rows.groupby(["cell", "order"], sort=False)["frozen_nats"].idxmax()],
    }


def section(results: Results, _: Figures) -> Section:
    """Compare the loss reduction by paths at frozen norm scales and at their own scale, for models with a norm."""
    if not (found := facts(Frames(results.cells))):
        return told.absent(TITLE)
    most = found["most"]
    controls = zip(most["frozen_control_nats"], most["own_control_nats"], strict=True)
    shown = {
        "model": most["cell"],
        "path": most["path"],
        "scales frozen (nats)": intervals(most, "frozen_nats", "frozen_low", "frozen_high"),
        "own scale (nats)": intervals(most, "own_nats", "own_low", "own_high"),
        "difference (nats)": intervals(most, "difference_nats", "difference_low", "difference_high"),
        "random directions, frozen; own (nats)": [f"{number(frozen)}; {number(own)}" for frozen, own in controls],
    }
    caption = (
        "Loss reduction (nats per token) by the head and the pair of heads of each model that reduce the loss most at "
        "frozen scales, with 95 % intervals (difference: own − frozen). Last column: with randomly rotated writes."
    )
    table = told.table(pd.DataFrame(shown), caption, kinds={"path": "text"}, csv="norm_scales.csv")
    return told.section(TITLE, "norm_scales", found, {"norm_scales": table})


THEME = Theme(TITLE, section, few_windows=True, tables=("norm_scales",))
