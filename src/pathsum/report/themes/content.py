"""The section that splits attention scores and losses by content: the token that is read (docs/framework.md
§2.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from pathsum.claims.content import CURRENT, PREVIOUS, TWO_BACK, hops, matching, of_induction_head, order, share
from pathsum.claims.formatting import head_label, number, plural, span
from pathsum.claims.score_paths import POSITION, share_of
from pathsum.figures import symbols
from pathsum.figures.base import Figure
from pathsum.figures.preferences import preferences
from pathsum.page.document import MODEL, Column, Section, Table, Text, plain
from pathsum.records.balance import BalanceRow
from pathsum.records.content import ContentRow, ContentScoreRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "Attention scores and losses by content"
SMALL = "small_embedding"  # prefix of the name of the control whose embedding starts small
MOST_MODELS = 4  # panels of the figure


def section(results: Results, figures: Figures) -> Section:
    """Split attention scores and losses by content and by heads, and describe the balance of the residual stream."""
    small = [c for name, c in results.controls.items() if name.startswith(SMALL)]
    models = [c for c in (*results.cells.values(), *small) if c.rows(BalanceRow) and len(c.rows(HeadRow))]
    deep = [c for c in models if c.rows(ContentScoreRow)]
    if not models:
        return Section(TITLE, ("This sweep has no model with heads that was decomposed by content.",))
    errors = [r.exactness for c in models for r in c.rows(ContentRow)]
    errors += [r.exactness for c in models for r in c.rows(ContentScoreRow)]
    shares = {c.name: _parts(c, 1)["embedding"].power_share for c in models}
    grid = [share for name, share in shares.items() if name in results.cells]
    others = "".join(f"; control {c.name}: {number(shares[c.name])}" for c in small if c.name in shares)
    balanced = (
        "The name of a path misleads most where the embedding is small compared with what heads write. Here the "
        f"embedding, the direct path, has {span(grid)} of the power of the residual stream after the first layer "
        f"(squared norms after normalization, held-out text, range over models{others})."
    )
    method = (
        "The name of a path lists its heads, but not what it carries: a head that attends to its own position moves "
        "nothing. This section therefore splits logits and attention scores by content, that is, by the token that is "
        "read, whichever heads are on the path. Attention patterns and norm scales are fixed. Each pattern is split "
        "into its diagonal, where content stays in place, and all other entries, where it moves. Content is grouped in "
        "two ways: by hops, the number of heads at which it changed position, and by offset, the number of tokens back "
        "from which it comes. Both splits reproduce the logits and the scores up to a relative error of "
        f"{number(max(errors))} (float64)."
    )
    shown = drawn(figures, "content_scores")
    tables = (scores(deep), orders(deep), matching_pairs(deep), balance(models))
    return Section.of(TITLE, (method, balanced, _small(small)), (*shown, *tables))


def _small(small: Sequence[Cell]) -> str:
    """Explain why the names of paths are misleading in the control with a small embedding; empty without it."""
    if not small:
        return ""
    names = ", ".join(c.name for c in small)
    return (
        f"In {names} the embedding starts small and stays small compared with what the first layer writes. First-layer "
        "heads that attend to their own position can then carry the current token in place of the embedding, and the "
        "names of paths mislead. In Q&K-composition, the query may then contain only the current token, and a virtual "
        f"head may move content only once. Split by content, {'these controls' if small[1:] else 'this control'} can "
        "be compared with the grid."
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
        Column("preference (nats)", lambda _, rows, __: plain(sum(r.preference_nats for r in rows))),
        caption="The best induction head's preference for the token after the earlier occurrence of the current token, "
        "on repeated random tokens (nats above the mean over keys), and shares of it. By heads: K has a direct path to "
        "the query and a path through a head to the key; Q&K has a path through a head to each. By content: the first "
        "token is read at the query, the second at the key. Shares can exceed 1, because other terms can be negative.",
        csv="content_scores.csv",
        source="content_claims",
    )


def orders(models: Sequence[Cell]) -> Table:
    """Show the loss reduction by number of hops and by number of heads."""
    counted = [(c, n, order(c, n), hops(c, n)) for c in models for n in range(c.summary.n_layers + 1)]
    return Table.of(
        [row for row in counted if row[-1] is not None],
        MODEL,
        Column("heads or hops", lambda _, n, *__: n),
        Column("by heads: own scale (nats)", lambda _, __, by_heads, ___: by_heads and by_heads.own_scale_nats),
        Column("by hops: own scale (nats)", ("own_scale_nats", "own_scale_low", "own_scale_high")),
        Column("by hops: scales frozen (nats)", ("added_nats", "added_low", "added_high")),
        caption="Fall of the held-out loss (nats per token) as paths through 0, 1, … heads are added in this order, "
        "and likewise content that changed position at 0, 1, … heads (hops). Before any are added, all logits are 0: a "
        "uniform guess. Attention patterns are fixed. Own scale: norms of the terms added so far; scales frozen: norms "
        "of the whole model. The CSV also has the split by offset.",
        csv="content.csv",
        source="content_loss_reduction",
    )


def matching_pairs(models: Sequence[Cell]) -> Table:
    """Show the matching of each model's induction head on the pair of paths that contributes most, and on AMF's
    pair."""
    found = [(c, h, matching(c, h.layer, h.head)) for c in models if (h := c.induction_head()) is not None]
    return Table.of(
        [row for row in found if row[-1] is not None],
        MODEL,
        Text("head", lambda _, head, __: head_label(head.layer, head.head)),
        Text("path to the query", "query"),
        Text("path to the key", "key"),
        Column("share of the preference", "judged_share"),
        Column("matching on this pair", "positivity"),
        Column("matching on AMF's pair", lambda _, head, __: head.qk_matching_positivity),
        caption="Matching of tokens (eigenvalue positivity, −1 to 1; above 0, tokens match themselves on average) on "
        "the pair of paths, one to the query and one to the key, that contributes most to the best induction head's "
        "preference. The pair is chosen on half of the windows of repeated random tokens, and its share of the "
        "preference is measured on the other half. AMF's pair is the direct path to the query and, to the key, the "
        "path through the first-layer head that attends most to the previous token on held-out text.",
        csv="matching.csv",
        source="matching_pairs",
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
        caption="Balance of the residual stream x that a layer or the unembedding reads, on held-out text. Norms "
        "(before normalization) are root mean squares over positions: of the embedding, of what each earlier layer "
        "writes, and of what each of its heads writes (range over heads; layers separated by “;”). Share of the direct "
        "path in x: power is Σ s² ‖embedding‖² / Σ s² ‖x‖², projection is Σ s² ⟨embedding, x⟩ / Σ s² ‖x‖², summed over "
        "positions, with s the norm scale at each.",
        csv="balance.csv",
    )


def _parts(cell: Cell, reader: int) -> dict[str, BalanceRow]:
    return {r.part: r for r in cell.rows(BalanceRow) if r.reader == reader}


def _heads(rows: Mapping[str, BalanceRow], layer: int) -> str:
    return span([r.norm for part, r in rows.items() if part.startswith(f"L{layer}H")], 1)


def content_scores(results: Results) -> Figure | None:
    """Draw the preference of the best induction head of up to MOST_MODELS models, by content at the query and at the
    key. None without content scores."""
    models = [c for c in (*results.cells.values(), *results.controls.values()) if of_induction_head(c)]
    if not models:
        return None
    small = [c for c in models if c.name in results.controls and c.name.startswith(SMALL)][:1]
    shown = [*[c for c in models if c.name in results.cells][: MOST_MODELS - len(small)], *small]
    if not shown:
        return None
    shares = [s for c in results.cells.values() if (s := share(of_induction_head(c), CURRENT, PREVIOUS)) is not None]
    caption = (
        "Preference of the best induction head for the token after the earlier occurrence of the current token "
        "(attention score before the softmax, in nats above the query's mean over keys, on repeated random tokens; "
        "chance is 0), split by the content that is compared. Row: the content at the query comes from this many "
        "tokens back; column: the same at the key; BOS: the first position. Box: current token at the query, previous "
        f"token at the key, as in an induction head; it holds {span(shares)} of the whole preference in "
        f"{plural(len(shares), 'model')} of the grid. "
        "Terms of position are not drawn."
    )
    rows = {c.name: [r for r in of_induction_head(c) if POSITION not in (r.query, r.key)] for c in models}
    title = "Scores of induction heads by content"
    return preferences("content_scores", title, caption, rows, shown, _mark, (3.2, 3.6))


def _mark(ax: Axes, cell: Cell, order: list[str]) -> None:
    at = order.index(PREVIOUS), order.index(CURRENT)
    ax.add_patch(Rectangle(at, 1, 1, fill=False, ec=symbols.ACCENT, lw=2, clip_on=False))
    ax.set(xlabel="content at the key (tokens back)", ylabel="content at the query (tokens back)")


THEME = Theme(
    TITLE,
    section,
    figures=(content_scores,),
    few_windows=True,
    sources={
        "content_claims": ("content_scores", "score_paths"),
        "content_loss_reduction": ("content", "terms"),
        "matching_pairs": ("matching", "heads"),
    },
    detectors={
        "keys_of_previous_token": DetectorText(
            "keys read by content",
            "stretches of text repeat, so a second-layer head must compare the current token at the query with the "
            "previous token at the key; a head has a preference of at least one nat, and at least half of it compares "
            "these two",
        )
    },
    relies_on=("keys_of_previous_token",),
    tables=("content_scores", "content", "matching", "balance"),
)
