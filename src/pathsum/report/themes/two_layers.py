"""Two layers: which heads make induction, and which read which."""

from __future__ import annotations

from pathsum.records.results import Results
from pathsum.report.document import Section
from pathsum.report.figures.composition import composition
from pathsum.report.figures.heads import attention_by_distance
from pathsum.report.figures.induction import induction_corner
from pathsum.report.theme import Detector, Figures, Theme, drawn
from pathsum.report.themes import composition as composition_text
from pathsum.report.themes import mechanism

TITLE = "Two layers"


def section(results: Results, figures: Figures) -> Section:
    """The heads of the mechanism, and every edge that composes."""
    cells, shown = results.with_layers(2), drawn(figures, "attention_by_distance", "composition", "induction_corner")
    if not cells:
        return Section(TITLE, ("This sweep has no two-layer model.",), shown)
    return Section(
        TITLE, (*mechanism.paragraphs(cells), *composition_text.paragraphs(cells)), (*shown, *mechanism.tables(cells))
    )


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
        "composition_q": Detector("Q-composition", "edges into queries that a model relies on; an edge that composes"),
        "composition_k": Detector("K-composition", "edges into keys that a model relies on; an edge that composes"),
        "composition_v": Detector("V-composition", "edges into values that a model relies on; an edge that composes"),
        "composition": Detector("any composition", "edges of any kind that a model relies on; an edge that composes"),
        "composition_all_heads": Detector(
            "any composition, also into unneeded heads",
            "the same, where an edge into a head that the model does not need counts as absent",
        ),
    },
    ("composition_q", "composition_k", "composition_v", "composition", "previous_token", "induction"),
    opens_part=True,
    tables=("composition", "distances"),
)
