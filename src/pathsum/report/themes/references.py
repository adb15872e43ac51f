"""The section that compares the papers' numbers with those of this suite (docs/framework.md §8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathsum.claims.content import hops, order, virtual_heads_little
from pathsum.claims.formatting import millions, span
from pathsum.claims.phase_change import AFTER, BEFORE, icl_loss_drop_before_onset
from pathsum.page.document import Section, Table, Text
from pathsum.probes.in_context import LONG_CONTEXT
from pathsum.records.content import ContentRow
from pathsum.records.heads import HeadRow
from pathsum.records.joint_copying import JointCopyingRow
from pathsum.records.results import Cell, Results
from pathsum.records.terms import TermRow
from pathsum.report.theme import Figures, Theme

TITLE = "Comparison with the papers' numbers"
NO_MODEL = ("–", "no such model")
Ours = tuple[str, str]  # our value, and whether it agrees


def section(results: Results, _: Figures) -> Section:
    """Compare the papers' numbers with ours, and say which agree."""
    one, two = results.with_layers(1), results.with_layers(2)
    matching = [best.prefix_matching for c in two if (best := c.formed_induction_head())]
    previous = [c.summary.previous_token for c in two if c.summary.previous_token is not None]
    fields: tuple[tuple[str, str, Ours], ...] = (
        ("one-layer heads of positive OV eigenvalues (AMF's evidence of copying)", "10 of 12 (AMF)", _copying(one)),
        *_loss_drop(two),
        ("tokens at the phase change", "1–3 B, models at scale (ICL)", _tokens(two)),
        (
            "prefix matching of a formed induction head",
            "0.68–0.75 (public 2-layer checkpoints)",
            (span(matching), _agrees(min(matching) >= 0.6)) if matching else NO_MODEL,
        ),
        (
            "attention of a previous-token head",
            "≈ 1.0 (public 2-layer checkpoints)",
            (span(previous), _agrees(min(previous) >= 0.9)) if previous else NO_MODEL,
        ),
        ("rank of terms: virtual heads", "below the direct path and single heads (AMF)", _rank_of_terms(two)),
        (
            "composition scores",
            "AMF's corrected figure",
            ("norms taken of the products themselves, before any cyclic permutation", "by construction"),
        ),
        (
            "tokens that raise their own logit most: best head of a group with similar patterns / whole group",
            "31 % / 96 % (two heads of a public 2-layer checkpoint)",
            _joint_copying(two),
        ),
    )
    table = Table.of(
        fields,
        Text("quantity", lambda quantity, *_: quantity),
        Text("papers", lambda _, papers, __: papers),
        Text("ours", lambda _, __, ours: ours[0]),
        Text("agrees", lambda _, __, ours: ours[1]),
        caption="Values of the papers or of public checkpoints, and ours (ranges over models, or counts). Agreement "
        "means the same kind of effect of similar size; it is not a statistical test. Parentheses give the source and, "
        "where the papers measure something else, what is measured. Loss drops are measured on all held-out windows. "
        "As in ICL, nothing is subtracted from them.",
        source="references",
    )
    return Section(TITLE, (), (table,))


def _agrees(condition: bool) -> str:
    return "yes" if condition else "no"


def _copying(one: Sequence[Cell]) -> Ours:
    copying, total = sum(c.summary.copying_heads or 0 for c in one), sum(len(c.rows(HeadRow)) for c in one)
    return (f"{copying} of {total}", _agrees(copying >= 0.7 * total)) if total else NO_MODEL


