"""Attention sinks: attention to the first token, and the loss without it."""

from __future__ import annotations

from pathsum.claims.formatting import head_label, plural
from pathsum.records.attention_sinks import AttentionSinkRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "Attention sinks"
SINK = 0.3  # attention on the first token from which a head is called an attention sink: some ten times chance


def section(results: Results, _: Figures) -> Section:
    """Show the heads of each model that attend most to the first token, and the loss without it."""
    cells = [c for c in results.cells.values() if c.rows(AttentionSinkRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model with heads.",))
    heads = [r for c in cells for r in c.rows(AttentionSinkRow) if r.head is not None]
    sinks = sum(r.attention_low > SINK for r in heads)
    needing = sum(r.forbidden_low > max(0.0, r.control_high) for r in heads)
    text = (
        f"An attention sink is a token, here the first, that heads attend to when they have nothing to move. {sinks} "
        f"of {plural(len(heads), 'head')} give more than {SINK} of their attention to the beginning-of-sequence (BOS) "
        f"token. For {needing} the held-out loss rises when that token is masked and the other keys take its share, by "
        "more than when the window's second token is masked (the control)."
    )
    return Section(TITLE, (text,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in _shown(c)],
        MODEL,
        Text("heads", lambda _, r: f"layer {r.layer}" if r.head is None else head_label(r.layer, r.head)),
        Column("attention", ("attention", "attention_low", "attention_high")),
        Column("uniform attention", "chance", 3),
        Column("value zeroed (nats per token)", ("silenced_nats", "silenced_low", "silenced_high")),
        Column("first token masked (nats per token)", ("forbidden_nats", "forbidden_low", "forbidden_high")),
        Column("second token masked (nats per token)", ("control_nats", "control_low", "control_high")),
        caption="How much the first token matters to the head of each model that attends to it most, and to each layer "
        "as a whole: mean attention on held-out text (0..1), and the rise of the loss when its value is zeroed and "
        "when it is masked, so that the other keys take its share. 95 % bootstrap intervals. Every head is in the CSV.",
        csv="attention_sinks.csv",
    )


def _shown(cell: Cell) -> list[AttentionSinkRow]:
    heads = [r for r in cell.rows(AttentionSinkRow) if r.head is not None]
    return [max(heads, key=lambda r: r.attention), *(r for r in cell.rows(AttentionSinkRow) if r.head is None)]


THEME = Theme(TITLE, section, tables=("attention_sinks",))
