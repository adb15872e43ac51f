"""The scores of induction heads by pairs of paths."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from pathsum.claims.formatting import head_label, number, span
from pathsum.claims.score_paths import POSITION, TERMS, of_induction_head, term, through_keys, total
from pathsum.records.heads import DistanceRow
from pathsum.records.results import Cell, Results
from pathsum.records.score_paths import ScorePathRow
from pathsum.report import symbols
from pathsum.report.document import HEAD, MODEL, Column, Section, Table, Text, plain
from pathsum.report.figures.base import Figure
from pathsum.report.figures.preferences import preferences
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "What attention scores are made of"
MOST_CELLS = 4  # panels


def section(results: Results, figures: Figures) -> Section:
    """Show the kinds of composition behind the scores of induction heads."""
    cells = [c for c in results.cells.values() if of_induction_head(c)]
    if not cells:
        return Section(TITLE, ("This sweep has no induction head past the first layer whose scores split.",))
    worst = max(r.exactness for c in cells for r in c.rows(ScorePathRow))
    method = (
        "With the patterns and norm scales of earlier layers fixed, a score is a sum over pairs of paths, one to the "
        "query and one to the key: direct, or through earlier heads (Q, K or both), with a separate term for position. "
        "Over every head past the first layer the sum agrees with the model's own attention up to a relative error of "
        f"{number(worst)} (of log A, float64, held-out text)."
    )
    reading = (
        "In AMF's minimal induction head the query reads the embedding and the key a previous-token head: that is K. "
        "Where queries come through a first-layer head that attends to the current token itself, that head carries the "
        "token in place of the embedding; the pair counts as Q&K but acts as K. The next section regroups the same "
        "sums by content, which does not depend on the head that carries it."
    )
    return Section(TITLE, (method, reading), (*drawn(figures, "score_paths"), terms(cells)))


def terms(cells: Sequence[Cell]) -> Table:
    """Split the preference of each best induction head by term."""
    error = max(r.preference_error_nats for c in cells for r in of_induction_head(c))
    return Table.of(
        [(c, of_induction_head(c), c.induction_head()) for c in cells],
        MODEL,
        HEAD,
        *(Column(name, lambda _, rows, __, name=name: _term([r for r in rows if term(r) == name])) for name in TERMS),
        Column("all (nats)", lambda _, rows, __: total(rows)),
        Text("keys through the previous-token head", lambda c, *_: _through_keys(c)),
        Text("strongest path to queries", lambda c, rows, _: _carrier(c, rows)),
        caption="Preference of the best induction head for the token after the earlier occurrence (nats above its mean "
        "over keys; in brackets the term's share of the variance of scores over keys), on repeated random tokens. "
        "Last: the path to queries with the largest part of it, and how much that head attends to the current token on "
        f"held-out text. Standard errors over windows: at most {number(error)} nats per pair.",
        csv="score_paths.csv",
    )


def _through_keys(cell: Cell) -> str:
    previous = cell.previous_token_head()
    assert previous is not None
    return f"{head_label(previous.layer, previous.head)} {number(through_keys(cell))}"


def _term(rows: list[ScorePathRow]) -> str:
    return f"{plain(total(rows))} ({plain(sum(r.variance_share for r in rows))})" if rows else "–"


def _carrier(cell: Cell, rows: list[ScorePathRow]) -> str:
    """Name the path to the query with the largest preference over all keys, with its attention to the current token."""
    paths = dict.fromkeys(r.query for r in rows if r.query != POSITION)
    name = max(paths, key=lambda path: total(rows, lambda r: r.query == path))
    own = [d.attention for d in cell.rows(DistanceRow) if d.distance == 0 and head_label(d.layer, d.head) == name]
    return f"{name} {number(total(rows, lambda r: r.query == name))} nats" + "".join(
        f", itself {number(a)}" for a in own
    )


def score_paths(results: Results) -> Figure | None:
    """Draw the preference of each model's best induction head, path to the query by path to the key."""
    cells = [c for c in results.cells.values() if of_induction_head(c)]
    if not cells:
        return None
    rows = {c.name: _drawn(c) for c in cells}
    keys, everything = [through_keys(c) for c in cells], [total(some) for some in rows.values()]
    caption = (
        "Nats by which the best induction head's score of the token after the earlier occurrence exceeds its mean over "
        "keys, on repeated random tokens; chance is 0. Each square is one path to the query and one to the key. In the "
        "top row the query reads the embedding: its first square is direct, the others are K-composition. Box: keys "
        f"that come through the strongest previous-token head, {span(keys)} nats where all squares have "
        f"{span(everything)}. A bias by distance is left out."
    )
    title = "What an induction head's scores are made of"
    return preferences("score_paths", title, caption, rows, cells[:MOST_CELLS], _mark, (3.4, 3.9))


def _drawn(cell: Cell) -> list[ScorePathRow]:
    """Return the pairs to draw, without the bias by distance: it is a path neither to the query nor to the key."""
    rows = of_induction_head(cell)
    is_path = any((r.query == POSITION) != (r.key == POSITION) for r in rows)
    return [r for r in rows if is_path or not r.query == r.key == POSITION]


def _mark(ax: Axes, cell: Cell, order: list[str]) -> None:
    previous = cell.previous_token_head()
    if previous is not None and (name := head_label(previous.layer, previous.head)) in order:
        box = Rectangle((order.index(name), 0), 1, len(order), fill=False, ec=symbols.ACCENT, lw=2, clip_on=False)
        ax.add_patch(box)
    ax.set(xlabel="path to the key", ylabel="path to the query")
    ax.tick_params(axis="x", rotation=90)


THEME = Theme(TITLE, section, figures=(score_paths,), tables=("score_paths",))
