"""Learning: the in-context loss drop and the phase change."""

from __future__ import annotations

from pathsum.claims.formatting import layers_label, span
from pathsum.records.results import Results
from pathsum.report.document import Section
from pathsum.report.figures.behaviour import trajectories
from pathsum.report.figures.learning import phase_change
from pathsum.report.figures.positions import loss_by_position
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "Learning"


def section(results: Results, figures: Figures) -> Section:
    """Show the learning curves of every depth, and the loss drop at two pairs of positions."""
    text = (
        "The in-context loss drop is the loss early in the window minus the loss late in it: positive means that the "
        "model learns from its context. The onset is where prefix matching is half-way up."
    )
    shown = drawn(figures, "phase_change", "loss_by_position", "trajectories")
    return Section.of(TITLE, (text, _two_loss_drops(results)), shown)


def _two_loss_drops(results: Results) -> str:
    """Give the loss drop between the suite's ends of the window and that between the positions of ICL."""
    drops = []
    for n in results.layer_counts():
        known = [c.summary for c in results.with_layers(n) if c.summary.icl_loss_drop_nats is not None]
        if known:
            ours = span([s.in_context_loss_drop_nats for s in known])
            icl = span([s.icl_loss_drop_nats for s in known if s.icl_loss_drop_nats is not None])
            drops.append(f"{layers_label(n)} {ours} and {icl}")
    if not drops:
        return ""
    late = span(sorted({c.summary.icl_late_token or 0 for c in results.cells.values()}), 0)
    return (
        "The loss drop is given at two pairs of positions. The suite's own: 8 to 12 % of the window against its last "
        f"tenth. ICL takes the 50th token against the 500th, here 50 ± 5 against {late} ± 5, as far as the window "
        "reaches. The loss falls fastest in the first tokens, so the two differ, and only the second can be compared "
        f"with the paper's. Nats per token, range over models, ours and at ICL's positions: {'; '.join(drops)}."
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
            "when half of the fall of the loss on copies is reached; the onset of prefix matching, to one evaluation",
        )
    },
    ("phase_change",),
    opens_part=True,
    tables=("learning",),
)
