"""What the scores of induction heads are made of, pair of paths by pair of paths."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import head_label, number
from pathsum.claims.score_paths import POSITION, TERMS, of_induction_head, term, through_keys, total
from pathsum.records.heads import DistanceRow
from pathsum.records.results import Cell, Results
from pathsum.records.score_paths import ScorePathRow
from pathsum.report.document import HEAD, MODEL, Column, Section, Table, Text, plain
from pathsum.report.figures.score_paths import score_paths
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "What attention scores are made of"


def section(results: Results, figures: Figures) -> Section:
    """The kinds of composition behind the scores of induction heads."""
    cells = [c for c in results.cells.values() if of_induction_head(c)]
    if not cells:
        return Section(TITLE, ("This sweep has no induction head past the first layer whose scores split.",), ())
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
    shown = drawn(figures, "score_paths")
    return Section(TITLE, (method, reading), (*shown, terms(cells)))


def terms(cells: Sequence[Cell]) -> Table:
    """The preference of each best induction head by term."""
    error = max(r.preference_error_nats for c in cells for r in of_induction_head(c))
    return Table.of(
        [(c, of_induction_head(c), c.induction_head()) for c in cells],
        MODEL,
        HEAD,
        *(Column(name, lambda _, rows, __, name=name: _worth([r for r in rows if term(r) == name])) for name in TERMS),
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


def _worth(rows: list[ScorePathRow]) -> str:
    return f"{plain(total(rows))} ({plain(sum(r.variance_share for r in rows))})" if rows else "–"


def _carrier(cell: Cell, rows: list[ScorePathRow]) -> str:
    """The path to the query with the largest preference over all keys, and its attention to the current token."""
    paths = dict.fromkeys(r.query for r in rows if r.query != POSITION)
    name = max(paths, key=lambda path: total(rows, lambda r: r.query == path))
    own = [d.attention for d in cell.rows(DistanceRow) if d.distance == 0 and head_label(d.layer, d.head) == name]
    return f"{name} {number(total(rows, lambda r: r.query == name))} nats" + "".join(
        f", itself {number(a)}" for a in own
    )


THEME = Theme(TITLE, section, figures=(score_paths,), tables=("score_paths",))
