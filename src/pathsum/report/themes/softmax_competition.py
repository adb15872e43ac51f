"""Softmax competition: why one layer has no induction."""

from __future__ import annotations

from pathsum.claims.formatting import head_label, interval
from pathsum.claims.softmax_competition import preferring
from pathsum.records.results import Cell, Results
from pathsum.records.softmax_competition import SoftmaxCompetitionRow
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "Softmax competition"


def section(results: Results, _: Figures) -> Section:
    """Show the preference that a repetition causes in one layer and, as a positive control, in two."""
    cells = [c for n in (1, 2) for c in results.with_layers(n) if c.rows(SoftmaxCompetitionRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model with heads.",))
    why = (
        "A score reaches another key's attention through the denominator of the softmax alone: if the score of a key "
        "with attention A rises by δ, the log attention of every other key falls by log(1 + A (exp δ − 1)), wherever "
        "that key is. In one layer a score sees the query's token, the key's token and their distance. A match can "
        "therefore draw attention to itself and lower all other keys alike; it cannot favor the token after it. Two "
        "layers can, because the keys of the second read what the first has moved."
    )
    return Section(TITLE, (why,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, _by_place(c)) for c in cells],
        MODEL,
        Text("head", lambda _, at: head_label(at["after"].layer, at["after"].head)),
        Column("token after the match", lambda _, at: _preference(at["after"])),
        Column("the match itself", lambda _, at: _preference(at["match"])),
        Column("token before it", lambda _, at: _preference(at["before"])),
        Column("inhibition by 1 nat", lambda _, at: at["after"].inhibition_nats),
        caption="Whether a match makes a head prefer the token after it: an interval above 0 says that it does. "
        "Preference over keys two to five tokens away from the place, in nats of log attention: repeated random tokens "
        "minus windows that do not repeat, for the head that prefers the token after the match most; 0 is chance. "
        "Last: the change of every other key's log attention when the score of a query's strongest key rises by one "
        "nat. 95 % intervals over windows.",
        csv="softmax_competition.csv",
    )


def _by_place(cell: Cell) -> dict[str, SoftmaxCompetitionRow]:
    """Return the preferences of the head that prefers the token after the match most, by place."""
    best = preferring(cell)
    assert best is not None
    return {r.place: r for r in cell.rows(SoftmaxCompetitionRow) if (r.layer, r.head) == (best.layer, best.head)}


def _preference(r: SoftmaxCompetitionRow) -> str:
    return interval(r.preference_nats, r.preference_low, r.preference_high)


THEME = Theme(TITLE, section, tables=("softmax_competition",))
