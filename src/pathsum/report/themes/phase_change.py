"""Learning: the in-context loss drop and the phase change (docs/framework.md §6). The words are in phase_change.md."""

from __future__ import annotations

from typing import Any

from pathsum.behavior.in_context import LONG_CONTEXT
from pathsum.claims.formatting import layers_label
from pathsum.claims.phase_change import BEFORE
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures.behaviour import trajectories
from pathsum.report.figures.learning import phase_change
from pathsum.report.figures.positions import loss_by_position
from pathsum.report.page.document import Section
from pathsum.report.theme import DetectorText, Figures, Theme
from pathsum.report.told import Frames

TITLE = "Learning"


def facts(t: Frames) -> dict[str, Any]:
    """Return the summaries of the models by depth; ``adapted`` only of windows too short for the positions of ICL."""
    depths = {layers_label(n): t.cells[t.cells["n_layers"] == n] for n in sorted(set(t.cells["n_layers"]))}
    short = t.cells["n_ctx"].min() < LONG_CONTEXT
    return {
        "depths": depths,
        "above": t.cells["repeat_first_loss_nats"] > t.cells["repeat_guessing_nats"],
        "adapted": {n: rows for n, rows in depths.items() if short and rows["icl_loss_drop_nats"].notna().any()},
        "late": t.cells["icl_late_token"],
        "before": BEFORE,
    }


def section(results: Results, figures: Figures) -> Section:
    """Show the learning curves of every depth, and the loss drop at two pairs of positions."""
    return told.section(TITLE, "phase_change", facts(Frames(results.cells)), figures)


THEME = Theme(
    TITLE,
    section,
    (phase_change, loss_by_position, trajectories),
    {
        "headline": ("log", "summary"),
        "phase_change": ("log", "summary"),
        "loss_by_position": ("log", "summary"),
        "trajectories": ("token_losses",),
    },
    {
        "phase_change": DetectorText(
            "phase change",
            "when the loss on copies passes half of its fall for the last time; the onset of prefix matching, to "
            "within one evaluation",
        )
    },
    ("phase_change",),
    tables=("learning",),
)
