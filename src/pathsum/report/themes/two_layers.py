"""Two layers: which heads make induction, which heads read which, and what composition scores are worth."""

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
NEARLY_ALL = 0.5  # share of edges that differ from chance, from which to differ says little of a single one


def section(results: Results, figures: Figures) -> Section:
    """The heads of the mechanism, and every edge that composes."""
    cells, shown = results.with_layers(2), drawn(figures, "attention_by_distance", "composition", "induction_corner")
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model.",), shown)
    return Section.of(TITLE, (_needs(cells), *edges(cells)), (*shown, *tables(cells)))


def _needs(cells: Sequence[Cell]) -> str:
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
    """Count the edges above, below and at chance, and say what the null hypothesis then means."""
    edges = [e for c in cells for e in c.rows(CompositionRow)]
    if not edges:
        return ()
    above, below = [e for e in edges if e.above], [e for e in edges if e.below]
    differ = [*above, *below]
    counts = (
        f"Of {plural(len(edges), 'edge')} of all models, {len(above)} score above chance and {len(below)} below it "
        f"(Benjamini–Hochberg, q < {SIGNIFICANT}); {len(edges) - len(differ)} do not differ from it. Below chance, the "
        f"later head reads less of what the earlier one writes than for unrelated directions. {_floor(differ)}"
    )
    return (counts.strip(), *_meaning(edges, differ), _rule(edges))


def _rule(edges: Sequence[CompositionRow]) -> str:
    found = sum(e.composes for e in edges)
    return (
        f"An edge composes if {COMPOSITION_RULE}. {found} of {len(edges)} edges do. The rule was tuned on synthetic "
        "corpora, with models of two heads per layer; how well it finds the edges that other models of such corpora "
        "rely on is in the section on the detectors. Its precision there does not cover edges into heads that a model "
        "does not need: many of these score high. For models with more heads it has not been calibrated."
    )


def _floor(differ: Sequence[CompositionRow]) -> str:
    bounds = [e.p_floor for e in differ if e.at_floor]
    if not bounds:
        return ""
    return (
        f"Of those that differ, {len(bounds)} lie beyond every random rotation: their p is a bound, < "
        f"{number(max(bounds), 3)}, and does not rank them."
    )


def _meaning(edges: Sequence[CompositionRow], differ: Sequence[CompositionRow]) -> tuple[str, ...]:
    if len(differ) < NEARLY_ALL * len(edges):
        return ()
    distance = statistics.median(abs(e.value - e.chance) for e in differ)
    return (
        f"The random-rotation null rotates one head against the other at random and keeps their spectra. {len(differ)} "
        f"of {len(edges)} edges reject it, the median of them {number(distance, 3)} from chance. That is expected "
        "where trained heads share a few directions of the residual stream or avoid each other's. A score that differs "
        "from chance then says only that two heads are not independent; which edges form a circuit must be judged by "
        "the size of the excess and by interventions.",
    )


def tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """The two heads of each model, and every edge that composes."""
    edges = [(c, e) for c in cells for e in c.rows(CompositionRow) if e.composes]
    mechanism = Table.of(
        cells,
        MODEL,
        Text("previous-token head", lambda c: _head(c.previous_token_head())),
        Column("attends one back", lambda c: (h := c.previous_token_head()) and h.previous_token),
        Text("induction head", lambda c: _head(c.induction_head())),
        Column("prefix matching", lambda c: (h := c.induction_head()) and h.prefix_matching),
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


def _head(head: HeadRow | None) -> str:
    return "–" if head is None else head_label(head.layer, head.head)


def _key_edge(cell: Cell) -> str:
    """By how much the keys of the induction head read the previous-token head above chance."""
    previous, induction = cell.previous_token_head(), cell.induction_head()
    if previous is None or induction is None:
        return "–"
    ends = ("K", previous.layer, previous.head, induction.layer, induction.head)
    found = (
        e for e in cell.rows(CompositionRow) if (e.kind, e.early_layer, e.early_head, e.late_layer, e.late_head) == ends
    )
    return next((f"{number(e.varying - e.chance)} ({number(e.chance)})" for e in found), "–")


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
        "composition_q": DetectorText(
            "Q-composition", "edges into queries that a model relies on; an edge that composes"
        ),
        "composition_k": DetectorText("K-composition", "edges into keys that a model relies on; an edge that composes"),
        "composition_v": DetectorText(
            "V-composition", "edges into values that a model relies on; an edge that composes"
        ),
        "composition": DetectorText(
            "any composition", "edges of any kind that a model relies on; an edge that composes"
        ),
        "composition_all_heads": DetectorText(
            "any composition, also into unneeded heads",
            "the same, where an edge into a head that the model does not need counts as absent",
        ),
    },
    ("composition_q", "composition_k", "composition_v", "composition", "previous_token", "induction"),
    opens_part=True,
    tables=("composition", "distances"),
)
