"""What limits the onset: controls that are given a piece of the mechanism from the first step on."""

from __future__ import annotations

from pathsum.report.claims.onset_twins import CLAMPED, SMEARED, onset, twin
from pathsum.report.document import Entry, Section, Table
from pathsum.report.symbols import number
from pathsum.results import Cell, Results

TITLE = "What limits the onset"
GIVEN = {
    SMEARED: "every key mixes in the previous one",
    CLAMPED: "one first-layer head is a previous-token head",
}


def section(results: Results) -> Section:
    """Each such control beside the plain model of the same heads and seed."""
    pairs = [
        (results.controls[name], plain)
        for name in GIVEN
        if name in results.controls and (plain := twin(results.controls[name], results)) is not None
    ]
    if not pairs:
        return Section(TITLE, ("This sweep has no control that is given a piece of the mechanism.",), ())
    text = (
        "A model that is given one piece of the mechanism from the first step on shows whether that piece is what "
        "induction waits for (clamping: Singh et al. 2024). If its onset comes much earlier than its twin's, it was; "
        "what remains is the time that the other pieces take. One model each: an observation, no law."
    )
    return Section(TITLE, (text,), (_table(pairs),))


def _table(pairs: list[tuple[Cell, Cell]]) -> Table:
    columns = ("control", "given", "onset", "onset of the plain twin", "prefix matching", "of the twin")
    caption = (
        "Onset of induction with a piece of the mechanism given, against the same model without: tokens at half of "
        "the rise of prefix matching, in brackets the evaluations on either side."
    )
    rows = tuple(
        (
            Entry(control.name),
            Entry(GIVEN[control.name]),
            Entry(onset(control), "number"),
            Entry(onset(plain), "number"),
            Entry(number(control.summary.prefix_matching), "number"),
            Entry(number(plain.summary.prefix_matching), "number"),
        )
        for control, plain in pairs
    )
    return Table(caption, columns, rows, "controls.csv")
