"""Attention to the first token, and the loss without it (docs/framework.md §5.15); words in attention_sinks.md."""

from typing import Any

import pandas as pd

from pathsum.claims.formatting import head_label
from pathsum.report import told
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals

TITLE = "Attention sinks"
SINK = 0.3  # mean attention to the first token above which a head counts as using it as a sink; about 15 times chance


def facts(t: Frames) -> dict[str, Any]:
    """Return which heads use the first token as a sink, which need it, and the rows of the table."""
    rows = t.attention_sinks
    if rows.empty:
        return {}
    heads = rows[rows["head"].notna()]
    most = rows.index.isin(heads.groupby("cell")["attention"].idxmax())
    return {
        "threshold": SINK,
        "heads": heads,
        "sinks": heads["attention_low"] > SINK,
        "needing": heads["forbidden_low"] > heads["control_high"].clip(lower=0),
        "shown": rows[most | rows["head"].isna()],
    }


def table(found: dict[str, Any]) -> Table:
    rows = found["shown"]
    places = zip(rows["layer"], rows["head"], strict=True)
    shown = {
        "model": rows["cell"],
        "heads": [f"layer {layer}" if pd.isna(head) else head_label(layer, int(head)) for layer, head in places],
        "attention": intervals(rows, "attention"),
        "uniform attention": rows["chance"],
        "BOS value zeroed (nats per token)": intervals(rows, "silenced_nats"),
        "BOS masked (nats per token)": intervals(rows, "forbidden_nats"),
        "second token masked (nats per token)": intervals(rows, "control_nats"),
    }
    caption = (
        "The head of each model that attends most to BOS, and all heads of each layer: mean attention to BOS, and rise "
        "of the held-out loss."
    )
    return told.table(
        pd.DataFrame(shown), caption, {"uniform attention": 3}, texts=["heads"], csv="attention_sinks.csv"
    )


section = told.from_facts(TITLE, "attention_sinks", facts, table=table)
THEME = Theme(TITLE, section, few_windows=True, tables=("attention_sinks",))
