"""Two layers: the heads of induction, the edges between heads, and what composition scores mean."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pathsum.claims.formatting import head_label, number, plural, span
from pathsum.records.composition import COMPOSITION_RULE, SIGNIFICANT, CompositionRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.figures.composition import KINDS, composition
from pathsum.report.figures.heads import attention_by_distance
from pathsum.report.figures.induction import induction_corner
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "Two layers"
NEARLY_ALL = 0.5  # share of edges that reject the null from which a rejection says little about a single edge


def section(results: Results, figures: Figures) -> Section:
    """Name the heads of the mechanism, and every edge that composes."""
    cells, shown = results.with_layers(2), drawn(figures, "attention_by_distance", "composition", "induction_corner")
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model.",), shown)
    return Section.of(TITLE, (_mechanism(cells), *edges(cells)), (*shown, *tables(cells)))


def _mechanism(cells: Sequence[Cell]) -> str:
    found = [(p, i) for c in cells if (p := c.previous_token_head()) and (i := c.formed_induction_head())]
    needs = (
        "Two layers let heads read each other. An induction head needs a first-layer head that attends one token back "
        "and a second-layer head that reads it through its keys: it then attends to what followed the current token "
        "last time, and copies it."
    )
    if not found:
        return f"{needs} In none of {len(cells)} models has one formed."
    return (
        f"{needs} It has formed in {len(found)} of {len(cells)} models: the first attends to the previous token with "
        f"{span([p.previous_token for p, _ in found])} of its attention, the second to what followed with "
        f"{span([i.prefix_matching for _, i in found])}."
    )


def edges(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Count the edges above, below and at chance and those that compose; say what a rejection of the null means."""
    edges = [e for c in cells for e in c.rows(CompositionRow)]
    if not edges:
        return ()
    above, differ = sum(e.above for e in edges), [e for e in edges if e.above or e.below]
    counts = (
        f"Of {plural(len(edges), 'edge')} of all models, {above} score above chance and {len(differ) - above} below it "
        f"(Benjamini–Hochberg, q < {SIGNIFICANT}); {len(edges) - len(differ)} do not differ from it. Below chance, the "
        "later head reads less of what the earlier one writes than for unrelated directions."
    )
    if bounds := [e.p_floor for e in differ if e.at_floor]:
        counts += (
            f" Of those that differ, {len(bounds)} lie beyond every random rotation: their p is a bound, < "
            f"{number(max(bounds), 3)}, and does not rank them."
        )
    null = ""
    if len(differ) >= NEARLY_ALL * len(edges):
        distance = statistics.median(abs(e.value - e.chance) for e in differ)
        null = (
            "The random-rotation null rotates one head against the other at random and keeps their spectra. "
            f"{len(differ)} of {len(edges)} edges reject it, the median of them {number(distance, 3)} from chance. "
            "That is expected where trained heads share a few directions of the residual stream or avoid each "
            "other's. A score that differs from chance then says only that two heads are not independent; which edges "
            "form a circuit must be judged by the size of the excess and by interventions."
        )
    rule = (
        f"An edge composes if {COMPOSITION_RULE}. {sum(e.composes for e in edges)} of {len(edges)} edges do. The rule "
        "was tuned on synthetic corpora, with models of two heads per layer; how well it finds the edges that other "
        "models of such corpora rely on is in the section on the detectors. Its precision there does not cover edges "
        "into heads that a model does not need: many of these score high. For models with more heads it has not been "
        "calibrated."
    )
    return tuple(text for text in (counts, null, rule) if text)


def tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """Show the two heads of each model, and every edge that composes."""
    edges = [(c, e) for c in cells for e in c.rows(CompositionRow) if e.composes]
    mechanism = Table.of(
        [(c, c.previous_token_head(), c.induction_head()) for c in cells],
        MODEL,
        Text("previous-token head", lambda _, previous, __: _label(previous)),
        Column("attends one back", lambda _, previous, __: previous and previous.previous_token),
        Text("induction head", lambda *row: _label(row[-1])),
        Column("prefix matching", lambda *row: row[-1] and row[-1].prefix_matching),
        Column("K-composition", _key_edge),
        caption="The heads of the mechanism: the first-layer head that attends most to the previous token, the head of "
        "best prefix matching (chance: the table of all heads), and by how much the latter's keys read the former "
        "above chance, without its mean write (chance in brackets).",
        source="mechanism",
    )
    composing = Table.of(
        sorted(edges, key=lambda pair: -pair[1].weight),
        MODEL,
        Text(
            "edge", lambda _, e: f"{head_label(e.early_layer, e.early_head)} → {head_label(e.late_layer, e.late_head)}"
        ),
        Text("read by", lambda _, e: KINDS[e.kind]),
        Column("score", "value", 3),
        Column("without mean write", "varying", 3),
        Column("size", "size", 3),
        Column("chance", "chance", 3),
        Column("q (one-sided)", lambda _, e: "< " * e.varying_at_floor + number(e.varying_q_value, 3)),
        caption="Every edge that composes, by its score times the head's size. An edge composes if "
        f"{COMPOSITION_RULE}. Score: norm of the product of what one head writes and the other reads, over the product "
        "of their norms (0..1). q with < is a bound: no random rotation came as far. Every other edge is in the CSV, "
        "with two-sided p- and q-values.",
        csv="composition.csv",
    )
    return (mechanism, composing) if edges else (mechanism,)


def _label(head: HeadRow | None) -> str:
    return "–" if head is None else head_label(head.layer, head.head)


def _key_edge(cell: Cell, previous: HeadRow | None, induction: HeadRow | None) -> str:
    """Print by how much the keys of the induction head read the previous-token head above chance."""
    if previous is None or induction is None:
        return "–"
    ends = ("K", previous.layer, previous.head, induction.layer, induction.head)
    for e in cell.rows(CompositionRow):
        if (e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head) == ends:
            return f"{number(e.varying - e.chance)} ({number(e.chance)})"
    return "–"


THEME = Theme(
    TITLE,
    section,
    (attention_by_distance, composition, induction_corner),
    {
        "attention_by_distance": ("distances", "heads"),
        "induction_corner": ("heads", "matching"),
        "mechanism": ("heads", "composition"),
    },
    {
        f"composition{suffix}": DetectorText(name, f"edges {read} that a model relies on; an edge that composes")
        for suffix, name, read in (
            ("_q", "Q-composition", "into queries"),
            ("_k", "K-composition", "into keys"),
            ("_v", "V-composition", "into values"),
            ("", "any composition", "of any kind"),
        )
    }
    | {
        "composition_all_heads": DetectorText(
            "any composition, also into unneeded heads",
            "the same, where an edge into a head that the model does not need counts as absent",
        ),
    },
    ("composition_q", "composition_k", "composition_v", "composition", "previous_token", "induction"),
    opens_part=True,
    tables=("composition", "distances"),
)
