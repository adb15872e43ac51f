"""Inside the heads: token clusters, joint copying, subspaces, deletion, virtual heads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pathsum.claims.formatting import head_label, number, plural, span
from pathsum.records.heads import HeadRow
from pathsum.records.joint_copying import JointCopyingRow
from pathsum.records.results import Cell, Results
from pathsum.records.subspaces import BandwidthRow, DeletingRow, OverlapRow
from pathsum.records.token_clusters import DirectionRow, TokenClusterRow
from pathsum.records.virtual_heads import VirtualHeadRow
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures.subspaces import induction_edge, subspaces
from pathsum.report.symbols import visible
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Inside the heads"
BEYOND = 3  # standard deviations from which something is called beyond chance
CLUSTERS, DIRECTIONS, VIRTUAL = 4, 2, 3  # shown a model
TOKENS = 6  # shown of each group
FIXED = 0.1  # mean attention from which a virtual head is said to look at a distance


def section(results: Results, figures: Figures) -> Section:
    """What heads are made of, by weights first and by effect last."""
    cells = [c for c in results.cells.values() if c.rows(HeadRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no heads.",), ())
    shown = drawn(figures, "subspaces")
    paragraphs = (
        _clusters(cells),
        _joint(cells),
        _bandwidth(cells),
        _reading(cells),
        _deleting(cells),
        _virtual(cells),
    )
    return Section(TITLE, tuple(p for p in paragraphs if p), (*_token_table(results), *shown, *_virtual_table(cells)))


# ---- what is said ---------------------------------------------------------------------------------------------------


def _clusters(cells: Sequence[Cell]) -> str:
    found = [r for c in cells for r in c.rows(TokenClusterRow)]
    if not found:
        return ""
    clear = sum(_beyond(r) >= BEYOND for r in found)
    return (
        "An eigenvector of the OV circuit with a real positive eigenvalue is a mixture of tokens that a head maps onto "
        "itself. The matrix is not normal, so the tokens of largest weight need not raise each other: of "
        f"{plural(len(found), 'leading eigenvector')}, {clear} are groups that do, by {BEYOND} standard deviations "
        "above those of the same head with its writes rotated at random."
    )


def _joint(cells: Sequence[Cell]) -> str:
    groups = [(c, g) for c in cells for g in c.rows(JointCopyingRow)]
    if not groups:
        return "No two heads of a layer look at the same places (cosine of patterns ≥ 0.5), so none copy jointly."
    cell, best = max(groups, key=lambda pair: pair[1].top1)
    names = " and ".join(head_label(best.layer, int(h)) for h in best.heads.split())
    others = "" if best.chance_top1 is None else f", for other sets of as many heads {number(best.chance_top1)}"
    more = sum(g.top1 > g.best_top1 for _, g in groups)
    return (
        f"Heads of a layer that look at the same places (cosine of patterns ≥ 0.5) act as one: "
        f"{plural(len(groups), 'such group')}, {more} of which copy more of the vocabulary than the best of their "
        f"heads. The group that copies most is {cell.name} {names}: attending to a token raises that very token most "
        f"for a share of {number(best.top1)} of all tokens; for the best of these heads alone it is "
        f"{number(best.best_top1)}{others}."
    )


def _bandwidth(cells: Sequence[Cell]) -> str:
    deepest = max(c.summary.n_layers for c in cells)
    some = [c for c in cells if c.summary.n_layers == deepest and c.rows(BandwidthRow)]
    if not some:
        return ""
    used = {
        part: [b.effective_rank for c in some for b in c.rows(BandwidthRow) if b.part == part]
        for part in ("W_E", "W_U")
    }
    heads = [b.effective_rank for c in some for b in c.rows(BandwidthRow) if b.part == "W_OV"]
    demand = [sum(b.effective_rank for b in c.rows(BandwidthRow) if b.part == "W_OV") for c in some]
    d_model = span([c.summary.d_model for c in some], 0)
    return (
        f"The residual stream of the deepest models has {d_model} directions. By the participation ratio of singular "
        f"values a head's W_OV uses {span(heads, 0)} of them, all heads of a model together ask for {span(demand, 0)}, "
        f"and tokens differ along {span(used['W_E'], 0)} in W_E and {span(used['W_U'], 0)} in W_U."
    )


def _reading(cells: Sequence[Cell]) -> str:
    edges = [o for c in cells for o in c.rows(OverlapRow) if o.spread > 0]
    if not edges:
        return ""
    below, above = (sum(s * (o.share - o.chance) > BEYOND * o.spread for o in edges) for s in (-1, 1))
    keys = [o.share for c in cells for o in c.rows(OverlapRow) if o.kind == "K" and induction_edge(c, o)]
    chance = span([o.chance for o in edges])
    induction = (
        f" The keys of the induction head read {span(keys)} of what the previous-token head writes (chance {chance})."
    )
    return (
        f"Of {len(edges)} readers and writers in different layers, {above} overlap more than a random rotation would "
        f"let them and {below} less, by {BEYOND} standard deviations.{induction if keys else ''}"
    )


def _deleting(cells: Sequence[Cell]) -> str:
    heads = [d for c in cells for d in c.rows(DeletingRow) if d.spread > 0]
    if not heads:
        return ""
    against = sum(d.alignment < -BEYOND * d.spread for d in heads)
    most = max(d.removed for d in heads)
    return (
        f"Does a later head delete what earlier layers wrote? {against} of {plural(len(heads), 'head')} write against "
        f"what they read of it beyond chance (alignment {span([d.alignment for d in heads])}, where −1 would be "
        f"deletion and 1 repetition); no head cancels more than {number(max(most, 0.0), 3)} of what stands at its own "
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
        "Two heads in a row act as a virtual head, with the pattern A^late A^early and the OV matrix "
        "W_OV^late W_OV^early. Taking away the path of the strongest of each model, all patterns and norm scales kept, "
        f"costs {span([v.cost_nats for _, v in tops])} nats per token, most in {cell.name} ({_pair(most)}). Where an "
        f"induction head has formed, it ends there in {sum(ends)} of {plural(len(ends), 'model')}. {clear} of "
        f"{plural(len(known), 'virtual head')} cost more than {BEYOND} standard errors."
    )


# ---- what is shown --------------------------------------------------------------------------------------------------


def _token_table(results: Results) -> tuple[Table, ...]:
    fields: list[tuple[Entry, ...]] = []
    for n in results.layer_counts():
        known = [c for c in results.with_layers(n) if len(c.rows(TokenClusterRow)) + len(c.rows(DirectionRow))]
        if not known:
            continue
        best = min(known, key=lambda c: c.summary.val_loss_nats)
        clusters = sorted(best.rows(TokenClusterRow), key=_beyond, reverse=True)[:CLUSTERS]
        leading = sorted((d for d in best.rows(DirectionRow) if d.rank == 1), key=lambda d: -d.share)[:DIRECTIONS]
        fields += [_cluster(best, r) for r in clusters] + [_direction(best, d) for d in leading]
    if not fields:
        return ()
    caption = (
        "What heads are about, in the model of lowest loss of each depth: the groups of tokens that raise each other "
        "most clearly (cohesion in standard deviations of the circuit's entries; in brackets, with the head's writes "
        "rotated at random), and the singular directions of the largest share of W_OV (read → written). Every head of "
        "every model is in token_clusters.csv and directions.csv."
    )
    columns = ("cell", "head", "tokens", "→ written", "cohesion (by chance)", "share of W_OV")
    return (Table(caption, columns, tuple(fields), "token_clusters.csv"),)


def _cluster(cell: Cell, r: TokenClusterRow) -> tuple[Entry, ...]:
    chance = f"{number(r.cohesion)} ({number(r.chance)} ± {number(r.spread)})"
    return (*_names(cell, r), _tokens(r.tokens), Entry("the same"), Entry(chance, "number"), Entry("–", "number"))


def _direction(cell: Cell, d: DirectionRow) -> tuple[Entry, ...]:
    share = Entry(number(d.share), "number")
    return (*_names(cell, d), _tokens(d.read), _tokens(d.written), Entry("–", "number"), share)


def _names(cell: Cell, r: TokenClusterRow | DirectionRow) -> tuple[Entry, Entry]:
    return Entry(cell.name), Entry(head_label(r.layer, r.head))


def _tokens(joined: str) -> Entry:
    return Entry(" ".join(visible(t, 24) for t in joined.split("␟")[:TOKENS]), "token")


def _beyond(r: TokenClusterRow) -> float:
    return (r.cohesion - r.chance) / r.spread if r.spread > 0 else 0.0


def _virtual_table(cells: Sequence[Cell]) -> tuple[Table, ...]:
    known = sorted(((c, v) for c in cells for v in c.rows(VirtualHeadRow)), key=lambda pair: -pair[1].cost_nats)
    by_cell = [list(part)[:VIRTUAL] for _, part in groupby(sorted(known, key=lambda p: p[0].name), lambda p: p[0].name)]
    fields = tuple(_virtual_row(c, v) for part in by_cell for c, v in part)
    if not fields:
        return ()
    columns = (
        "cell",
        "early → late",
        "cost (nats)",
        "V-composition (chance)",
        "copying positivity",
        "looks",
        "prefix matching",
    )
    caption = (
        f"The {VIRTUAL} virtual heads of each model that cost most: loss without the path minus loss with it, ± "
        "standard error over windows of held-out text; weights, and mean attention of A^late A^early "
        f"(to its favourite distance where that is ≥ {FIXED}, and prefix matching on repeated random tokens)."
    )
    return (Table(caption, columns, fields, "virtual_heads.csv"),)


def _virtual_row(cell: Cell, v: VirtualHeadRow) -> tuple[Entry, ...]:
    return (
        Entry(cell.name),
        Entry(_pair(v)),
        Entry(f"{number(v.cost_nats, 3)} ± {number(v.cost_error_nats, 3)}", "number"),
        Entry(f"{number(v.composition)} ({number(v.composition_chance)})", "number"),
        Entry(number(v.positivity), "number"),
        Entry(
            f"{v.peak_distance} back: {number(v.peak_attention)}" if v.peak_attention >= FIXED else "no fixed distance"
        ),
        Entry(number(v.prefix_matching), "number"),
    )


def _pair(v: VirtualHeadRow) -> str:
    return f"{head_label(v.early_layer, v.early_head)} → {head_label(v.late_layer, v.late_head)}"


THEME = Theme(
    TITLE,
    section,
    figures=(subspaces,),
    sources={"subspaces": ("overlaps", "deleting"), "token_clusters": ("token_clusters", "directions")},
    tables=("token_clusters", "directions", "joint_copying", "bandwidth", "overlaps", "deleting", "virtual_heads"),
)
