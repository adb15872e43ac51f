"""The chapter on zero layers. The words are in zero_layers.md."""

from __future__ import annotations

from typing import Any

from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures
from pathsum.report.themes import zero_layers
from pathsum.report.told import Frames

TITLE = "Zero layers: a bigram table"


def facts(results: Results) -> dict[str, Any]:
    """Return the losses of zero-layer models, and how W_U W_E of deeper ones does alone."""
    t = Frames(results.cells)
    deep, alone = t.cells.query("n_layers > 0"), t.lens.query("layers == 0 and n_layers > 0")["loss_nats"]
    return {**zero_layers.facts(results), "deep": deep, "alone": alone}


def chapter(results: Results, figures: Figures) -> Section:
    """Compare zero-layer models with the bigram statistics of the text."""
    if not results.with_layers(0):
        return told.absent(TITLE)
    return told.section(TITLE, "chapters/zero_layers", facts(results), figures, zero_layers.TITLE)
