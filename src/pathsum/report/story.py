"""The content of the report, in order. Every number comes from the records."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pathsum.claims.preregistration import Preregistration
from pathsum.claims.reliability import coverage
from pathsum.records import registry
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import corpora, elsewhere, told, verdicts
from pathsum.report.answer import answer, heading, setup
from pathsum.report.chapters import (
    FAILURES,
    TRUST,
    failures_chapter,
    learning_chapter,
    one_chapter,
    setup_chapter,
    trust_chapter,
    two_chapter,
    zero_chapter,
)
from pathsum.report.figures.base import Figure
from pathsum.report.figures.learning import headline
from pathsum.report.figures.mechanism import mechanism_one, mechanism_two, mechanism_zero
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Claims, Document, Section, Widget
from pathsum.report.page.roles import roles
from pathsum.report.theme import Figures, sources, themes
from pathsum.report.themes import heads_and_edges
from pathsum.report.themes.calibration import doubts

CLAIMS = "All claims, with the evidence"
FIRST = (  # claims of the first screen, whatever their verdict
    "zero_layer_bigram",
    "one_layer_skip_trigrams",
    "one_layer_no_induction",
    "two_layer_induction",
    "induction_key_edge",
    "phase_change_two_layer",
)
LAB = "The lab"
SHORTCUTS = (LAB, heads_and_edges.TITLE, FAILURES, TRUST, CLAIMS)  # what most readers want
UNFROZEN = Preregistration()
AFTER_TWO_LAYERS, AFTER_LEARNING = ("heads_and_edges",), ("watch_it_learn", "explorers")  # themes that are chapters
OF_MECHANISMS = {  # records that the diagrams show
    "mechanism_zero": ("bigrams",),
    "mechanism_one": ("skip_trigrams",),
    "mechanism_two": ("heads", "ablations", "content_scores"),
}
OWN = (headline, mechanism_zero, mechanism_one, mechanism_two)  # figures of no theme


def draw_all(results: Results, share: int = 0, shares: int = 1) -> dict[str, Figure]:
    """Draw every figure for which ``results`` has records, and return the figures by name."""
    draws = [*OWN, *(draw for theme in themes().values() for draw in theme.figures)]
    found = (draw(results) for draw in draws[share::shares])
    return {figure.name: figure for figure in found if figure is not None}


def contents() -> dict[str, tuple[list[str], list[str]]]:
    """Return the names of the figures and tables of each section, by its title. Those of no theme are in "Claims"."""
    shown = {
        theme.title: ([draw.__name__ for draw in theme.figures], list(theme.tables))
        for theme in themes().values()
        if theme.figures or theme.tables
    }
    return {"Claims": ([draw.__name__ for draw in OWN], ["claims"])} | shown


def story(
    results: Results,
    claims: Sequence[ClaimResult],
    figures: Figures,
    registered: Preregistration = UNFROZEN,
    exported: Sequence[dict[str, Any]] = (),
    texts: Sequence[corpora.Row] = (),
) -> Document:
    """Compose the whole report, with a lab if there are ``exported`` models."""
    titles = {name: theme.title for name, theme in themes().items()}
    cards = [verdicts.card(claim, results, titles, registered) for claim in claims]
    by_id = {claim.id: claim for claim in claims}
    chapters = (
        setup_chapter(results, registered),
        *([_lab(exported, results)] if exported and exported[0]["models"] else []),
        zero_chapter(results, figures),
        one_chapter(results, figures),
        two_chapter(results, figures, by_id),
        *(section_of(name, results, figures) for name in AFTER_TWO_LAYERS),
        failures_chapter(results, cards),
        learning_chapter(results, figures, by_id),
        *(section_of(name, results, figures) for name in AFTER_LEARNING),
        elsewhere.chapter(results, claims, texts, figures),
        trust_chapter(results, figures),
        told.section(CLAIMS, "chapters/claims", {}, {"claims": Claims(tuple(cards))}),
    )
    shown = {block.name for chapter in chapters for block in chapter.blocks if isinstance(block, Figure)}
    left = {name: figure for name, figure in figures.items() if name not in shown}
    sections = [section_of(name, results, left) for name in titles if name not in (*AFTER_TWO_LAYERS, *AFTER_LEARNING)]
    title, question = heading(results)
    said, live = answer(results, texts), _live(exported, results)
    return Document(
        title=title,
        question=question,
        answer=said[:1] if live else said,
        details=said[1:] if live else (),
        setup=setup(results),
        headline=tuple(figures[name] for name in ("headline",) if name in figures),
        cards=tuple(card for card in cards if card.result.id in FIRST),
        tally=verdicts.tally(claims),
        shortcuts=tuple(section.title for section in (*chapters, *sections) if section.title in SHORTCUTS),
        warnings=(f"Not in this report, without records: {', '.join(results.missing)}.",) if results.missing else (),
        chapters=chapters,
        appendix=(*sections, verdicts.preregistration(registered, results)),
        live=live,
        sources={name: (name,) for name in registry.origins()} | sources() | OF_MECHANISMS,
    )


def _live(exported: Sequence[dict[str, Any]], results: Results) -> str:
    """Return what reads the first sentence, the deepest model of the lab; "" if it has no induction head."""
    last = _trained(exported)[-1:]
    if not any(roles(results.cells[model["name"]])["induction"] for model in last):
        return ""
    layers = {2: "two", 3: "three", 4: "four"}.get(n := last[0]["n_layers"], str(n))
    trained = "" if "opened" in results.provenance else f" that saw nothing but {_source(results.corpus.name)}"
    return f"A model of {layers} layers{trained}"


def _trained(exported: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the models of the report's own text, without earlier checkpoints of one."""
    return [model for model in exported[0]["models"] if "of" not in model] if exported else []


