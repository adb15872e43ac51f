"""Attention to the first token, and the loss without it (docs/framework.md §5.15); words in attention_sinks.md."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pathsum.claims.formatting import head_label
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames, intervals

TITLE = "Attention sinks"
SINK = 0.3  # mean attention to the first token above which a head counts as using it as a sink; about 15 times chance


def facts(t: Frames) -> dict[str, Any]:
    """Return which heads use the first token as a sink, which need it, and the rows of the table."""
    rows = t.attention_sinks
    if rows.empty:
        return {}
    heads, layers = rows[rows["head"].notna()], rows[rows["head"].isna()]
    most = heads.loc[heads.groupby("cell")["attention"].idxmax()]
    order = {cell: at for at, cell in enumerate(t.cells.index)}
    return {
        "threshold": SINK,
        "heads": heads,
        "sinks": heads["attention_low"] > SINK,
        "needing": heads["forbidden_low"] > heads["control_high"].clip(lower=0),
        "shown": pd.concat([most, layers]).sort_values("cell", key=lambda cells: cells.map(order), kind="stable"),
    }


def section(results: Results, _: Figures) -> Section:
    if not (found := facts(Frames(results.cells))):
        return told.absent(TITLE)
    rows = found["shown"]
    places = zip(rows["layer"], rows["head"], strict=True)
    shown = {
        "model": rows["cell"],
        "heads": [f"layer {layer}" if pd.isna(head) else head_label(layer, int(head)) for layer, head in places],
        "attention": intervals(rows, "attention", "attention_low", "attention_high"),
        "uniform attention": rows["chance"],
        "BOS value zeroed (nats per token)": intervals(rows, "silenced_nats", "silenced_low", "silenced_high"),
        "BOS masked (nats per token)": intervals(rows, "forbidden_nats", "forbidden_low", "forbidden_high"),
        "second token masked (nats per token)": intervals(rows, "control_nats", "control_low", "control_high"),
    }
    caption = (
        "The head of each model that attends most to BOS, and all heads of each layer: mean attention to BOS (0 to 1) "
        "and rise of the loss on held-out text (every second position). The CSV has every head."
    )
    frame = pd.DataFrame(shown)
    table = told.table(frame, caption, {"uniform attention": 3}, {"heads": "text"}, csv="attention_sinks.csv")
    return told.section(TITLE, "attention_sinks", found, {"table": table})


THEME = Theme(TITLE, section, few_windows=True, tables=("attention_sinks",))
