"""The papers' numbers beside this suite's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathsum.claims.content import hops, order, virtual_heads_little
from pathsum.claims.formatting import millions, span
from pathsum.claims.phase_change import icl_loss_drop_before_onset
from pathsum.records.content import ContentRow
from pathsum.records.heads import HeadRow
from pathsum.records.joint_copying import JointCopyingRow
from pathsum.records.results import Cell, Results
from pathsum.records.terms import TermRow
from pathsum.report.document import Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "Against the papers' numbers"


def section(results: Results, _: Figures) -> Section:
    """One table, and nothing else."""
    return Section(TITLE, (), (_table(results),))


def _table(results: Results) -> Table:
    """The papers' numbers beside ours, agreeing or not."""
    one, two = results.with_layers(1), results.with_layers(2)
    fields = (
        _copying(one),
        *_loss_drop(two),
        _tokens(two),
        _formed(two, "prefix matching of a formed induction head", "0.68–0.75 (public 2-layer checkpoints)", 0.6, "pm"),
        _formed(two, "attention of a previous-token head", "≈ 1.0 (public 2-layer checkpoints)", 0.9, "prev"),
        _rank_of_terms(two),
        (
            "composition scores",
            "AMF's corrected figure",
            "norms taken of the products themselves, before any cyclic permutation",
            "by construction",
        ),
        _joint_copying(two),
    )
    return Table.of(
        fields,
        Text("quantity", lambda quantity, *_: quantity),
        Text("papers", lambda _, papers, *__: papers),
        Text("ours", lambda _, __, ours, ___: ours),
        Text("agrees", lambda *row: row[-1]),
        caption="Reference values, ours beside them (ranges over models). Agreement is of kind and size, not a test. A "
        "number is compared with the papers' only where it is measured as theirs.",
        source="references",
    )


def _agrees(condition: bool) -> str:
    return "yes" if condition else "no"


def _copying(one: Sequence[Cell]) -> tuple[str, str, str, str]:
    copying, total = sum(c.summary.copying_heads or 0 for c in one), sum(len(c.rows(HeadRow)) for c in one)
    if not total:
        return "one-layer heads that copy", "10 of 12 (AMF)", "–", "no such model"
    name = "one-layer heads of positive OV eigenvalues (AMF's criterion of copying)"
    return name, "10 of 12 (AMF)", f"{copying} of {total}", _agrees(copying >= 0.7 * total)


def _loss_drop(two: Sequence[Cell]) -> tuple[tuple[str, str, str, str], ...]:
    """At ICL's own positions; the suite's wider ends of the window are another quantity."""
    changed = [c for c in two if c.summary.onset_tokens is not None]
    before = [drop for c in changed if (drop := icl_loss_drop_before_onset(c)) is not None]
    after = [drop for c in changed if (drop := c.summary.icl_loss_drop_nats) is not None]
    late = span(sorted({c.summary.icl_late_token or 0 for c in two}), 0)
    names = tuple(f"loss drop {when} (tokens 50 ± 5 − {late} ± 5)" for when in ("just before the onset", "at the end"))
    papers = ("< 0.15 nats (ICL: 50th − 500th)", "≈ 0.4 nats (ICL: 50th − 500th)")
    if not before or not after:
        why = "windows too short" if changed else "no phase change here"
        return tuple((n, p, "–", why) for n, p in zip(names, papers, strict=True))
    ours = [c.summary.in_context_loss_drop_nats for c in changed]
    return (
        (names[0], papers[0], f"{span(before)} nats", _agrees(max(before) < 0.15)),
        (names[1], papers[1], f"{span(after)} nats", _agrees(min(after) >= 0.3)),
        ("loss drop at the end (8 to 12 % of the window − its last tenth)", "–", f"{span(ours)} nats", "not compared"),
    )


def _joint_copying(two: Sequence[Cell]) -> tuple[str, str, str, str]:
    name, paper = "top-1 copying by the best head of a pattern / all of it together", "31 % / 96 % (two heads)"
    groups = [g for c in two for g in c.rows(JointCopyingRow) if g.layer > 0]
    if not groups:
        return name, paper, "–", "no two later heads attend to the same positions" if two else "no such model"
    best = max(groups, key=lambda g: g.top1)
    return name, paper, f"{best.best_top1:.0%} / {best.top1:.0%}".replace("%", " %"), _agrees(best.top1 >= 0.9)


def _rank_of_terms(two: Sequence[Cell]) -> tuple[str, str, str, str]:
    name, paper = "rank of terms: virtual heads", "below the direct path and single heads (AMF)"
    by_hops, by_heads = (_worth_of(two, term) for term in (hops, order))
    if by_hops is None or by_heads is None:
        return name, paper, "–", "not measured here"
    agrees = all(virtual_heads_little(c).passes for c in two)
    ours = f"{by_hops} nats: no hop; one; two. By heads {by_heads}: direct path; single heads; virtual heads"
    return name, paper, ours, _agrees(agrees)


def _worth_of(cells: Sequence[Cell], term: Callable[[Cell, int], ContentRow | TermRow | None]) -> str | None:
    """Ranges over models of what orders 0, 1 and 2 add at their own scale; None where it is not known of all."""
    worth = [[t.own_scale_nats for n in range(3) if (t := term(c, n)) is not None] for c in cells]
    known = [[v for v in values if v is not None] for values in worth]
    if not known or not all(len(values) == 3 for values in known):
        return None
    return "; ".join(span(list(values)) for values in zip(*known, strict=True))


def _tokens(two: Sequence[Cell]) -> tuple[str, str, str, str]:
    onsets = [float(c.summary.onset_tokens) for c in two if c.summary.onset_tokens is not None]
    name, paper = "tokens at the phase change", "1–3 B, models at scale (ICL)"
    if not onsets:
        return name, paper, "–", "no phase change here"
    verdict = "yes" if max(onsets) >= 1e9 else "sooner: smaller model, batch and context"
    ours = f"{millions(min(onsets))} to {millions(max(onsets))}" if len(set(onsets)) > 1 else millions(onsets[0])
    return name, paper, ours, verdict


def _formed(two: Sequence[Cell], name: str, paper: str, low: float, which: str) -> tuple[str, str, str, str]:
    scores = [c.summary.prefix_matching if which == "pm" else c.summary.previous_token for c in two]
    known = [s for s in scores if s is not None]
    if not known:
        return name, paper, "–", "no such model"
    return name, paper, span(known), _agrees(min(known) >= low)


THEME = Theme(TITLE, section, sources={"references": ("summary", "terms", "joint_copying")})
