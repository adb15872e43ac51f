"""The section on the onset of induction in controls with a built-in part of the mechanism (docs/framework.md §6.7)."""

from __future__ import annotations

from pathsum.claims.onset_twins import CLAMPED, SMEARED, onset, twin
from pathsum.page.document import Column, Section, Table, Text
from pathsum.records.results import Cell, Results
from pathsum.report.theme import Figures, Theme

TITLE = "What limits the onset"
BUILT_IN = {
    SMEARED: "smeared keys: every key mixes in the key of the previous token",
    CLAMPED: "clamped head: one first-layer head attends to the previous token",
}


def section(results: Results, _: Figures) -> Section:
    """Compare each control that has a part of induction built in with its twin: the model of the grid with the same
    layers, heads and seed. Controls without a twin are left out."""
    pairs = [
        (results.controls[name], plain)
        for name in BUILT_IN
        if name in results.controls and (plain := twin(results.controls[name], results)) is not None
    ]
    if not pairs:
        said = "This sweep has no control with a built-in part of the mechanism, or none whose twin is in the grid."
        return Section(TITLE, (said,))
    text = (
        "Each control in the table has one part of the induction mechanism built in from the first step on, as in the "
        "clamping of Singh et al. 2024. If this part limits the onset of induction, the onset comes much earlier than "
        "in the twin, the model of the grid with the same layers, heads and seed. There is one model of each kind, so "
        "the result is an observation and not general."
    )
    return Section(TITLE, (text,), (_table(pairs),))


def _table(pairs: list[tuple[Cell, Cell]]) -> Table:
    return Table.of(
        pairs,
        Text("control", lambda control, _: control.name),
        Text("built in", lambda control, _: BUILT_IN[control.name]),
        Column("onset", lambda control, _: onset(control)),
        Column("onset of the twin", lambda _, plain: onset(plain)),
        Column("prefix matching", lambda control, _: control.summary.prefix_matching),
        Column("prefix matching of the twin", "summary.prefix_matching"),
        caption="Onset of induction (tokens seen; in square brackets those at the evaluations before and after it) and "
        "final prefix matching, with a built-in part of the mechanism and in the twin without it.",
        csv="controls.csv",
    )


THEME = Theme(TITLE, section)
