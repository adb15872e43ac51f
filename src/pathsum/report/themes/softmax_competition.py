"""Why one layer has no induction: scores compete through one normalisation."""

from __future__ import annotations

from pathsum.claims.formatting import head_label, interval, number
from pathsum.claims.softmax_competition import preferring
from pathsum.records.results import Cell, Results
from pathsum.records.softmax_competition import SoftmaxCompetitionRow
from pathsum.report.document import Entry, Section, Table
from pathsum.report.theme import Figures, Theme

TITLE = "Softmax competition"


def section(results: Results, _: Figures) -> Section:
    """What a repetition makes heads prefer, in one layer and, as a positive control, in two."""
    cells = [c for n in (1, 2) for c in results.with_layers(n) if c.rows(SoftmaxCompetitionRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model with heads.",), ())
    why = (
        "A score reaches another key's attention through the denominator of the softmax alone: if the score of a key "
        "with attention A rises by δ, the log attention of every other key falls by log(1 + A (exp δ − 1)), wherever "
        "that key is. In one layer a score sees the query's token, the key's token and their distance. A match can "
        "therefore draw attention to itself and lower all other keys alike; it cannot favour the token after it. "
        "Two layers can, because the keys of the second read what the first has moved."
    )
    return Section(TITLE, (why,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    columns = ("model", "head", "token after the match", "the match itself", "token before it", "inhibition by 1 nat")
    caption = (
        "Whether a match makes a head prefer the token after it: an interval above 0 says that it does. Preference "
        "over keys two to five tokens away from the place, in nats of log attention: repeated random tokens minus "
        "windows that do not repeat, for the head that prefers the token after the match most; 0 is chance. Last: the "
        "change of every other key's log attention when the score of a query's strongest key rises by one nat. 95 % "
        "intervals over windows."
    )
    return Table(caption, columns, tuple(_row(c) for c in cells), "softmax_competition.csv")


def _row(cell: Cell) -> tuple[Entry, ...]:
    best = preferring(cell)
    assert best is not None
    of_head = {r.place: r for r in cell.rows(SoftmaxCompetitionRow) if (r.layer, r.head) == (best.layer, best.head)}
    shown = (of_head[place] for place in ("after", "match", "before"))
    return (
        Entry(cell.name),
        Entry(head_label(best.layer, best.head)),
        *(Entry(interval(r.preference_nats, r.preference_low, r.preference_high), "number") for r in shown),
        Entry(number(best.inhibition_nats), "number"),
    )


THEME = Theme(TITLE, section, tables=("softmax_competition",))
