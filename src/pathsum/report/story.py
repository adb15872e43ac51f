"""The content of the report, in order. Every number comes from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathsum.claims.formatting import plural
from pathsum.claims.preregistration import Preregistration
from pathsum.records import registry
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import lab, verdicts
from pathsum.report.answer import QUESTION, TITLE, answer, shortfall
from pathsum.report.document import Document, Section
from pathsum.report.figures.base import Figure
from pathsum.report.figures.learning import headline
from pathsum.report.theme import Figures, drawn, sources, themes
from pathsum.report.themes.calibration import marked

SHORTCUTS = ("behaviour", "explorers", "references", "origins")  # themes that most readers want
UNFROZEN = Preregistration()


def draw_all(results: Results) -> dict[str, Figure]:
    """Draw every figure for which ``results`` has records. Returns the figures by name."""
    found = (draw(results) for draw in (headline, *(draw for theme in themes().values() for draw in theme.figures)))
    return {figure.name: figure for figure in found if figure is not None}


def contents() -> dict[str, tuple[list[str], list[str]]]:
    """Return the names of the figures and tables of each section, by the section's title. The opening is "Claims"."""
    shown = {
        theme.title: ([draw.__name__ for draw in theme.figures], list(theme.tables))
        for theme in themes().values()
        if theme.figures or theme.tables
    }
    return {"Claims": (["headline"], ["claims"])} | shown


def story(
    results: Results,
    claims: Sequence[ClaimResult],
    figures: Figures,
    registered: Preregistration = UNFROZEN,
    exported: Mapping[str, Any] | None = None,
) -> Document:
    """Compose the whole report, with a lab where models are ``exported``. A section says so if the models that it needs
    are absent."""
    titles = {name: theme.title for name, theme in themes().items()}
    are = "is" if len(results.missing) == 1 else "are"
    missing = (
        f"{plural(len(results.missing), 'declared model')} left no records and {are} not in this report: "
        f"{', '.join(results.missing)}."
    )
    runnable = [lab.section(exported, results)] if exported and exported["models"] else []
    parts: list[list[Section]] = [runnable] if runnable else []
    for theme in themes().values():
        if theme.opens_part or not parts:
            parts.append([])
        parts[-1].append(marked(theme.section(results, figures), theme.relies_on, results))
    return Document(
        title=TITLE,
        question=QUESTION,
        answer=(*answer(results), *shortfall(claims)),
        shortcuts=(*(section.title for section in runnable), *(titles[name] for name in SHORTCUTS)),
        warnings=(missing,) if results.missing else (),
        opening=(
            *drawn(figures, "headline"),
            verdicts.table(claims, results, titles, registered),
            verdicts.protocol(registered, results),
            *([verdicts.changes(registered)] if registered.changes else []),
            verdicts.measures(claims),
        ),
        parts=tuple(map(tuple, parts)),
        sources={name: (name,) for name in registry.origins()} | sources(),
    )
