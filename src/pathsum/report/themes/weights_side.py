"""The insides of heads: token clusters, joint copying, subspaces, deletion, virtual heads."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import head_label, number, plural, span
from pathsum.records.heads import HeadRow
from pathsum.records.joint_copying import JointCopyingRow
from pathsum.records.results import Cell, Results
from pathsum.records.subspaces import BandwidthRow, DeletingRow, OverlapRow
from pathsum.records.token_clusters import DirectionRow, TokenClusterRow
from pathsum.records.tokens import JOINER
from pathsum.records.virtual_heads import VirtualHeadRow
from pathsum.report.document import HEAD, MODEL, Column, Entry, Section, Table, Text
from pathsum.report.figures.subspaces import induction_edge, subspaces
from pathsum.report.symbols import visible
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Inside the heads"
BEYOND = 3  # standard deviations from which something is called beyond chance
CLUSTERS, DIRECTIONS, VIRTUAL = 4, 2, 3  # shown per model
TOKENS = 6  # shown of each group
FIXED = 0.1  # mean attention from which a virtual head is said to attend at a distance


def section(results: Results, figures: Figures) -> Section:
    """Describe the structure of heads: first what their weights show, last the cost of removing virtual heads."""
    cells = [c for c in results.cells.values() if c.rows(HeadRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no heads.",))
    text = (part(cells) for part in (_clusters, _joint, _bandwidth, _reading, _deleting, _virtual))
    return Section.of(TITLE, text, (_token_table(results), *drawn(figures, "subspaces"), _virtual_table(cells)))


# ---- text -----------------------------------------------------------------------------------------------------------


def _clusters(cells: Sequence[Cell]) -> str:
    found = [r for c in cells for r in c.rows(TokenClusterRow)]
    if not found:
        return ""
    return (
        "An eigenvector of the OV circuit with a real positive eigenvalue is a mixture of tokens that a head maps onto "
        "itself. The matrix is not normal, so the tokens of largest weight need not raise each other: of "
        f"{plural(len(found), 'leading eigenvector')}, {sum(_beyond(r) >= BEYOND for r in found)} are groups that do, "
        f"by {BEYOND} standard deviations above those of the same head with its writes rotated at random."
    )


def _joint(cells: Sequence[Cell]) -> str:
    groups = [(c, g) for c in cells for g in c.rows(JointCopyingRow)]
    if not groups:
        return "No two heads of a layer attend to the same positions (cosine of patterns ≥ 0.5), so none copy jointly."
    cell, best = max(groups, key=lambda pair: pair[1].top1)
    names = " and ".join(head_label(best.layer, int(h)) for h in best.heads.split())
    others = "" if best.chance_top1 is None else f", for other sets of as many heads {number(best.chance_top1)}"
    return (
        "Heads of a layer that attend to the same positions (cosine of patterns ≥ 0.5) act as one head: "
        f"{plural(len(groups), 'such group')}, {sum(g.top1 > g.best_top1 for _, g in groups)} of which copy more of "
        f"the vocabulary than the best of their heads. The group that copies most is {cell.name} {names}: attending to "
        f"a token raises that very token most for a share of {number(best.top1)} of all tokens; for the best of these "
        f"heads alone it is {number(best.best_top1)}{others}."
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
        f"The residual stream of the deepest models has {span([c.summary.d_model for c in some], 0)} directions. By "
        f"the participation ratio of singular values a head's W_OV uses {spans('W_OV')} of them, all heads of a model "
        f"together use {span([sum(model) for model in ranks('W_OV')], 0)}, and tokens differ along {spans('W_E')} in "
        f"W_E and {spans('W_U')} in W_U."
    )


def _reading(cells: Sequence[Cell]) -> str:
    edges = [o for c in cells for o in c.rows(OverlapRow) if o.spread > 0]
    if not edges:
        return ""
    below, above = (sum(s * (o.share - o.chance) > BEYOND * o.spread for o in edges) for s in (-1, 1))
    text = (
        f"Of {len(edges)} pairs of a reader and a writer in different layers, {above} overlap more and {below} less "
        f"than under random rotations, by {BEYOND} standard deviations."
    )
    keys = [o.share for c in cells for o in c.rows(OverlapRow) if o.kind == "K" and induction_edge(c, o)]
    if keys:
        text += (
            f" The keys of the induction head read {span(keys)} of what the previous-token head writes (chance "
            f"{span([o.chance for o in edges])})."
        )
    return text


def _deleting(cells: Sequence[Cell]) -> str:
    heads = [d for c in cells for d in c.rows(DeletingRow) if d.spread > 0]
    if not heads:
        return ""
    return (
        f"Later heads may delete what earlier layers wrote: {sum(d.alignment < -BEYOND * d.spread for d in heads)} of "
        f"{plural(len(heads), 'head')} write against what they read of it, beyond chance (alignment "
        f"{span([d.alignment for d in heads])}, where −1 would be deletion and 1 repetition); no head cancels more "
        f"than a share of {number(max(*(d.removed for d in heads), 0.0), 3)} of what earlier layers wrote at its own "
        "position."
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
        "Two heads in a row act as a virtual head, with the pattern A^late A^early and the OV matrix W_OV^late "
        "W_OV^early. In each model, deleting the path through the most important virtual head, with all patterns and "
        f"norm scales frozen, costs {span([v.cost_nats for _, v in tops])} nats per token (most in {cell.name}, "
        f"{_pair(most)}). In {sum(ends)} of the {plural(len(ends), 'model')} with an induction head, that virtual head "
        f"ends in the induction head. {clear} of {plural(len(known), 'virtual head')} cost more than {BEYOND} standard "
        "errors."
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
        Column("cohesion (by chance)", lambda _, r: "–" if isinstance(r, DirectionRow) else _cohesion(r)),
        Column("share of W_OV", lambda _, r: r.share if isinstance(r, DirectionRow) else None),
        caption="Tokens that heads act on, in the model of lowest loss of each depth: the groups of tokens that raise "
        "each other most clearly (cohesion in standard deviations of the circuit's entries; in brackets, with the "
        "head's writes rotated at random), and the singular directions of the largest share of W_OV (read → written). "
        "Every head of every model is in token_clusters.csv and directions.csv.",
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
        Column("cost (nats)", lambda _, v: f"{number(v.cost_nats, 3)} ± {number(v.cost_error_nats, 3)}"),
        Column("V-composition (chance)", lambda _, v: f"{number(v.composition)} ({number(v.composition_chance)})"),
        Column("copying positivity", "positivity"),
        Text("attends", lambda _, v: _distance(v)),
        Column("prefix matching", "prefix_matching"),
        caption=f"The {VIRTUAL} virtual heads of each model that cost most: loss without the path minus loss with it, "
        "± standard error over windows of held-out text; weights, and mean attention of A^late A^early (to its "
        f"strongest distance where that is ≥ {FIXED}, and prefix matching on repeated random tokens).",
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
