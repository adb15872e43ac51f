"""The section on softmax competition, the reason why one layer cannot do induction (docs/framework.md §5.14)."""

from __future__ import annotations

from pathsum.claims.formatting import head_label, interval
from pathsum.claims.softmax_competition import preferring
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.results import Cell, Results
from pathsum.records.softmax_competition import SoftmaxCompetitionRow
from pathsum.report.theme import Figures, Theme

TITLE = "Softmax competition"


def section(results: Results, _: Figures) -> Section:
    """Show the preference that a repetition causes for the match and its neighbors, with one layer and, as a positive
    control, with two layers."""
    cells = [c for n in (1, 2) for c in results.with_layers(n) if c.rows(SoftmaxCompetitionRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model with heads.",))
    why = (
        "The score of one key affects the attention to another key only through the denominator of the softmax. If the "
        "score of a key with attention A rises by δ, the log attention to every other key falls by log(1 + A (exp δ − "
        "1)), wherever that key is. In one layer, a score depends on the query's token, the key's token and their "
        "distance. A match can therefore raise the attention to the matching key and lower that to all other keys "
        "alike, but it cannot favor the token after this key. In two layers it can, because the keys of the second "
        "layer read what the first layer has moved."
    )
    return Section(TITLE, (why,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    two = "Models with two layers are the positive control. " * any(c.summary.n_layers == 2 for c in cells)
    return Table.of(
        [(c, _by_place(c)) for c in cells],
        MODEL,
        Text("head", lambda _, at: head_label(at["after"].layer, at["after"].head)),
        Column("token after the match", lambda _, at: _preference(at["after"])),
        Column("the match itself", lambda _, at: _preference(at["match"])),
        Column("token before the match", lambda _, at: _preference(at["before"])),
        Column("change of other keys (nats)", lambda _, at: at["after"].inhibition_nats),
        caption="In the column “token after the match”, an interval above 0 means that a match makes the head prefer "
        "the token after it. Preference: log attention to the key minus mean log attention to keys two to five tokens "
        "before or after the match (nats), on repeated random tokens minus windows that do not repeat; chance is 0. "
        "One row per model: the head whose interval for the token after the match has the highest upper end. "
        f"{two}Last column: the change of the log attention to every other key when the score of a "
        "query's strongest key rises by one nat (mean over queries). 95 % intervals over windows.",
        csv="softmax_competition.csv",
    )


def _by_place(cell: Cell) -> dict[str, SoftmaxCompetitionRow]:
    """Return the rows of the head that ``preferring`` chooses, by place: match, after and before."""
    best = preferring(cell)
    assert best is not None
    return {r.place: r for r in cell.rows(SoftmaxCompetitionRow) if (r.layer, r.head) == (best.layer, best.head)}


def _preference(r: SoftmaxCompetitionRow) -> str:
    return interval(r.preference_nats, r.preference_low, r.preference_high)


THEME = Theme(TITLE, section, tables=("softmax_competition",))
