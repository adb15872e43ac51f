"""The section on the structure of heads: token clusters, joint copying, subspaces, deletion, virtual heads."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import head_label, number, plural, span
from pathsum.figures.subspaces import induction_edge, subspaces
from pathsum.figures.symbols import visible
from pathsum.page.document import HEAD, MODEL, Column, Entry, Section, Table, Text
from pathsum.records.heads import HeadRow
from pathsum.records.joint_copying import JointCopyingRow
from pathsum.records.results import Cell, Results
from pathsum.records.subspaces import BandwidthRow, DeletingRow, OverlapRow
from pathsum.records.token_clusters import DirectionRow, TokenClusterRow
from pathsum.records.tokens import JOINER
from pathsum.records.virtual_heads import VirtualHeadRow
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Inside the heads"
BEYOND = 3  # standard deviations from which a value counts as beyond chance
CLUSTERS, DIRECTIONS, VIRTUAL = 4, 2, 3  # shown per model
TOKENS = 6  # shown of each group
LITTLE = 0.01  # share of the tokens below which a group of heads hardly copies
FIXED = 0.1  # mean attention at one distance from which a virtual head counts as attending at that distance


def section(results: Results, figures: Figures) -> Section:
    """Describe the structure of heads by their weights, and the effect on the loss of removing virtual heads."""
    cells = [c for c in results.cells.values() if c.rows(HeadRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no heads.",))
    text = (part(cells) for part in (_clusters, _joint, _bandwidth, _overlaps, _deleting, _virtual))
    return Section.of(TITLE, text, (_token_table(results), *drawn(figures, "subspaces"), _virtual_table(cells)))


# ---- text -----------------------------------------------------------------------------------------------------------


def _clusters(cells: Sequence[Cell]) -> str:
    found = [r for c in cells for r in c.rows(TokenClusterRow)]
    if not found:
        return ""
    return (
        "Token clusters. An eigenvector of the OV circuit with a real positive eigenvalue is a mixture of tokens that "
        "the head maps onto itself. For each head, the tokens with the largest weights in each of its leading "
        "eigenvectors of this kind are a cluster. The matrix is not normal, so the tokens of a cluster need not raise "
        f"each other's logits. They do in {sum(_beyond(r) >= BEYOND for r in found)} of "
        f"{plural(len(found), 'cluster')}: the cohesion (defined at the table) is at least {BEYOND} standard "
        "deviations above its mean for the same head with randomly rotated writes."
    )


def _joint(cells: Sequence[Cell]) -> str:
    groups = [(c, g) for c in cells for g in c.rows(JointCopyingRow)]
    if not groups:
        return (
            "Joint copying. No two heads of a layer attend to the same positions (cosine of patterns ≥ 0.5), so none "
            "copy jointly."
        )
    cell, best = max(groups, key=lambda pair: pair[1].top1)
    names = " and ".join(head_label(best.layer, int(h)) for h in best.heads.split())
    more = [g.top1 for _, g in groups if g.top1 > g.best_top1]
    little = sum(top1 < LITTLE for top1 in more)
    still = f" (in {little} of these, less than {LITTLE:.0%} of the tokens)".replace("%", " %") if little else ""
    chance = best.chance_top1
    others = "" if chance is None else f"; other sets of as many heads of the layer copy {number(chance)} on average"
    return (
        "Joint copying. Heads of a layer with equal patterns act as one head with the sum of their OV circuits; heads "
        "with similar patterns (cosine ≥ 0.5) do so approximately. A circuit copies a token if it raises the token's "
        f"own logit more than any other. In {len(more)} of {plural(len(groups), 'group')} of heads with similar "
        f"patterns, the sum copies more tokens than the best head alone{still}. In the group that copies most "
        f"({cell.name}, heads {names}), the sum copies a share of {number(best.top1)} of the tokens, and the best head "
        f"alone {number(best.best_top1)}{others}."
    )


def _bandwidth(cells: Sequence[Cell]) -> str:
    deepest = max(c.summary.n_layers for c in cells)
    some = [c for c in cells if c.summary.n_layers == deepest and c.rows(BandwidthRow)]
    if not some:
        return ""

    def ranks(part: str) -> list[list[float]]:
        return [[b.effective_rank for b in c.rows(BandwidthRow) if b.part == part] for c in some]

    def spans(part: str) -> str:
        return span([rank for model in ranks(part) for rank in model], 0)

    return (
        f"Effective rank. The residual stream of the deepest models has {span([c.summary.d_model for c in some], 0)} "
        f"directions. By the participation ratio of the singular values σ, (Σ σ²)² / Σ σ⁴, the W_OV of a head uses "
        f"{spans('W_OV')} of them; the sum over all heads of a model is "
        f"{span([sum(model) for model in ranks('W_OV')], 0)}. By the same measure, tokens differ along {spans('W_E')} "
        f"directions in W_E and {spans('W_U')} in W_U."
    )


def _overlaps(cells: Sequence[Cell]) -> str:
    edges = [o for c in cells for o in c.rows(OverlapRow) if o.spread > 0]
    if not edges:
        return ""
    below, above = (sum(s * (o.share - o.chance) > BEYOND * o.spread for o in edges) for s in (-1, 1))
    text = (
        "Overlap is the share of an earlier head's write (of ‖W_OV‖²) that lies in the subspace that a later head's "
        f"queries, keys or values read. Of {len(edges)} overlaps, {above} exceed the mean under random rotations by "
        f"more than {BEYOND} standard deviations, and {below} are below it by as much."
    )
    keys = [o.share for c in cells for o in c.rows(OverlapRow) if o.kind == "K" and induction_edge(c, o)]
    if keys:
        text += (
            f" For the previous-token head and the keys of the induction head, the overlap is {span(keys)} (chance "
            f"{span([o.chance for o in edges])})."
        )
    return text


def _deleting(cells: Sequence[Cell]) -> str:
    heads = [d for c in cells for d in c.rows(DeletingRow) if d.spread > 0]
    if not heads:
        return ""
    return (
        "Deletion. A head may delete what earlier layers wrote. Alignment is −1 if the head's W_OV maps earlier writes "
        f"to their opposites, and 1 if it repeats them. It is {span([d.alignment for d in heads])}, and more than "
        f"{BEYOND} standard deviations below chance (0) in {sum(d.alignment < -BEYOND * d.spread for d in heads)} of "
        f"{plural(len(heads), 'head')} after the first layer. No "
        f"head cancels more than a share of {number(max(*(d.removed for d in heads), 0.0), 3)} of what earlier layers "
        "wrote at its own position."
    )


def _virtual(cells: Sequence[Cell]) -> str:
    known = [(c, v) for c in cells for v in c.rows(VirtualHeadRow)]
    if not known:
        return ""
    cell, most = max(known, key=lambda pair: pair[1].cost_nats)
    tops = [(c, max(c.rows(VirtualHeadRow), key=lambda v: v.cost_nats)) for c in cells if c.rows(VirtualHeadRow)]
    ends = [(v.late_layer, v.late_head) == (h.layer, h.head) for c, v in tops if (h := c.formed_induction_head())]
    clear = sum(v.cost_nats > BEYOND * v.cost_error_nats for _, v in known)
    return (
        "Virtual heads. Two heads in a row act as a virtual head with the pattern A^late A^early and the OV matrix "
        "W_OV^late W_OV^early. In each model that has virtual heads, removal of the path through the most important "
        "one, with all patterns and norm scales frozen, raises the held-out loss by "
        f"{span([v.cost_nats for _, v in tops], 3)} nats per token (most in {cell.name}, {_pair(most)}). In "
        f"{sum(ends)} of the {plural(len(ends), 'model')} with an induction head, the later head of this virtual head "
        f"is the induction head. For {clear} of {plural(len(known), 'virtual head')}, removal raises the loss by more "
        f"than {BEYOND} standard errors."
    )


# ---- tables ---------------------------------------------------------------------------------------------------------


def _token_table(results: Results) -> Table:
    rows: list[tuple[Cell, TokenClusterRow | DirectionRow]] = []
    for n in results.layer_counts():
        if known := [c for c in results.with_layers(n) if len(c.rows(TokenClusterRow)) + len(c.rows(DirectionRow))]:
            best = min(known, key=lambda c: c.summary.val_loss_nats)
            clusters = sorted(best.rows(TokenClusterRow), key=_beyond, reverse=True)[:CLUSTERS]
            leading = sorted((d for d in best.rows(DirectionRow) if d.rank == 1), key=lambda d: -d.share)[:DIRECTIONS]
            rows += [*((best, r) for r in clusters), *((best, d) for d in leading)]
    return Table.of(
        rows,
        MODEL,
        HEAD,
        Text("tokens", lambda _, r: _tokens(r.read if isinstance(r, DirectionRow) else r.tokens), kind="token"),
        Text(
            "→ written", lambda _, r: Entry(_tokens(r.written), "token") if isinstance(r, DirectionRow) else "the same"
        ),
        Column("cohesion (chance)", lambda _, r: "–" if isinstance(r, DirectionRow) else _cohesion(r)),
        Column("share of W_OV", lambda _, r: r.share if isinstance(r, DirectionRow) else None),
        caption="Tokens on which heads act, for the model of each depth with the lowest held-out loss. First rows: "
        "the clusters of tokens that most clearly raise each other's logits. Cohesion is the mean entry of the OV "
        "circuit over pairs of tokens of the cluster, in standard deviations of all its entries; in parentheses, the "
        "baseline with the head's writes randomly rotated (mean ± standard deviation). Last rows: the singular "
        "directions of W_OV that hold the largest share of ‖W_OV‖², as tokens read → tokens written. At most "
        f"{TOKENS} tokens of each cluster or direction are shown. The files token_clusters.csv and directions.csv have "
        "every head of every model.",
        csv="token_clusters.csv",
    )


def _cohesion(r: TokenClusterRow) -> str:
    return f"{number(r.cohesion)} ({number(r.chance)} ± {number(r.spread)})"


def _tokens(joined: str) -> str:
    return " ".join(visible(t, 24) for t in joined.split(JOINER)[:TOKENS])


def _beyond(r: TokenClusterRow) -> float:
    return (r.cohesion - r.chance) / r.spread if r.spread > 0 else 0.0


def _virtual_table(cells: Sequence[Cell]) -> Table:
    return Table.of(
        [
            (c, v)
            for c in sorted(cells, key=lambda c: c.name)
            for v in sorted(c.rows(VirtualHeadRow), key=lambda v: -v.cost_nats)[:VIRTUAL]
        ],
        MODEL,
        Text("early → late", lambda _, v: _pair(v)),
        Column("rise of the loss (nats)", lambda _, v: f"{number(v.cost_nats, 3)} ± {number(v.cost_error_nats, 3)}"),
        Column("V-composition (chance)", lambda _, v: f"{number(v.composition)} ({number(v.composition_chance)})"),
        Column("copying positivity", "positivity"),
        Text("attends (tokens back: mean attention)", lambda _, v: _distance(v)),
        Column("prefix matching", "prefix_matching"),
        caption=f"The {VIRTUAL} virtual heads of each model whose removal raises the loss most: rise of the held-out "
        "loss (± standard error over documents), V-composition score, eigenvalue positivity of the OV circuit, and "
        f"mean attention of the pattern A^late A^early: at its strongest distance, if it is ≥ {FIXED} there, and to "
        "the token after an earlier occurrence (prefix matching on repeated random tokens).",
        csv="virtual_heads.csv",
    )


def _distance(v: VirtualHeadRow) -> str:
    return f"{v.peak_distance} back: {number(v.peak_attention)}" if v.peak_attention >= FIXED else "no fixed distance"


def _pair(v: VirtualHeadRow) -> str:
    return f"{head_label(v.early_layer, v.early_head)} → {head_label(v.late_layer, v.late_head)}"


THEME = Theme(
    TITLE,
    section,
    figures=(subspaces,),
    sources={"subspaces": ("overlaps", "deleting"), "token_clusters": ("token_clusters", "directions")},
    tables=("token_clusters", "directions", "joint_copying", "bandwidth", "overlaps", "deleting", "virtual_heads"),
)
