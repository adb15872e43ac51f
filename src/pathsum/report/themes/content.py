"""Attention scores and logits by content: the same sums as by heads, regrouped by the token that is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from pathsum.claims.content import CURRENT, PREVIOUS, TWO_BACK, hops, matching, of_induction_head, order, share
from pathsum.claims.formatting import head_label, number, plural, span
from pathsum.claims.score_paths import POSITION, share_of
from pathsum.records.balance import BalanceRow
from pathsum.records.content import ContentRow, ContentScoreRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report import symbols
from pathsum.report.document import MODEL, Column, Section, Table, Text, plain
from pathsum.report.figures.base import Figure
from pathsum.report.figures.preferences import preferences
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "What is read, by content"
SMALL = "small_embedding"  # the control whose embedding starts small, by the beginning of its name
MOST_MODELS = 4  # panels


def section(results: Results, figures: Figures) -> Section:
    """Split scores and logits by content and by heads, compare both, and describe the residual stream's balance."""
    small = [c for name, c in results.controls.items() if name.startswith(SMALL)]
    models = [c for c in (*results.cells.values(), *small) if c.rows(BalanceRow) and len(c.rows(HeadRow))]
    deep = [c for c in models if c.rows(ContentScoreRow)]
    if not models:
        return Section(TITLE, ("This sweep has no model with heads that was decomposed by content.",))
    errors = [r.exactness for c in models for r in c.rows(ContentRow)]
    errors += [r.exactness for c in models for r in c.rows(ContentScoreRow)]
    direct = [r.power_share for c in models for r in c.rows(BalanceRow) if (r.reader, r.part) == (1, "embedding")]
    balanced = f"The direct path is {span(direct)} of the power of what is read after the first layer."
    method = (
        "A path is named by its heads, which does not say what it carries: a head that attends to its own position "
        "moves nothing. With patterns and norm scales fixed, each pattern is split into its diagonal and the rest, and "
        "what is read is summed anew in two ways, whatever heads it went through: by hops, the number of heads at "
        "which content changed position, and by offset, how many tokens back it comes from. Both sums agree with the "
        f"logits and the scores up to a relative error of {number(max(errors))} (float64)."
    )
    shown = drawn(figures, "content_scores")
    tables = (scores(deep), orders(deep), corner(deep), balance(models))
    return Section.of(TITLE, (method, balanced, _small(small)), (*shown, *tables))


def _small(small: Sequence[Cell]) -> str:
    """Say why path names differ in the control with a small embedding."""
    if not small:
        return ""
    names = ", ".join(c.name for c in small)
    return (
        f"In {names} the embedding starts small and stays small compared with what the first layer writes. There, "
        "first-layer heads that attend to their own position can carry the current token, so that path names need not "
        "mean what the paper's do: by content, Q&K-composition may read only the current token, and a virtual head may "
        "move content only once. By content both recipes can be compared."
    )


def scores(models: Sequence[Cell]) -> Table:
    """Split the best induction head's preference by heads and by content."""
    return Table.of(
        [(c, of_induction_head(c), c.induction_head()) for c in models],
        MODEL,
        Text("head", lambda _, __, head: "–" if head is None else head_label(head.layer, head.head)),
        Column("by heads: K", lambda c, *_: plain(share_of(c, "K"))),
        Column("by heads: Q&K", lambda c, *_: plain(share_of(c, "Q&K"))),
        Column("current × previous token", lambda _, rows, __: plain(share(rows, CURRENT, PREVIOUS))),
        Column("previous × two tokens back", lambda _, rows, __: plain(share(rows, PREVIOUS, TWO_BACK))),
        Column("all (nats)", lambda _, rows, __: plain(sum(r.preference_nats for r in rows))),
        caption="Shares of the best induction head's preference for the token after the earlier occurrence, on "
        "repeated random tokens: by heads, K has a direct query and a composed key; by content, the first is read at "
        "the query, the second at the key.",
        csv="content_scores.csv",
        source="content_claims",
    )


def orders(models: Sequence[Cell]) -> Table:
    """Show the loss reduction of each number of hops and of each number of heads."""
    counted = [(c, n, order(c, n), hops(c, n)) for c in models for n in range(c.summary.n_layers + 1)]
    return Table.of(
        [row for row in counted if row[-1] is not None],
        MODEL,
        Column("count", lambda _, n, *__: n),
        Column("by heads: own scale (nats)", lambda _, __, by_heads, ___: by_heads and by_heads.own_scale_nats),
        Column("by hops: own scale (nats)", ("own_scale_nats", "own_scale_low", "own_scale_high")),
        Column("by hops: scales frozen (nats)", ("added_nats", "added_low", "added_high")),
        caption="Fall of the held-out loss (nats per token) as paths through 0, 1, 2 heads are added, and as content "
        "that 0, 1, 2 heads moved is added; attention patterns fixed, 95 % intervals. The split by offset is in the "
        "CSV.",
        csv="content.csv",
        source="content_worth",
    )