def _source(name: str) -> str:
    """Return what a text is, in words."""
    known = {"python": "Python source code", "docstrings": "docstrings"}
    return known.get(name, f"the text “{name}”")


def _lab(exported: Sequence[dict[str, Any]], results: Results) -> Section:
    """Return the section with the lab: models, ``exported`` by text, that run in the reader's browser."""
    cells = {name: cell for some in (results, *results.texts.values()) for name, cell in some.cells.items()}
    models = tuple({**m, **roles(cells[m.get("of", m["name"])])} for text in exported for m in text["models"])
    trained = _trained(exported)
    deepest = trained[-1]["name"]
    opened = "opened" in results.provenance
    about = {
        "texts": [
            {
                "name": "" if opened else _source(text["text"]),
                "tokenizer": _printable(text["tokenizer"]),
                "passages": text["passages"],
            }
            for text in exported
        ],
        "text_of": {model["name"]: i for i, text in enumerate(exported) for model in text["models"]},
        "deepest": deepest,
        "stages": [*(model["name"] for model in exported[0]["models"] if "of" in model), deepest],
    }
    found = {
        "opened": opened,
        "some": len(trained) < len(results.layer_counts()),
        "others": [text["text"] for text in exported[1:] if text["models"]],
    }
    return told.section(LAB, "chapters/lab", found, {"lab": Widget("lab", LAB, models, about)})


def _printable(tokenizer: dict[str, Any]) -> dict[str, Any]:
    return {**tokenizer, "words": [visible(word) for word in tokenizer["words"]]}


def section_of(name: str, results: Results, figures: Figures) -> Section:
    """Return the section of a theme, with notes on the detectors that it relies on and on intervals from few windows,
    if it shows any."""
    theme = themes()[name]
    section = theme.section(results, figures)
    notes = [*doubts(theme.relies_on, results), coverage(results) * (theme.few_windows and len(section.blocks) > 0)]
    return replace(section, paragraphs=(*section.paragraphs, *filter(None, notes)))
