"""The section on the exactness check of the path expansion (docs/framework.md §2.2)."""

from __future__ import annotations

from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.exactness import ExactnessRow
from pathsum.records.results import Cell, Results
from pathsum.report.theme import Figures, Theme

TITLE = "Reliability of the results"


def section(results: Results, _: Figures) -> Section:
    """Show the largest relative error of the sums over paths for every model."""
    table = Table.of(
        results.cells.values(),
        MODEL,
        Column("checkpoints", lambda c: len(c.rows(ExactnessRow))),
        Column("largest relative error, logits", lambda c: _worst(c, "max_relative_error")),
        Column("largest relative error, attention scores", lambda c: _worst(c, "scores_max_relative_error")),
        Text("hash of the weights", lambda c: c.summary.weights_hash[:12], kind="token"),
        caption="Exactness of the path expansion over all checkpoints of each model, in float64: of the logits as a "
        "sum over paths, and of the attention scores after the first layer as a sum over pairs of paths.",
        csv="exactness.csv",
    )
    if not results.cells:
        return Section(TITLE, ())
    worst = max(c.summary.exactness for c in results.cells.values())
    text = (
        "With attention patterns and norm scales fixed, the logits are exactly the sum over all paths, and the "
        "attention scores of every head after the first layer are exactly the sum over pairs of paths. The largest "
        f"relative error over all checkpoints of all models is {_error(worst)} (float64). Tables over tokens, such as "
        "those of OV and QK circuits, read each embedding at its own norm scale. This is exact for models without a "
        "norm or without layers. For others, it is in general an approximation."
    )
    return Section(TITLE, (text,), (table,))


def _worst(cell: Cell, field: str) -> str:
    errors = [e for r in cell.rows(ExactnessRow) if (e := getattr(r, field)) is not None]
    return _error(max(errors)) if errors else "–"


def _error(value: float) -> str:
    return f"{value:.1e}".replace("-", "−")


THEME = Theme(TITLE, section, tables=("exactness",))
