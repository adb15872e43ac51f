"""The section on the attention scores of induction heads by pairs of paths (docs/framework.md §2.3)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from pathsum.claims.formatting import head_label, number, span
from pathsum.claims.score_paths import POSITION, TERMS, of_induction_head, term, through_keys, total
from pathsum.figures import symbols
from pathsum.figures.base import Figure
from pathsum.figures.preferences import preferences
from pathsum.page.document import HEAD, MODEL, Column, Section, Table, Text, plain
from pathsum.records.heads import DistanceRow
from pathsum.records.results import Cell, Results
from pathsum.records.score_paths import ScorePathRow
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Attention scores by pairs of paths"
MOST_CELLS = 4  # largest number of panels of the figure, one per model


def section(results: Results, figures: Figures) -> Section:
    """Show how much each kind of composition contributes to the scores of induction heads."""
    cells = [c for c in results.cells.values() if of_induction_head(c)]
    if not cells:
        return Section(TITLE, ("This sweep has no induction head after the first layer whose scores can be split.",))
    worst = max(r.exactness for c in cells for r in c.rows(ScorePathRow))
    method = (
        "This section shows which paths produce the attention of induction heads. With the attention patterns of "
        "earlier layers and all norm scales fixed, the attention score of a query and a key is a sum over pairs of "
        "paths, one to the query and one to the key. Each path is direct or goes through earlier heads. A pair is "
        "called direct if both paths are, Q if only the path to the query goes through heads, K if only the path to "
        "the key does, and Q&K if both do. Position is a separate term. For every head after the first layer, the "
        "log-softmax of the sum reproduces the log of the model's own attention up to a relative error of "
        f"{number(worst)} (float64, held-out text)."
    )
    kinds = (
        "In AMF's minimal induction head, the query reads the embedding and the key reads a previous-token head: this "
        "is K-composition. If queries come through a first-layer head that attends to its own position, that head "
        "carries the current token in place of the embedding; the pair then counts as Q&K but acts like K. The next "
        "section groups the same sums by content, that is, by how many tokens back it comes from, whichever heads "
        "carry it."
    )
    return Section(TITLE, (method, kinds), (*drawn(figures, "score_paths"), terms(cells)))


def terms(cells: Sequence[Cell]) -> Table:
    """Split the preference of each model's best induction head into the terms direct, Q, K, Q&K and position."""
    error = max(r.preference_error_nats for c in cells for r in of_induction_head(c))
    return Table.of(
        [(c, of_induction_head(c), c.induction_head()) for c in cells],
        MODEL,
        HEAD,
        *(Column(name, lambda _, rows, __, name=name: _term([r for r in rows if term(r) == name])) for name in TERMS),
        Column("all (nats)", lambda _, rows, __: total(rows)),
        Text("keys through the previous-token head", lambda c, *_: _through_keys(c)),
        Text("strongest path to the query", lambda c, rows, _: _carrier(c, rows)),
        caption="Preference of the best induction head for the token after the earlier occurrence of the current "
        "token, on repeated random tokens (nats above the mean over keys), by term; in parentheses the term's share of "
        "the variance of scores over keys. Next to last column: the previous-token head, and the part with keys that "
        "come through it (nats). Last: the path to the query with the largest sum over key paths; if this path is a "
        "single head, “itself” is this head's "
        f"attention to its own position on held-out text. Standard errors over windows: at most {number(error)} nats "
        "per pair.",
        csv="score_paths.csv",
    )


def _through_keys(cell: Cell) -> str:
    previous = cell.previous_token_head()
    assert previous is not None
    return f"{head_label(previous.layer, previous.head)}: {number(through_keys(cell))} nats"


def _term(rows: list[ScorePathRow]) -> str:
    return f"{plain(total(rows))} ({plain(sum(r.variance_share for r in rows))})" if rows else "–"


def _carrier(cell: Cell, rows: list[ScorePathRow]) -> str:
    """Name the path to the query, except position, with the largest preference, summed over paths to the key, and state
    this sum. If the path is a single head, add the head's attention to its own position."""
    paths = dict.fromkeys(r.query for r in rows if r.query != POSITION)
    name = max(paths, key=lambda path: total(rows, lambda r: r.query == path))
    own = [d.attention for d in cell.rows(DistanceRow) if d.distance == 0 and head_label(d.layer, d.head) == name]
    return f"{name}: {number(total(rows, lambda r: r.query == name))} nats" + "".join(
        f", itself {number(a)}" for a in own
    )


def score_paths(results: Results) -> Figure | None:
    """Draw the preference of the best induction heads of up to MOST_CELLS models, by path to the query and path to the
    key. None without such scores."""
    cells = [c for c in results.cells.values() if of_induction_head(c)]
    if not cells:
        return None
    rows = {c.name: _drawn(c) for c in cells}
    keys, everything = [through_keys(c) for c in cells], [total(some) for some in rows.values()]
    positions = any(POSITION in (r.query, r.key) for some in rows.values() for r in some)
    caption = (
        "Parts of the best induction head's preference for the token after the earlier occurrence of the current "
        "token, on repeated random tokens (nats above the mean over keys; chance is 0). Each square is a pair of a "
        "path to the query (row) and a path to the key (column). In the top row the query reads the embedding: the "
        f"first square is the direct pair, the others are K-composition{' (except position)' if positions else ''}. "
        f"Box: keys that come through the previous-token head, {span(keys)} nats of {span(everything)} nats in all "
        f"squares (ranges over models).{'' if positions else ' The bias by distance is left out.'}"
    )
    title = "Scores of induction heads by pairs of paths"
    return preferences("score_paths", title, caption, rows, cells[:MOST_CELLS], _mark, (3.4, 3.9))


def _drawn(cell: Cell) -> list[ScorePathRow]:
    """Return the pairs to draw. A bias by distance is left out: it is a path neither to the query nor to the key."""
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
