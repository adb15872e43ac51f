"""The chapter on claims that did not reproduce, and why. The words are in failures.md, a paragraph per claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pathsum.claims.judging import NOT, PARTLY
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import told
from pathsum.report.page.document import ClaimCard, Section, Table, Text
from pathsum.report.themes import one_layer, sufficiency
from pathsum.report.told import Frames

TITLE = "What did not reproduce, and why"


def facts(results: Results, claims: Mapping[str, ClaimResult]) -> dict[str, Any]:
    """Return what the records say about claims that some models miss, over the models with an induction head."""
    t = Frames({cell.name: cell for cell in results.with_layers(2) if cell.has_induction_head()})
    partners, edges = claims["k_composition"], claims["two_token_edges"]
    return {
        **one_layer.facts(results),
        "models": t.cells,
        "two": Frames(results.cells).cells.query("n_layers == 2"),
        "others": [name for name in partners.short if partners.values[name] is not None],
        "rivals": t.edge_contrasts.query("low <= 0").drop_duplicates("cell")["rivals"],
        "reasons": Counter(part.rpartition(" to ")[0] or part for n in edges.notes.values() for part in n.split(", ")),
        "circuit": sufficiency.facts(t),
    }


def chapter(results: Results, claims: Sequence[ClaimResult], cards: Sequence[ClaimCard]) -> Section:
    """Return the section on claims that some models miss: their numbers and, where the records show it, the reason."""
    missed = [(c, card) for c, card in zip(claims, cards, strict=True) if c.verdict in (PARTLY, NOT)]
    if not missed:
        return Section(TITLE, ("Every claim that could be tested is reproduced.",))
    reasons = told.paragraphs("chapters/failures", facts(results, {claim.id: claim for claim in claims}))
    why = dict(text.split(": ", 1) for text in reasons)
    table = Table.of(
        missed,
        Text("claim", lambda _, card: card.claim),
        Text("reproduced in", lambda _, card: card.passing),
        Text("median (range)", lambda _, card: f"{card.value} {card.unit}"),
        Text("needed", lambda claim, _: claim.threshold),
        Text("why", lambda claim, _: why.get(claim.id, "not known")),
        caption="",
        source="claims",
        fold=False,
    )
    return Section.of(TITLE, (), (table,), (one_layer.TITLE, sufficiency.TITLE))
