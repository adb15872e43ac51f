"""The chapter on two layers: the induction mechanism, and what it matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathsum.claims.content import CURRENT, PREVIOUS, of_induction_head, share
from pathsum.claims.formatting import number, plural, span
from pathsum.claims.suffixes import RIVALS, uncut
from pathsum.claims.suffixes import of_induction_head as matches_of
from pathsum.records.results import Cell, Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.document import Section
from pathsum.report.theme import Figures, drawn
from pathsum.report.themes import behaviour, causal, content, suffixes, two_layers

TITLE = "Two layers: induction heads"


def chapter(results: Results, figures: Figures, claims: Mapping[str, ClaimResult]) -> Section:
    """Describe how the induction heads of the grid work."""
    cells = results.with_layers(2)
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model.",))
    blocks = drawn(figures, "mechanism_two", "suffixes")
    more = (two_layers.TITLE, behaviour.TITLE, causal.TITLE, content.TITLE, suffixes.TITLE)
    return Section.of(
        TITLE,
        (
            _mechanism(cells),
            _evidence(cells, claims["induction_key_edge"]),
            _surprise(cells, claims["two_token_edges"]),
        ),
        blocks,
        more,
    )


def _mechanism(cells: Sequence[Cell]) -> str:
    found = [(p, i) for c in cells if (p := c.previous_token_head()) and (i := c.formed_induction_head())]
    how = (
        "The paper's mechanism takes two heads. A head of the first layer attends to the previous token. A head of the "
        "second layer, the induction head, reads this in its keys (K-composition) and compares it with its query, the "
        "current token. So it finds the token after an earlier copy, and its OV circuit copies it."
    )
    if not found:
        return f"{how} No such head has formed in {plural(len(cells), 'model')}."
    return (
        f"{how} This is what {len(found)} of {plural(len(cells), 'model')} learn: the first head gives "
        f"{span([p.previous_token for p, _ in found])} of its attention to the previous token, the second "
        f"{span([i.prefix_matching for _, i in found])} to the token after the copy."
    )


def _evidence(cells: Sequence[Cell], edge: ClaimResult) -> str:
    shares = [s for c in cells if (s := share(of_induction_head(c), CURRENT, PREVIOUS)) is not None]
    text = ""
    if shares:
        text = (
            f"Of the attention score by which the induction head prefers that token, {span(shares)} comes from "
            "comparing the query's current token with the key's previous token, whichever heads carried them."
        )
    if edge.values:
        text += (
            f" In {len(edge.values) - len(edge.short)} of {len(edge.values)} models, cutting the key edge between the "
            "two heads raises the loss on the second copy of random tokens more than cutting the strongest other edge."
        )
    return text.strip()


def _surprise(cells: Sequence[Cell], edges: ClaimResult) -> str:
    rows = [r for c in cells if uncut(c) is not None and (r := matches_of(c, RIVALS)) is not None]
    if not rows or not any(r.low > 0 for r in rows):
        return ""
    return (
        "A surprise: they match more than one token. When two earlier places both end with the current token, and one "
        "also repeats the token before it, the induction head gives "
        f"{span([r.longer for r in rows])} of its attention to what followed the longer match and "
        f"{span([r.shorter for r in rows])} to what followed the shorter one (uniform attention: "
        f"{number(rows[0].chance, 3)}). In {len(edges.values) - len(edges.short)} of {len(edges.values)} models, most "
        "of this preference is lost without either of two edges: from previous-token heads into its queries, and from "
        "heads that attend two tokens back into its keys."
    )
