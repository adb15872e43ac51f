"""The chapter on two layers: the induction mechanism, and what it matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathsum.claims.content import CURRENT, PREVIOUS, of_induction_head, share
from pathsum.claims.formatting import number, plural, span
from pathsum.claims.sufficiency import CONTROLS, MOST, rows
from pathsum.claims.suffixes import ablated
from pathsum.claims.suffixes import of_induction_head as matches_of
from pathsum.page.document import Section
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import Kept
from pathsum.records.suffixes import CONTROLS_OF, Condition
from pathsum.records.verdicts import ClaimResult
from pathsum.report.theme import Figures, drawn
from pathsum.report.themes import behaviour, causal, content, sufficiency, suffixes, two_layers

TITLE = "Two layers: induction heads"


def chapter(results: Results, figures: Figures, claims: Mapping[str, ClaimResult]) -> Section:
    """Describe how the induction heads of two-layer models work."""
    cells = results.with_layers(2)
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model.",))
    matching = [c for c in cells if c.has_induction_head()]
    blocks = drawn(figures, "mechanism_two", "suffixes")
    more = (two_layers.TITLE, behaviour.TITLE, causal.TITLE, sufficiency.TITLE, content.TITLE, suffixes.TITLE)
    return Section.of(
        TITLE,
        (
            _mechanism(cells),
            _evidence(matching, claims["induction_key_edge"]),
            _alone(matching, claims["circuit_suffices"]),
            _surprise(matching, claims["two_token_edges"]),
        ),
        blocks,
        more,
    )


def _mechanism(cells: Sequence[Cell]) -> str:
    found = [p for c in cells if (p := c.previous_token_head()) and c.formed_induction_head()]
    how = (
        "In the paper's mechanism, a first-layer head attends to the previous token and outputs that token. The "
        "induction head, in the second layer, reads this output in its keys (K-composition) and the current token "
        "in its query. It thus attends to the token after an earlier copy of the current token, and its OV circuit "
        "copies what it attends to."
    )
    if not found:
        return f"{how} Induction heads have formed in 0 of {plural(len(cells), 'model')}."
    return (
        f"{how} An induction head has formed in {len(found)} of {plural(len(cells), 'model')}. In these, the best "
        f"previous-token head gives the previous token {span([p.previous_token for p in found])} of its attention."
    )


def _evidence(cells: Sequence[Cell], edge: ClaimResult) -> str:
    shares = [s for c in cells if (s := share(of_induction_head(c), CURRENT, PREVIOUS)) is not None]
    text = ""
    if shares:
        text = (
            "The attention score of the induction head is higher for the token after the earlier copy than for the "
            f"average key. A share of {span(shares)} of this difference comes from comparing the query's current token "
            "with the key's previous token."
        )
    if edge.values:
        text += (
            f" In {len(edge.values) - len(edge.short)} of {plural(len(edge.values), 'model')}, cutting the key edges "
            "from all previous-token heads to all induction heads raises the loss on the second copy of random tokens "
            "significantly more than cutting as many edges outside the circuit, and than cutting the query edges or "
            "the value edges of the same heads."
        )
    return text.strip()


def _alone(cells: Sequence[Cell], circuit: ClaimResult) -> str:
    """State what is left of induction with the circuit alone, of the models that the claim judges."""
    judged = [c for c in cells if circuit.values.get(c.name) is not None]
    if not judged:
        return ""
    ours, gains, controls, minimal = (
        [value for c in judged for r in rows(c, *kept) if (value := getattr(r, name)) is not None]
        for kept, name in (
            ((Kept.CIRCUIT,), "matching_share"),
            ((Kept.CIRCUIT,), "gain_share"),
            (CONTROLS, "matching_share"),
            ((Kept.MINIMAL,), "matching_share"),
        )
    )
    return (
        "The circuit alone: with all heads resampled except the previous-token heads, the heads that attend two tokens "
        f"back and the induction heads, a share of {span(ours)} of prefix matching is left, and {span(gains)} of the "
        f"gain on the second copy. Without the previous-token heads it is {span(controls)}. This suffices (needed: at "
        f"least {MOST}) in {len(circuit.values) - len(circuit.short)} of {plural(len(circuit.values), 'model')}. One "
        f"previous-token head and its key edge leave {span(minimal)}. The papers claim neither."
    )


def _surprise(cells: Sequence[Cell], edges: ClaimResult) -> str:
    rows = [r for c in cells if (r := matches_of(c, Condition.TWO_ONE)) is not None]
    if not rows or not any(r.low > 0 for r in rows):
        return ""
    return (
        "A surprise: induction heads prefer matches of two tokens. Where an earlier match of two tokens competes with "
        f"one of a single token, the token after the longer match gets {span([r.longer for r in rows])} of the "
        f"attention, and that after the shorter match {span([r.shorter for r in rows])} (uniform: "
        f"{number(rows[0].chance, 3)}). Two cuts are tested: of the edges from previous-token heads to the induction "
        "head's queries, and of the edges from heads that attend two tokens back to its keys. In "
        f"{len(edges.values) - len(edges.short)} of {plural(len(edges.values), 'model')}, each cut alone removes "
        f"most of the difference between the matches and leaves most of one-token matching.{_control(cells)}"
    )


def _control(cells: Sequence[Cell]) -> str:
    heads, random = (
        [known for c in cells if (known := [r.left for cut in cuts for r in ablated(c, cut) if r.left is not None])]
        for cuts in zip(*CONTROLS_OF.values(), strict=True)
    )
    if not random:
        return ""
    others = (
        f"{span([share for known in heads for share in known])} of the difference is left without as many edges of "
        f"heads outside the circuit ({plural(len(heads), 'model')} with such heads), and "
        if heads
        else ""
    )
    turned = span([share for known in random for share in known])
    return f" As controls, {others}{turned} is left if the same changes are made in random directions."