def _loss_drop(two: Sequence[Cell]) -> tuple[tuple[str, str, Ours], ...]:
    """Return rows (quantity, the papers' value, ours) with the loss drop at ICL's positions, for models with an
    onset."""
    changed = [c for c in two if c.summary.onset_tokens is not None]
    ends = [(icl_loss_drop_before_onset(c), c.summary.icl_loss_drop_nats) for c in changed]
    known = [(first, last) for first, last in ends if first is not None and last is not None]
    before, after = [first for first, _ in known], [last for _, last in known]
    rise = [last - first for first, last in known]
    late = span([t for c in two if (t := c.summary.icl_late_token) is not None], 0)
    moments = (
        "loss drop just before the onset",
        "rise of the loss drop from then to the end",
        "loss drop at the end",
    )
    names = [f"{moment} (tokens 50 ± 5 − {late} ± 5)" for moment in moments]
    papers = [f"{value} nats (ICL: 50th − 500th)" for value in (f"< {BEFORE}", f"> {AFTER - BEFORE:.2g}", "≈ 0.4")]
    if not known:
        absent = ("–", "windows too short" if changed else "no phase change here")
        return tuple((name, paper, absent) for name, paper in zip(names, papers, strict=True))
    compared = (
        (names[0], papers[0], (f"{span(before)} nats", _small(before))),
        (names[1], papers[1], (f"{span(rise)} nats", _agrees(min(rise) > AFTER - BEFORE))),
        (names[2], papers[2], (f"{span(after)} nats", _agrees(min(after) >= AFTER))),
    )
    short = [c.summary.in_context_loss_drop_nats for c in changed if c.summary.n_ctx < LONG_CONTEXT]
    if not short:
        return compared
    name = "loss drop at the end (8 to 12 % of the window − its last tenth)"
    return (*compared, (name, "–", (f"{span(short)} nats", "not compared")))


def _small(before: Sequence[float]) -> str:
    below = sum(drop < 0 for drop in before)
    small = max(before) < BEFORE
    return f"below {BEFORE} nats, but negative in {below} of {len(before)}" if small and below else _agrees(small)


def _tokens(two: Sequence[Cell]) -> Ours:
    onsets = [float(c.summary.onset_tokens) for c in two if c.summary.onset_tokens is not None]
    if not onsets:
        return "–", "no phase change here"
    verdict = "yes" if max(onsets) >= 1e9 else "sooner: smaller model, batch and context"
    return " to ".join(map(millions, sorted({min(onsets), max(onsets)}))), verdict


def _rank_of_terms(two: Sequence[Cell]) -> Ours:
    by_hops, by_heads = (_added(two, term) for term in (hops, order))
    if by_hops is None or by_heads is None:
        return "–", "not measured here"
    ours = (
        f"fall of the loss (nats) by content that no head moved {by_hops[0]}, one head {by_hops[1]}, two heads "
        f"{by_hops[2]}; by the direct path {by_heads[0]}, single heads {by_heads[1]}, virtual heads {by_heads[2]}"
    )
    return ours, _agrees(all(virtual_heads_little(c).passes for c in two))


def _added(cells: Sequence[Cell], term: Callable[[Cell, int], ContentRow | TermRow | None]) -> list[str] | None:
    """Format the loss reductions at own scale by the terms 0, 1 and 2 of ``term`` (``hops`` or ``order``), as ranges
    over models. None without models, or if a model lacks one of them."""
    added = [[t.own_scale_nats for n in range(3) if (t := term(c, n)) is not None] for c in cells]
    known = [[v for v in values if v is not None] for values in added]
    if not known or not all(len(values) == 3 for values in known):
        return None
    return [span(list(values)) for values in zip(*known, strict=True)]


def _joint_copying(two: Sequence[Cell]) -> Ours:
    groups = [g for c in two for g in c.rows(JointCopyingRow) if g.layer > 0]
    if not groups:
        return ("–", "no two later heads attend to the same positions") if two else NO_MODEL
    best = max(groups, key=lambda g: g.top1)
    return f"{best.best_top1:.0%} / {best.top1:.0%}".replace("%", " %"), _agrees(best.top1 >= 0.9)


THEME = Theme(
    TITLE,
    section,
    sources={"references": ("log", "summary", "heads", "terms", "content", "formation", "joint_copying")},
)
