"""One layer: skip-trigrams and copying."""

from __future__ import annotations

from pathsum.claims.formatting import span
from pathsum.records.results import Results
from pathsum.report.document import Section
from pathsum.report.figures.heads import eigenvalues
from pathsum.report.theme import Detector, Figures, Theme, drawn
from pathsum.report.themes import atlas, copying

TITLE = "One layer"


def section(results: Results, figures: Figures) -> Section:
    """What heads of one layer do: tables of skip-trigrams, spent on copying or not."""
    cells = results.with_layers(1)
    return Section(
        TITLE,
        (*_text(results), *atlas.paragraphs(cells)),
        (*drawn(figures, "eigenvalues"), *copying.table(results), *atlas.tables(cells)),
    )


def _text(results: Results) -> tuple[str, ...]:
    cells = results.with_layers(1)
    if not cells:
        return ("This sweep has no one-layer model.",)
    best = span([c.summary.prefix_matching for c in cells if c.summary.prefix_matching is not None], 3)
    return (
        "One layer adds a table of skip-trigrams for each head: a source, seen from a destination, raises an output. "
        "A head of one layer sees which tokens came before but not what "
        f"preceded them, so it cannot look for what followed the present token last time: best prefix matching {best}.",
        *copying.paragraph(cells),
    )


THEME = Theme(
    TITLE,
    section,
    (eigenvalues,),
    {"eigenvalues": ("eigenvalues", "heads"), "copying": ("heads", "labels", "ablations")},
    {
        "skip_trigram": Detector(
            "skip-trigrams, by model and text",
            "source … destination → out; entries of the atlas that the text bears out",
        ),
        "skip_trigram_model": Detector(
            "skip-trigrams, by the model alone",
            "the same; triples that a head makes likelier by half a nat, on documents that did not choose them, "
            "whatever the text says",
        ),
    },
    ("skip_trigram", "skip_trigram_model", "copying"),
    opens_part=True,
    tables=("skip_trigrams", "skip_trigram_bugs", "eigenvalues"),
)
