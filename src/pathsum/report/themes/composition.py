"""What composition scores are worth where nearly every edge differs from chance."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pathsum.claims.formatting import number, plural
from pathsum.records.composition import COMPOSITION_RULE, SIGNIFICANT, CompositionRow
from pathsum.records.results import Cell

NEARLY_ALL = 0.5  # share of edges that differ from chance, from which to differ says little of a single one


def paragraphs(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Count the edges above, below and at chance, and say what the null hypothesis then means."""
    edges = [e for c in cells for e in c.rows(CompositionRow)]
    if not edges:
        return ()
    above, below = [e for e in edges if e.above], [e for e in edges if e.below]
    differ = [*above, *below]
    counts = (
        f"Of {plural(len(edges), 'edge')} of all models, {len(above)} score above chance and {len(below)} below it "
        f"(Benjamini–Hochberg, q < {SIGNIFICANT}); {len(edges) - len(differ)} do not differ from it. Below chance, the "
        "later head reads less of what the earlier one writes than if their directions had nothing to do with each "
        f"other. {_floor(differ)}"
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
        f"Of those that differ, {len(bounds)} lie beyond every random rotation: their p is a bound, "
        f"< {number(max(bounds), 3)}, and does not rank them."
    )


def _meaning(edges: Sequence[CompositionRow], differ: Sequence[CompositionRow]) -> tuple[str, ...]:
    if len(differ) < NEARLY_ALL * len(edges):
        return ()
    distance = statistics.median(abs(e.value - e.chance) for e in differ)
    return (
        f"The random-rotation null rotates one head against the other at random and keeps their spectra. {len(differ)} "
        f"of {len(edges)} edges reject it, the median of them {number(distance, 3)} from chance. That is expected "
        "where trained heads share a few directions of the residual stream or avoid each other's. A score that "
        "differs from chance then says only that two heads are not independent; which edges form a circuit must be "
        "judged by the size of the excess and by interventions.",
    )
