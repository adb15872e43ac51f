"""The section with the map of heads: what each head does, which heads it reads, and the effect of cutting each edge."""

from __future__ import annotations

from pathsum.figures.detail import in_detail
from pathsum.page.document import HeadsAndEdges, Section
from pathsum.page.heads_and_edges import payload
from pathsum.records.composition import COMPOSITION_RULE
from pathsum.records.heads import HeadRow
from pathsum.records.results import Results
from pathsum.report.theme import Figures, Theme

TITLE = "Heads and what they read"
TEXT = (
    "Click a head or edge. Line width: composition score above chance. Orange: cutting the edge significantly raises "
    "the loss on repeated random tokens. In the paper's model, the clearest edges lead from one previous-token head to "
    "keys."
)


def section(results: Results, _: Figures) -> Section:
    """Pack the heads and edges of every model with heads. The deepest model of ``in_detail`` is shown first."""
    detailed = in_detail(results)
    cells = [c for c in results.cells.values() if c.rows(HeadRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no heads.",))
    cells.sort(key=lambda c: (c is not detailed[max(detailed)], -c.summary.n_layers))
    return Section(TITLE, (TEXT,), (HeadsAndEdges(TITLE, tuple(payload(c) for c in cells), COMPOSITION_RULE),))


THEME = Theme(
    TITLE,
    section,
    relies_on=("composition_k",),
    sources={"heads_and_edges": ("heads", "labels", "composition", "ablations", "skip_trigrams")},
)
