"""The section on two layers: the heads of induction, and the edges by which heads compose (docs/framework.md §4)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pathsum.claims.formatting import head_label, number, plural, span
from pathsum.claims.reliability import reliability
from pathsum.figures.composition import KINDS, composition
from pathsum.figures.heads import attention_by_distance
from pathsum.figures.induction import induction_corner
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.composition import COMPOSES, FALSE_COMPOSITION, KEYS_COMPOSE, SIGNIFICANT, CompositionRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import FORMED, Cell, Results
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "Two layers"
MANY = 0.5  # if at least this share of edges differs from chance, a difference says little about a single edge
SCORE = (
    "An edge is a pair of an earlier head and a reader (queries, keys or values) of a later head. Its composition "
    "score is ‖R W_OV^early‖ / (‖R‖ ‖W_OV^early‖), 0 to 1, where R is the matrix with which the later head reads (Q: "
    "W_QKᵀ, K: W_QK, V: W_OV). Chance comes from the random-rotation null, which rotates one of the two heads at "
    "random and keeps the singular values of both."
)
RULE = (
    "An edge composes if its score, computed without the direction of the early head's mean write, meets three "
    f"conditions: it exceeds chance (keys: it is at least {KEYS_COMPOSE} times chance); its one-sided "
    f"Benjamini–Hochberg q is < {FALSE_COMPOSITION}; and the score times the size of the early head is at least "
    f"{COMPOSES} times chance. The size is the standard deviation of what the early head writes on held-out text, "
    "divided by the root mean square of the standard deviations of all parts that the later layer reads (the embedding "
    "and each earlier head)."
)


def section(results: Results, figures: Figures) -> Section:
    """Show the previous-token head and the induction head of each model, and every edge that composes."""
    cells, shown = results.with_layers(2), drawn(figures, "attention_by_distance", "composition", "induction_corner")
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model.",), shown)
    return Section.of(TITLE, (_mechanism(cells), *edges(cells, results)), (*shown, *tables(cells)))


def _mechanism(cells: Sequence[Cell]) -> str:
    found = [(p, i) for c in cells if (p := c.previous_token_head()) and (i := c.formed_induction_head())]
    needs = (
        "With two layers, heads of the second layer read what heads of the first layer write. AMF's induction "
        "mechanism needs a previous-token head in the first layer and a head in the second layer whose keys read it "
        "(K-composition). This second-layer head, the induction head, then attends to the token after an earlier "
        "occurrence of the current token, and copies it."
    )
    if not found:
        return f"{needs} No induction head (prefix matching ≥ {FORMED}) has formed in any of {len(cells)} models."
    return (
        f"{needs} An induction head (prefix matching ≥ {FORMED}) has formed in {len(found)} of {len(cells)} models. "
        f"In these, the previous-token head gives {span([p.previous_token for p, _ in found])} of its attention to the "
        f"previous token, and the induction head gives {span([i.prefix_matching for _, i in found])} to the token "
        "after the earlier occurrence (ranges over models)."
    )


def edges(cells: Sequence[Cell], results: Results) -> tuple[str, ...]:
    """Count the edges above, at and below chance and those that compose, and explain what these counts mean."""
    edges = [e for c in cells for e in c.rows(CompositionRow)]
    if not edges:
        return ()
    above, differ = sum(e.above for e in edges), [e for e in edges if e.above or e.below]
    counts = (
        f"{SCORE} Of {plural(len(edges), 'edge')} of all two-layer models, {above} have a composition score above "
        f"chance and {len(differ) - above} below it (Benjamini–Hochberg, q < {SIGNIFICANT}); "
        f"{len(edges) - len(differ)} show no difference. A score below chance means that the later head reads less of "
        "what the earlier head writes than of random directions."
    )
    if bounds := [e.p_floor for e in differ if e.at_floor]:
        counts += (
            f" Of the edges that differ, {len(bounds)} have a score beyond those of all random rotations: their "
            f"p-values are only known to be ≤ {_bound(max(bounds), 5)} and cannot rank them."
        )
    null = ""
    if len(differ) >= MANY * len(edges):
        distance = statistics.median(abs(e.value - e.chance) for e in differ)
        null = (
            f"Thus {len(differ)} of {len(edges)} edges differ from chance, by a median of {number(distance, 3)} "
            "(composition score, 0 to 1). This is expected if trained heads share a few directions of the residual "
            "stream or avoid those of other heads. A difference from chance then shows only that two heads are not "
            "independent. Which edges form a circuit must be judged by the size of the excess and by interventions."
        )
    rule = (
        f"{RULE} By this rule, {sum(e.composes for e in edges)} of {len(edges)} edges compose "
        f"({reliability(results, 'composition')}; keys alone: {reliability(results, 'composition_k')})."
    )
    tuned = (
        "The rule was tuned on synthetic corpora, with models of two heads per layer. Its floor for keys was set after "
        "a first judgment on other corpora; precision and recall are from a third set. The section “Precision and "
        "recall of the detectors” shows how well it finds the edges on which models of such corpora rely. Its "
        "precision is lower if edges into heads that a model does not need count as false positives, since many of "
        "these have high scores. The rule has not been calibrated for models with more heads."
    )
    return tuple(text for text in (counts, null, rule, tuned) if text)


def tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """Show the two heads of the mechanism in each model, and every edge that composes."""
    edges = [(c, e) for c in cells for e in c.rows(CompositionRow) if e.composes]
    mechanism = Table.of(
        [(c, c.previous_token_head(), c.induction_head()) for c in cells],
        MODEL,
        Text("previous-token head", lambda _, previous, __: _label(previous)),
        Column("attention to the previous token", lambda _, previous, __: previous and previous.previous_token),
        Text("induction head", lambda *row: _label(row[-1])),
        Column("prefix matching", lambda *row: row[-1] and row[-1].prefix_matching),
        Column("K-composition − chance (chance)", _key_edge),
        caption="The heads of the induction mechanism, chosen on other data: the first-layer head that attends most to "
        "the previous token, the head with the best prefix matching (its chance level is in the section “What each "
        "head does”), and the K-composition score of this pair, without the early head's mean write, minus chance "
        "(chance in parentheses).",
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
        Column("score without mean write", "varying", 3),
        Column("size of the early head", "size", 3),
        Column("chance", "chance", 3),
        Column("q (one-sided)", lambda _, e: _q_value(e)),
        caption="Every edge that composes (rule in the text), ranked by its score without the early head's mean write, "
        "times the size of the early head. “≤ x” is a bound: no random rotation reached the score. The CSV has all "
        "other edges too, and two-sided p- and q-values.",
        csv="composition.csv",
    )
    return (mechanism, composing) if edges else (mechanism,)


def _q_value(edge: CompositionRow) -> str:
    q = edge.varying_q_value
    return f"≤ {_bound(q, 3)}" if edge.varying_at_floor else number(q, 3)


def _bound(value: float, digits: int) -> str:
    """Format an upper bound with ``digits`` decimals, rounded up: rounded down, it would claim too much."""
    return number(math.ceil(round(value * 10**digits, 6)) / 10**digits, digits)


def _label(head: HeadRow | None) -> str:
    return "–" if head is None else head_label(head.layer, head.head)


def _key_edge(cell: Cell, previous: HeadRow | None, induction: HeadRow | None) -> str:
    """Format the K-composition score of these heads (without the early head's mean write) minus chance, with chance in
    parentheses; a dash if there is no such edge."""
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
            "any composition, into all heads",
            "the same, but edges into heads that the model does not need are counted, too, as absent",
        ),
    },
    ("composition_q", "composition_k", "composition_v", "composition", "previous_token", "induction"),
    tables=("composition", "distances"),
)
