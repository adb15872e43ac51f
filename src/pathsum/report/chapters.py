"""The chapters of the report: the main results, with their figures. Details are in the appendix, words in chapters/."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pathsum.behavior.in_context import LONG_CONTEXT
from pathsum.claims.judging import NOT, PARTLY
from pathsum.claims.one_layer import confirmed
from pathsum.claims.preregistration import Preregistration
from pathsum.claims.sufficiency import MOST
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import Kept
from pathsum.records.verdicts import ClaimResult
from pathsum.report import told
from pathsum.report.figures.base import in_detail
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import TERM, ClaimCard, Entry, Kind, Section, Table, slug
from pathsum.report.theme import Figures, calibrated, detectors
from pathsum.report.themes import (
    agreement,
    behaviour,
    calibration,
    causal,
    content,
    controls,
    dose_response,
    exactness,
    formation,
    joint_ablation,
    one_layer,
    phase_change,
    provenance,
    softmax_competition,
    sufficiency,
    suffixes,
    two_layers,
    zero_layers,
)
from pathsum.report.themes.agreement import QUESTIONS, SAYS, evidence
from pathsum.report.themes.calibration import TRUSTED, certain, trusted
from pathsum.report.told import Frames
from pathsum.report.verdicts import PREREGISTRATION

SETUP = "Setup, terms and limits"
ZERO_LAYERS = "Zero layers: a bigram table"
ONE_LAYER = "One layer: skip-trigrams, no induction"
TWO_LAYERS = "Two layers: induction heads"
FAILURES = "What did not reproduce, and why"
LEARNING = "Learning: a phase change"
TRUST = "Why believe it"
LISTED = 6  # skip-trigrams in the table of the chapter on one layer

Claims = Mapping[str, ClaimResult]  # by their ids


def setup_chapter(results: Results, registered: Preregistration) -> Section:
    """State what was trained and on what, define the terms, and name the limits."""
    cells = Frames(results.cells).cells
    found = {"cells": cells, "corpus": results.corpus, "registered": registered, "long": cells["n_ctx"] >= LONG_CONTEXT}
    found |= {"opened": "opened" in results.provenance}
    lines = told.paragraphs("chapters/terms", found | {"long_from": LONG_CONTEXT})
    pairs = [text.split(": ", 1) for text in lines]
    meanings = [(Entry(term, anchor=TERM + slug(term)), meaning) for term, meaning in pairs]
    columns = ["term", "meaning"]
    terms = told.table(pd.DataFrame(meanings, columns=columns), "", texts=columns, title="Terms")
    return told.section(SETUP, "chapters/setup", found, {"terms": terms}, PREREGISTRATION)


def zero_chapter(results: Results, figures: Figures) -> Section:
    """Compare zero-layer models with the bigram statistics of the text."""
    if not results.of_depth(0):
        return told.absent(ZERO_LAYERS)
    t = Frames(results.cells)
    found = {
        **zero_layers.facts(results),
        "deep": t.cells.query("n_layers > 0"),
        "alone": t.lens.query("layers == 0 and n_layers > 0")["loss_nats"],
    }
    return told.section(ZERO_LAYERS, "chapters/zero_layers", found, figures, zero_layers.TITLE)


def one_chapter(results: Results, figures: Figures) -> Section:
    """Describe what one layer of attention adds, and what it cannot do."""
    if not results.of_depth(1):
        return told.absent(ONE_LAYER)
    cell = in_detail(results)[1]
    caption = (
        f"Skip-trigrams of {cell.name} that both halves of the documents confirm, with the largest total effects "
        "(mean × places)."
    )
    listed = skip_trigrams(strongest(cell), caption)
    found, more = one_layer.facts(results), (one_layer.TITLE, softmax_competition.TITLE)
    return told.section(ONE_LAYER, "chapters/one_layer", found, {**figures, "strongest": listed}, *more)


def strongest(cell: Cell) -> list[dict[str, Any]]:
    """Return rows of the confirmed skip-trigrams with the largest total effects."""
    return [
        {
            "source …": visible(r.source),
            "destination": visible(r.destination),
            "→ output": visible(r.out),
            "raises log P(output) by (nats)": r.change_nats,
            "more often than by chance (×)": r.text_lift,
        }
        for r in confirmed(cell)[:LISTED]
    ]


def skip_trigrams(rows: list[dict[str, Any]], caption: str) -> Table:
    """Return the table of ``strongest`` rows, which may have a column "text" as well."""
    kinds: dict[str, Kind] = {"source …": "token", "destination": "token", "→ output": "token"}
    digits = {"more often than by chance (×)": 1}
    return told.table(pd.DataFrame(rows), caption, digits, kinds, ["text"], source="skip_trigrams", fold=False)


def two_chapter(results: Results, figures: Figures, claims: Claims) -> Section:
    """Describe how the induction heads of two-layer models work."""
    if not results.of_depth(2):
        return told.absent(TWO_LAYERS)
    t = Frames({cell.name: cell for cell in results.of_depth(2) if cell.has_induction_head()})
    kept = t.sufficiency[t.sufficiency["cell"].map(claims["circuit_suffices"].values).notna()]
    found = {
        **two_layers.facts(Frames({cell.name: cell for cell in results.of_depth(2)})),
        "claims": claims,
        "kept": {kind.name: kept[kept["kept"] == kind] for kind in Kept},
        "needed": MOST,
        "suffix": suffixes.facts(t),
    }
    more = (two_layers, behaviour, causal, sufficiency, content, suffixes)
    return told.section(TWO_LAYERS, "chapters/two_layers", found, figures, *(theme.TITLE for theme in more))


def failures_chapter(results: Results, cards: Sequence[ClaimCard]) -> Section:
    """Return the section on claims that some models miss: their numbers and, where the records show it, the reason."""
    missed = [card for card in cards if card.result.verdict in (PARTLY, NOT)]
    if not missed:
        return Section(FAILURES, ("Every claim that could be tested is reproduced.",))
    t = Frames({c.name: c for c in results.of_depth(2) if c.has_induction_head()})
    claims = {card.result.id: card.result for card in cards}
    partners, edges = claims["k_composition"], claims["two_token_edges"]
    found = {
        **one_layer.facts(results),
        "models": t.cells,
        "two": Frames(results.cells).cells.query("n_layers > 1"),
        "others": [name for name in partners.short if partners.values[name] is not None],
        "rivals": t.edge_contrasts.query("low <= 0").drop_duplicates("cell")["rivals"],
        "reasons": Counter(part.rpartition(" to ")[0] or part for n in edges.notes.values() for part in n.split(", ")),
        "circuit": sufficiency.facts(t),
    }
    why = dict(text.split(": ", 1) for text in told.paragraphs("chapters/failures", found))
    rows = [
        {
            "claim": card.result.claim,
            "reproduced in": card.passing,
            "median (range)": f"{card.value} {card.unit}",
            "needed": card.result.threshold,
            "why": why.get(card.result.id, "not known"),
        }
        for card in missed
    ]
    shown = told.table(pd.DataFrame(rows), "", texts=list(rows[0]), source="claims", fold=False)
    return Section(FAILURES, (), (shown,), (one_layer.TITLE, sufficiency.TITLE))


def learning_chapter(results: Results, figures: Figures, claims: Claims) -> Section:
    """Describe when induction heads form, what forms before them, and how much of the loss drop depends on them."""
    t = Frames(results.cells)
    found = {
        "onsets": [t.cells["onset_tokens"].astype(float)[[c.name for c in results.of_depth(n)]] for n in range(3)],
        "curves": results.has_curves,
        "open": overlap(t.changes[t.changes["n_layers"] > 1]),
        "claims": claims,
        "doses": dose_response.facts(results.doses),
    }
    more = (phase_change, formation, joint_ablation, dose_response)
    return told.section(LEARNING, "chapters/learning", found, figures, *(theme.TITLE for theme in more))


def overlap(changes: pd.DataFrame) -> pd.Series:
    """Return, for each model with both, whether the intervals of the rises of loss drop and prefix matching overlap:
    95 % bootstrap intervals or, without them, the evaluations before and after."""
    known = changes[["low_documents", "high_documents"]].notna().all(axis=1)
    ends = {end: changes[f"{end}_documents"].where(known, changes[end]).astype(float) for end in ("low", "high")}
    rows = changes.assign(**ends).pivot(index="cell", columns="quantity", values=["low", "high"])
    rows = rows.reindex(columns=[(e, q) for e in ends for q in ("loss_drop_nats", "prefix_matching")]).dropna()
    low, high = (pd.DataFrame(rows[end]) for end in ends)
    return low.max(axis=1) <= high.min(axis=1)


def trust_chapter(results: Results, figures: Figures) -> Section:
    """Show exactness, the controls, the agreement of three kinds of evidence, and the calibration of the detectors."""
    cells, rows = Frames(results.cells).cells, calibrated(results)
    found = {
        "error": cells.loc[cells["n_layers"] > 0, "exactness"].max(),
        "outcomes": controls.facts(Frames(results.controls)),
        "tested": rows,
        "weak": [detectors()[row.detector].name for row in rows if not trusted(row)],
        "certain": sum(map(certain, rows)),
        "trusted": TRUSTED,
        "found": agreeing(evidence(Frames(results.cells))),
    }
    more = (calibration.TITLE, agreement.TITLE, controls.TITLE, exactness.TITLE, PREREGISTRATION, provenance.TITLE)
    return told.section(TRUST, "chapters/trust", found, figures, *more)


def agreeing(items: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return, by question, heads and edges that at least one kind of evidence finds, if all three were measured."""
    known = items.dropna(subset=SAYS).astype(dict.fromkeys(SAYS, bool))
    known = known.assign(all_say=known[SAYS].all(axis=1))[known[SAYS].any(axis=1)]
    return {q: rows for q in QUESTIONS if len(rows := known[known["question"] == q])}
