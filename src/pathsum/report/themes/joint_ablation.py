"""All induction heads together: what in-context learning loses without them, through training."""

from __future__ import annotations

from pathsum.claims.formatting import number
from pathsum.claims.joint_ablation import at_the_end, controls
from pathsum.records.joint_ablation import JointAblationRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.figures.joint_ablation import joint_ablation
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Without any induction head"
IN_PLACE = {
    "zero": "zero",
    "mean": "mean",
    "resample": "resample",
    "turned": "random directions (control)",
}


def section(results: Results, figures: Figures) -> Section:
    """Zero, mean and resample ablation of all induction heads at once, beside controls."""
    cells = [c for c in results.with_layers(2) if c.rows(JointAblationRow)]
    if not cells:
        return Section(TITLE, ("No two-layer model of this sweep has an induction head to ablate.",), ())
    method = (
        "Every head whose prefix matching is at least 0.1 at training's last evaluation is ablated at once, at each "
        "checkpoint, on windows that did not choose the heads. Controls: as many other heads of the same layers, and "
        "what heads of the same patterns and sizes would have written in random directions. Other heads are compared "
        "with the induction heads window by window, ablated in the same way; random directions with the ablation of "
        "the induction heads that loses least. Where the layers have too few other heads, fewer are ablated: the table "
        "marks these models, which have no such control."
    )
    shown = drawn(figures, "joint_ablation")
    return Section(TITLE, (method,), (*shown, _table(cells)))


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in _shown(at_the_end(c))],
        MODEL,
        Text("heads", lambda c, r: r.heads if r.ablated == "induction" else f"{r.heads} (control{_fewer(c, r)})"),
        Text("ablation", lambda _, r: IN_PLACE[r.method]),
        Column("loss drop lost (nats)", ("loss_drop_lost", "loss_drop_lost_low", "loss_drop_lost_high")),
        Column("share", lambda _, r: share(r.loss_drop_lost, r.loss_drop_nats)),
        Column("second-copy gain lost (nats)", ("repeat_gain_lost", "repeat_gain_lost_low", "repeat_gain_lost_high")),
        Column("share", lambda _, r: share(r.repeat_gain_lost, r.repeat_gain_nats)),
        caption="How much a model without its induction heads loses of its in-context loss drop on held-out text, and "
        "of the gain of the second copy over the first on repeated random tokens, at the last checkpoint (nats per "
        "token). The last rows of each model are the controls that lose most: other heads, and random directions. 95 % "
        "intervals.",
        csv="joint_ablation.csv",
    )


def _shown(rows: list[JointAblationRow]) -> list[JointAblationRow]:
    others = controls(rows)
    kinds = [[r for r in others if r.ablated == kind] for kind in ("others", "induction")]
    return [*(r for r in rows if r not in others), *(max(k, key=lambda r: r.loss_drop_lost) for k in kinds if k)]


def _fewer(cell: Cell, r: JointAblationRow) -> str:
    most = max(x.n_heads for x in cell.rows(JointAblationRow) if x.ablated == "induction")
    return f", {r.n_heads} of {most}" if r.n_heads < most else ""


def share(lost: float, whole: float) -> str:
    """Which part of the whole is lost; a dash where there is nothing to lose."""
    return number(lost / whole) if whole > 0 else "–"


THEME = Theme(TITLE, section, figures=(joint_ablation,), tables=("joint_ablation",))