def corner(models: Sequence[Cell]) -> Table:
    """Show the matching of each best induction head, on the pair of its largest preference and on AMF's own."""
    found = [(c, h, matching(c, h.layer, h.head)) for c in models if (h := c.induction_head()) is not None]
    return Table.of(
        [row for row in found if row[-1] is not None],
        MODEL,
        Text("head", lambda _, head, __: head_label(head.layer, head.head)),
        Text("path to queries", "query"),
        Text("path to keys", "key"),
        Column("its share", "judged_share"),
        Column("matching on it", "positivity"),
        Column("on direct × previous-token head", lambda _, head, __: head.qk_matching_positivity),
        caption="The pair of paths with the largest part of the best induction head's preference, chosen on half of "
        "the repeated windows, with its share on the other half; and the eigenvalue positivity of matching on that "
        "pair and on AMF's, with a direct query and a key through the previous-token head (1: every token matches "
        "itself).",
        csv="matching.csv",
        source="corner",
    )


def balance(models: Sequence[Cell]) -> Table:
    """Show the norms of the embedding and of each layer's writes, and the direct path's share of what is read."""
    return Table.of(
        [(c, n, _parts(c, n)) for c in models for n in range(1, c.summary.n_layers + 1)],
        MODEL,
        Text("read by", lambda c, n, _: f"layer {n}" if n < c.summary.n_layers else "unembedding"),
        Column("embedding (norm)", lambda _, __, parts: parts["embedding"].norm, 1),
        Column("layers (norm)", lambda _, n, parts: "; ".join(number(parts[f"L{i}"].norm, 1) for i in range(n))),
        Column("heads (norm)", lambda _, n, parts: "; ".join(_heads(parts, i) for i in range(n))),
        Column("direct path: power", lambda _, __, parts: parts["embedding"].power_share),
        Column("projection", lambda _, __, parts: parts["embedding"].projection_share),
        caption="How the residual stream is balanced: root-mean-square norms over positions of held-out text of the "
        "embedding, of what each layer below writes and of what each head there writes; and the direct path's share of "
        "what is read, as power (Σ ‖embedding‖² / Σ ‖x‖²) and as projection (Σ ⟨embedding, x⟩ / Σ ‖x‖²).",
        csv="balance.csv",
    )


def _parts(cell: Cell, reader: int) -> dict[str, BalanceRow]:
    return {r.part: r for r in cell.rows(BalanceRow) if r.reader == reader}


def _heads(rows: Mapping[str, BalanceRow], layer: int) -> str:
    return span([r.norm for part, r in rows.items() if part.startswith(f"L{layer}H")], 1)


def content_scores(results: Results) -> Figure | None:
    """Draw the preference of each model's best induction head, content at the query by content at the key."""
    models = [c for c in (*results.cells.values(), *results.controls.values()) if of_induction_head(c)]
    if not models:
        return None
    small = [c for c in models if c.name in results.controls and c.name.startswith(SMALL)][:1]
    shown = [*[c for c in models if c.name in results.cells][: MOST_MODELS - len(small)], *small]

    shares = [s for c in results.cells.values() if (s := share(of_induction_head(c), CURRENT, PREVIOUS)) is not None]
    caption = (
        "The best induction head's preference by content: rows are how many tokens back the content read at the query "
        "comes from, columns the same at the key, whatever heads carried it; BOS is the first position. Box: current "
        f"token against previous token, {span(shares)} of the preference in {plural(len(shares), 'model')}. Nats above "
        "the query's mean over keys, on repeated random tokens; chance is 0. Position's own terms are left out."
    )
    rows = {c.name: [r for r in of_induction_head(c) if POSITION not in (r.query, r.key)] for c in models}
    return preferences("content_scores", "What an induction head compares", caption, rows, shown, _mark, (3.2, 3.6))


def _mark(ax: Axes, cell: Cell, order: list[str]) -> None:
    at = order.index(PREVIOUS), order.index(CURRENT)
    ax.add_patch(Rectangle(at, 1, 1, fill=False, ec=symbols.ACCENT, lw=2, clip_on=False))
    ax.set(xlabel="content at the key (tokens back)", ylabel="content at the query (tokens back)")


THEME = Theme(
    TITLE,
    section,
    figures=(content_scores,),
    sources={
        "content_claims": ("content_scores", "score_paths"),
        "content_worth": ("content", "terms"),
        "corner": ("matching", "heads"),
    },
    detectors={
        "keys_of_previous_token": DetectorText(
            "keys read by content",
            "stretches of text repeat, so a second-layer head must compare the current token with the previous token "
            "at the key; at least half of a preference of one nat or more of one of its heads, by content",
        )
    },
    relies_on=("keys_of_previous_token",),
    tables=("content_scores", "content", "matching", "balance"),
)
