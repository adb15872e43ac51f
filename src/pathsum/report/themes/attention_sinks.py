"""The section on attention sinks: attention to the first token, and the loss without it."""

from __future__ import annotations

from pathsum.claims.formatting import head_label, plural, span
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.attention_sinks import AttentionSinkRow
from pathsum.records.results import Cell, Results
from pathsum.report.theme import Figures, Theme

TITLE = "Attention sinks"
SINK = 0.3  # mean attention to the first token above which a head counts as using it as a sink; about 15 times chance


def section(results: Results, _: Figures) -> Section:
    """Show the effect of the first token on the loss, for the head of each model that attends to it most and for each
    layer."""
    cells = [c for c in results.cells.values() if c.rows(AttentionSinkRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model with heads.",))
    heads = [r for c in cells for r in c.rows(AttentionSinkRow) if r.head is not None]
    sinks = sum(r.attention_low > SINK for r in heads)
    needing = sum(r.forbidden_low > max(0.0, r.control_high) for r in heads)
    text = (
        "An attention sink is a token that receives attention from heads that have nothing to move. The candidate here "
        f"is the first token of the window, the beginning-of-sequence (BOS) token. In {sinks} "
        f"of {plural(len(heads), 'head')}, the 95 % interval of the attention to it lies above {SINK} (uniform causal "
        f"attention: {span([r.chance for r in heads], 3)}). In {plural(needing, 'head')}, masking the BOS token raises "
        "the held-out loss more than masking the second token of the window, the control (95 % intervals that do not "
        "overlap). Masking is done in one head at a time; the other keys take the share of the masked one."
    )
    return Section(TITLE, (text,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in _shown(c)],
        MODEL,
        Text("heads", lambda _, r: f"layer {r.layer}" if r.head is None else head_label(r.layer, r.head)),
        Column("attention", ("attention", "attention_low", "attention_high")),
        Column("uniform attention", "chance", 3),
        Column("BOS value zeroed (nats per token)", ("silenced_nats", "silenced_low", "silenced_high")),
        Column("BOS masked (nats per token)", ("forbidden_nats", "forbidden_low", "forbidden_high")),
        Column("second token masked (nats per token)", ("control_nats", "control_low", "control_high")),
        caption="Importance of the BOS token for the head of each model that attends to it most, and for each layer as "
        "a whole. Attention: mean attention to BOS on held-out text (0 to 1), next to that of uniform causal "
        "attention. Last three columns: rise of the held-out loss (every second position) when the value of BOS is "
        "set to zero, when BOS is masked so that the other keys take its share, and when the second token is masked in "
        "the same way, in this head alone or in all heads of the layer. The CSV has every head.",
        csv="attention_sinks.csv",
    )


def _shown(cell: Cell) -> list[AttentionSinkRow]:
    heads = [r for r in cell.rows(AttentionSinkRow) if r.head is not None]
    return [max(heads, key=lambda r: r.attention), *(r for r in cell.rows(AttentionSinkRow) if r.head is None)]


THEME = Theme(TITLE, section, few_windows=True, tables=("attention_sinks",))
