"""The section on the onset of induction in controls that have more or less built in than the grid (docs/framework.md
§6.7)."""

from __future__ import annotations

from pathsum.claims.onset_twins import CLAMPED, SMEARED, onset, twin
from pathsum.page.document import Column, Section, Table, Text
from pathsum.records.results import Cell, Results
from pathsum.report.theme import Figures, Theme

TITLE = "What limits the onset"
EQUAL, OLD = "equal_position_rates", "old_recipe"  # names of controls
DIFFERING = {
    SMEARED: "smeared keys: every key mixes in the key of the previous token",
    CLAMPED: "clamped head: one first-layer head attends to the previous token",
    EQUAL: "equal position rates: the position biases of both layers learn at one rate",
    OLD: "the earlier recipe: equal and lower position rates, twice the batch, 1.5 times the tokens",
}


def section(results: Results, _: Figures) -> Section:
    """Compare each of these controls with its twin: the model of the grid with the same layers, heads and seed.
    Controls without a twin are left out."""
    pairs = [
        (results.controls[name], plain)
        for name in DIFFERING
        if name in results.controls and (plain := twin(results.controls[name], results)) is not None
    ]
    if not pairs:
        said = "This sweep has no control with more or less built in than the grid, or none whose twin is in the grid."
        return Section(TITLE, (said,))
    text = (
        "With smeared keys or a clamped head, a part of the induction mechanism is built in from the first step on, as "
        "in the clamping of Singh et al. 2024. If this part limits the onset of induction, the onset comes much "
        "earlier than in the twin, the model of the grid with the same layers, heads and seed. With equal position "
        "rates, less is built in than in the grid, where the position biases of later layers learn slowly and those of "
        "the first layer fast. There is one model of each kind, so the result is an observation and not general."
    )
    return Section(TITLE, (text,), (_table(pairs),))


def _table(pairs: list[tuple[Cell, Cell]]) -> Table:
    return Table.of(
        pairs,
        Text("control", lambda control, _: control.name),
        Text("what differs", lambda control, _: DIFFERING[control.name]),
        Column("onset", lambda control, _: onset(control)),
        Column("onset of the twin", lambda _, plain: onset(plain)),
        Column("prefix matching", lambda control, _: control.summary.prefix_matching),
        Column("prefix matching of the twin", "summary.prefix_matching"),
        caption="Onset of induction (tokens seen; in square brackets those at the evaluations before and after it) and "
        "final prefix matching, in the control and in its twin.",
        csv="controls.csv",
    )


THEME = Theme(TITLE, section)
