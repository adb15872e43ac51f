"""The map of heads: what each does and reads, and the effect of cutting each edge."""

from pathsum.records.composition import COMPOSITION_RULE
from pathsum.records.heads import HeadRow
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures.base import in_detail
from pathsum.report.page.document import Section, Widget
from pathsum.report.page.heads_and_edges import payload
from pathsum.report.theme import Figures, Theme

TITLE = "Heads and what they read"


def section(results: Results, _: Figures) -> Section:
    cells = [c for c in results.cells.values() if c.rows(HeadRow)]
    if not cells:
        return told.absent(TITLE)
    deepest = list(in_detail(results).values())[-1]
    cells.sort(key=lambda c: (c is not deepest, -c.summary.n_layers))
    shown = Widget("heads_and_edges", TITLE, tuple(map(payload, cells)), {"rule": COMPOSITION_RULE})
    return told.section(TITLE, "heads_and_edges", {}, {"heads_and_edges": shown})


THEME = Theme(
    TITLE,
    section,
    relies_on=("composition_k",),
    sources={
        "heads_and_edges": ("heads", "labels", "distances", "copying", "composition", "ablations", "skip_trigrams")
    },
)
