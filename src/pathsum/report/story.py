"""What the report says, in its order, every number from the records."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import plural
from pathsum.claims.preregistration import Preregistration
from pathsum.records import registry
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import preregistration, verdicts
from pathsum.report.answer import QUESTION, TITLE, answer, shortfall
from pathsum.report.document import Document, Section
from pathsum.report.figures.base import Figure
from pathsum.report.figures.learning import headline
from pathsum.report.theme import Figures, drawn, sources, themes
from pathsum.report.themes.calibration import marked

SHORTCUTS = ("behaviour", "explorers", "references", "origins")  # themes that most readers want
UNFROZEN = Preregistration()


def draw_all(results: Results) -> dict[str, Figure]:
    """Draw every figure that ``results`` has the records for, by name."""
    pictures = (headline, *(draw for theme in themes().values() for draw in theme.figures))
    found = (draw(results) for draw in pictures)
    return {figure.name: figure for figure in found if figure is not None}


def contents() -> dict[str, tuple[list[str], list[str]]]:
    """Return the names of the figures and tables of each section, by its title; the opening is "Claims"."""
    found = {
        theme.title: ([draw.__name__ for draw in theme.figures], list(theme.tables)) for theme in themes().values()
    }
    shown = {title: names for title, names in found.items() if any(names)}
    return {"Claims": (["headline"], ["claims"])} | shown


def story(
    results: Results, claims: Sequence[ClaimResult], figures: Figures, registered: Preregistration = UNFROZEN
) -> Document:
    """The whole report. Sections whose models are absent say so."""
    found = themes()
    titles = {name: theme.title for name, theme in found.items()}
    return Document(
        title=TITLE,
        question=QUESTION,
        answer=(*answer(results), *shortfall(claims)),
        shortcuts=tuple(titles[name] for name in SHORTCUTS),
        warnings=_warnings(results),
        opening=(
            *drawn(figures, "headline"),
            verdicts.table(claims, results, titles, registered),
            *preregistration.tables(registered, results),
            verdicts.measures(claims),
        ),
        parts=_parts(results, figures),
        sources={name: (name,) for name in registry.origins()} | sources(),
    )


def _parts(results: Results, figures: Figures) -> tuple[tuple[Section, ...], ...]:
    parts: list[list[Section]] = []
    for theme in themes().values():
        if theme.opens_part or not parts:
            parts.append([])
        parts[-1].append(marked(theme.section(results, figures), theme.relies_on, results))
    return tuple(tuple(part) for part in parts)


def _warnings(results: Results) -> tuple[str, ...]:
    if not results.missing:
        return ()
    names = ", ".join(results.missing)
    count = plural(len(results.missing), "declared model")
    return (f"{count} left no records and {'is' if len(results.missing) == 1 else 'are'} not in this report: {names}.",)
