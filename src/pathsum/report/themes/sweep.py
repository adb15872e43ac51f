"""Every model of the grid, by depth, heads and seed."""

from __future__ import annotations

from pathsum.claims.formatting import layers_label, millions, number, plural
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures.sweep import sweep, widths
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "The sweep"


def section(results: Results, figures: Figures) -> Section:
    """How many models there are, and a row for each."""
    return Section(TITLE, _text(results), (*drawn(figures, "sweep", "widths"), *_table(results)))


def _text(results: Results) -> tuple[str, ...]:
    counts = [f"{len(results.with_layers(n))} with {layers_label(n)}" for n in results.layer_counts()]
    missing = ", ".join(results.missing) or "none"
    return (f"{plural(len(results.cells), 'model')}: {', '.join(counts) or 'none'}. Declared but missing: {missing}.",)


def _table(results: Results) -> tuple[Table, ...]:
    """One row a model."""
    if not results.cells:
        return ()
    columns = (
        "cell",
        "layers",
        "heads",
        "seed",
        "tokens",
        "held-out loss (nats)",
        "loss drop (nats)",
        "repeat: first / guessing / second (nats)",
        "repeat: top-1",
        "prefix matching",
        "previous token",
        "copying heads",
        "bigram correlation (unigram's; partial)",
        "onset (tokens)",
    )
    fields = tuple(_row(c) for c in results.cells.values())
    return (Table("Every model; head scores are the best head's.", columns, fields, "cells.csv"),)


def _row(cell: Cell) -> tuple[Entry, ...]:
    s = cell.summary
    copying = "–" if s.copying_heads is None else f"{s.copying_heads} of {len(cell.rows(HeadRow))}"
    losses = (s.repeat_first_loss_nats, s.repeat_guessing_nats, s.repeat_second_loss_nats)
    return (
        Entry(s.cell),
        *(Entry(str(v), "number") for v in (s.n_layers, s.n_heads, s.seed)),
        Entry(millions(s.tokens_seen), "number"),
        _n(s.val_loss_nats, 3),
        _n(s.in_context_loss_drop_nats),
        Entry(" / ".join(map(number, losses)), "number"),
        _n(s.repeat_top1),
        _n(s.prefix_matching, 3),
        _n(s.previous_token),
        Entry(copying, "number"),
        Entry(
            f"{number(s.bigram_correlation)} ({number(s.unigram_correlation)}; {number(s.bigram_partial_correlation)})",
            "number",
        ),
        Entry("none" if s.onset_tokens is None else millions(s.onset_tokens), "number"),
    )


def _n(value: float | None, digits: int = 2) -> Entry:
    return Entry(number(value, digits), "number")


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
