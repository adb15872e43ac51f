"""The section on learning: the in-context loss drop and the phase change (docs/framework.md §6)."""

from __future__ import annotations

from pathsum.claims.formatting import layers_label, span
from pathsum.claims.phase_change import BEFORE
from pathsum.figures.behaviour import trajectories
from pathsum.figures.learning import gains, levels, onsets, phase_change
from pathsum.figures.positions import loss_by_position
from pathsum.page.document import Section
from pathsum.probes.in_context import LONG_CONTEXT
from pathsum.records.results import Results
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "Learning"


def section(results: Results, figures: Figures) -> Section:
    """Show the learning curves of every depth, and the loss drop at two pairs of positions."""
    text = (
        "The in-context loss drop is the loss early in the window minus the loss late in the window; it is positive if "
        "the model learns from its context. The onset of induction is the number of tokens seen when the best "
        "prefix matching passes half of its rise for the last time. The short part of training around it, in which "
        "induction heads form, is the phase change."
    )
    shown = drawn(figures, "phase_change", "loss_by_position", "trajectories")
    numbers = (onsets(results), gains(results), levels(results))
    return Section.of(TITLE, (text, *numbers, _two_loss_drops(results)), shown)


def _two_loss_drops(results: Results) -> str:
    """State the loss drop at the suite's positions in the window, and at the positions of ICL."""
    if all(c.summary.n_ctx >= LONG_CONTEXT for c in results.cells.values()):
        return ""
    drops = []
    for n in results.layer_counts():
        known = [c.summary for c in results.with_layers(n) if c.summary.icl_loss_drop_nats is not None]
        if known:
            ours = span([s.in_context_loss_drop_nats for s in known])
            icl = span([s.icl_loss_drop_nats for s in known if s.icl_loss_drop_nats is not None])
            drops.append(f"{layers_label(n)}: {ours} (ours), {icl} (adapted)")
    if not drops:
        return ""
    late = span([t for c in results.cells.values() if (t := c.summary.icl_late_token) is not None], 0)
    return (
        "The loss drop is measured at two pairs of positions. We take the loss at 8 to 12 % of the window "
        "minus the loss in its last tenth. Olsson et al. 2022, In-context Learning and Induction Heads (ICL), take the "
        f"50th token minus the 500th; here these are tokens 50 ± 5 and {late} ± 5, because the windows are shorter. "
        "Where the loss still falls fast between the two early positions, the two loss drops differ; only the second "
        f"can be compared with that of ICL. In ICL's curves, this loss drop rises in the phase change from less than "
        f"{BEFORE} to about 0.4 nats. Loss drops at the end of training, in nats per token (ranges over models), at "
        f"our positions and at those adapted from ICL: {'; '.join(drops)}."
    )


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
