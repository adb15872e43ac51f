"""Records in, figures out. Nothing is computed but selection and the aggregates that a line or an interval shows."""

from __future__ import annotations

from pathsum.records.results import Results
from pathsum.report.figures.base import Figure
from pathsum.report.figures.behaviour import logit_lens, trajectories
from pathsum.report.figures.bigrams import bigrams
from pathsum.report.figures.calibration import calibration
from pathsum.report.figures.causal import ablations
from pathsum.report.figures.composition import composition
from pathsum.report.figures.content import content_scores
from pathsum.report.figures.controls import controls
from pathsum.report.figures.formation import formation
from pathsum.report.figures.fuzzy_matching import fuzzy_matching
from pathsum.report.figures.heads import attention_by_distance, eigenvalues
from pathsum.report.figures.induction import induction_corner
from pathsum.report.figures.joint_ablation import joint_ablation
from pathsum.report.figures.learning import headline, phase_change
from pathsum.report.figures.positions import loss_by_position
from pathsum.report.figures.score_paths import score_paths
from pathsum.report.figures.subspaces import subspaces
from pathsum.report.figures.suffixes import suffixes
from pathsum.report.figures.sweep import sweep, widths

FIGURES = (
    headline,
    bigrams,
    eigenvalues,
    attention_by_distance,
    composition,
    induction_corner,
    ablations,
    score_paths,
    suffixes,
    fuzzy_matching,
    content_scores,
    phase_change,
    loss_by_position,
    formation,
    joint_ablation,
    sweep,
    widths,
    controls,
    calibration,
    subspaces,
    logit_lens,
    trajectories,
)

__all__ = ["FIGURES", "Figure", "draw_all"]


def draw_all(results: Results) -> dict[str, Figure]:
    """Every figure that ``results`` has the records for, by name."""
    drawn = (figure(results) for figure in FIGURES)
    return {figure.name: figure for figure in drawn if figure is not None}
