"""Every model of the grid, by depth, heads and seed."""

from __future__ import annotations

from pathsum.claims.formatting import layers_label, millions, number, plural
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.records.summary import CellSummary
from pathsum.report.document import MODEL, Column, Section, Table
from pathsum.report.figures.sweep import sweep, widths
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "The sweep"


def section(results: Results, figures: Figures) -> Section:
    """How many models there are, and a row for each."""
    return Section.of(TITLE, _text(results), (*drawn(figures, "sweep", "widths"), _table(results)))


def _text(results: Results) -> tuple[str, ...]:
    counts = [f"{len(results.with_layers(n))} with {layers_label(n)}" for n in results.layer_counts()]
    missing = ", ".join(results.missing) or "none"
    return (f"{plural(len(results.cells), 'model')}: {', '.join(counts) or 'none'}. Declared but missing: {missing}.",)


def _table(results: Results) -> Table:
    return Table.of(
        results.cells.values(),
        MODEL,
        Column("layers", "summary.n_layers"),
        Column("heads", "summary.n_heads"),
        Column("seed", "summary.seed"),
        Column("tokens", lambda c: millions(c.summary.tokens_seen)),
        Column("held-out loss (nats)", "summary.val_loss_nats", 3),
        Column("loss drop (nats)", "summary.in_context_loss_drop_nats"),
        Column("repeat: first / guessing / second (nats)", lambda c: _repeat(c.summary)),
        Column("repeat: top-1", "summary.repeat_top1"),
        Column("prefix matching", "summary.prefix_matching", 3),
        Column("previous token", "summary.previous_token"),
        Column("copying heads", _copying),
        Column("bigram correlation (unigram's; partial)", lambda c: _correlations(c.summary)),
        Column("onset (tokens)", lambda c: "none" if (n := c.summary.onset_tokens) is None else millions(n)),
        caption="Every model; head scores are the best head's.",
        csv="cells.csv",
    )


def _repeat(s: CellSummary) -> str:
    return " / ".join(map(number, (s.repeat_first_loss_nats, s.repeat_guessing_nats, s.repeat_second_loss_nats)))


def _copying(cell: Cell) -> str:
    copying = cell.summary.copying_heads
    return "–" if copying is None else f"{copying} of {len(cell.rows(HeadRow))}"


def _correlations(s: CellSummary) -> str:
    return f"{number(s.bigram_correlation)} ({number(s.unigram_correlation)}; {number(s.bigram_partial_correlation)})"


THEME = Theme(
    TITLE,
    section,
    (sweep, widths),
    {"sweep": ("summary", "labels"), "widths": ("summary", "labels"), "cells": ("summary",)},
    {},
    ("phase_change",),
    opens_part=True,
    tables=("cells",),
)
