"""The chapter on one layer. The words are in one_layer.md."""

from __future__ import annotations

from pathsum.claims.one_layer import confirmed
from pathsum.records.results import Cell, Results
from pathsum.report import told
from pathsum.report.figures.detail import in_detail
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Block, Column, Section, Table, Text
from pathsum.report.theme import Figures
from pathsum.report.themes import one_layer, softmax_competition

TITLE = "One layer: skip-trigrams, no induction"
LISTED = 6  # skip-trigrams in the table


def chapter(results: Results, figures: Figures) -> Section:
    """Describe what one layer of attention adds, and what it cannot do."""
    if not results.with_layers(1):
        return told.absent(TITLE)
    found = one_layer.facts(results)
    blocks: dict[str, Block] = {**figures, "strongest": _strongest(in_detail(results)[1])}
    return told.section(TITLE, "chapters/one_layer", found, blocks, one_layer.TITLE, softmax_competition.TITLE)


def _strongest(cell: Cell) -> Table:
    return Table.of(
        confirmed(cell)[:LISTED],
        Text("source …", lambda r: visible(r.source), kind="token"),
        Text("destination", lambda r: visible(r.destination), kind="token"),
        Text("→ output", lambda r: visible(r.out), kind="token"),
        Column("raises log P(output) by (nats)", "change_nats"),
        Column("more often than by chance (×)", "text_lift", 1),
        caption=f"Skip-trigrams of {cell.name} that both halves of the documents confirm, with the largest total "
        "effects (mean effect on the logit × occurrences).",
        source="skip_trigrams",
        fold=False,
    )
