"""The onset in controls with a piece of the mechanism built in."""

from __future__ import annotations

from pathsum.claims.onset_twins import CLAMPED, SMEARED, onset, twin
from pathsum.records.results import Cell, Results
from pathsum.report.document import Column, Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "What limits the onset"
GIVEN = {
    SMEARED: "every key mixes in the previous one",
    CLAMPED: "one first-layer head is a previous-token head",
}


def section(results: Results, _: Figures) -> Section:
    """Compare each such control with the plain model of the same heads and seed."""
    pairs = [
        (results.controls[name], plain)
        for name in GIVEN
        if name in results.controls and (plain := twin(results.controls[name], results)) is not None
    ]
    if not pairs:
        return Section(TITLE, ("This sweep has no control with a piece of the mechanism built in.",))
    text = (
        "One piece of the mechanism is built into a model from the first step on, to test whether that piece limits "
        "the onset (clamping: Singh et al. 2024). If so, the onset comes much earlier than in the same model without; "
        "the remaining time is that of the other pieces. One model each: an observation, not a general result."
    )
    return Section(TITLE, (text,), (_table(pairs),))


def _table(pairs: list[tuple[Cell, Cell]]) -> Table:
    return Table.of(
        pairs,
        Text("control", lambda control, _: control.name),
        Text("built in", lambda control, _: GIVEN[control.name]),
        Column("onset", lambda control, _: onset(control)),
        Column("onset without it", lambda _, plain: onset(plain)),
        Column("prefix matching", lambda control, _: control.summary.prefix_matching),
        Column("prefix matching without it", "summary.prefix_matching"),
        caption="Onset of induction with a piece of the mechanism built in, and in the same model without it: tokens "
        "seen at half of the rise of prefix matching, in brackets the evaluations on either side.",
        csv="controls.csv",
    )


THEME = Theme(TITLE, section)
