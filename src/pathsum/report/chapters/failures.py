"""The chapter on claims that did not reproduce, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pathsum.claims.formatting import number, plural, span
from pathsum.claims.judging import REPRODUCED, UNTESTABLE
from pathsum.claims.one_layer import copying_heads, count, passing_share
from pathsum.claims.two_layers import strongest_k_partner
from pathsum.records.results import Results
from pathsum.records.skip_trigrams import SkipTrigramTallyRow
from pathsum.records.verdicts import ClaimResult
from pathsum.report.document import ClaimCard, Section
from pathsum.report.themes import one_layer, sufficiency

TITLE = "What did not reproduce, and why"
ALL = "Every model that a claim speaks about passes."


def chapter(results: Results, claims: Sequence[ClaimResult], cards: Sequence[ClaimCard]) -> Section:
    """Name each claim that some models miss, with its numbers and, where the records show it, the reason."""
    missed = [(c, card) for c, card in zip(claims, cards, strict=True) if c.verdict not in (REPRODUCED, UNTESTABLE)]
    text = tuple(_paragraph(results, claim, card) for claim, card in missed)
    return Section.of(TITLE, text or (ALL,), (), (one_layer.TITLE, sufficiency.TITLE) if text else ())


def _paragraph(results: Results, claim: ClaimResult, card: ClaimCard) -> str:
    reason = WHY.get(claim.id, lambda _: "")(results)
    said = reason or f"Needed: {claim.threshold}."
    return f"“{claim.claim}” {card.passing}: {card.value} {card.unit}. {said}"


def _copying(results: Results) -> str:
    found = [c for cell in results.with_layers(1) for c in copying_heads(cell)]
    return (
        f"By weights alone, as in the paper, {count(found, 'weights')} heads copy; few of them also do so in behavior."
    )


def _skip_trigrams(results: Results) -> str:
    base = passing_share([t for c in results.with_layers(1) for t in c.rows(SkipTrigramTallyRow)])
    return (
        f"Among all candidates that pass the same tests the share is {number(base)}: copying is not most of what these "
        "heads do."
    )


def _repeats(results: Results) -> str:
    two = [c.summary for c in results.with_layers(2)]
    first = span([s.repeat_first_loss_nats - s.repeat_guessing_nats for s in two])
    return (
        f"Random tokens are far from the training text: the loss on the first copy is {first} nats above that of "
        "guessing, and the models must first make up for that."
    )


def _partner(results: Results) -> str:
    cells = results.with_layers(2)
    others = sum(
        (edge.early_layer, edge.early_head) != (previous.layer, previous.head)
        for c in cells
        if (edge := strongest_k_partner(c)) and (previous := c.previous_token_head())
    )
    return (
        f"In {others} of {plural(len(cells), 'model')} another first-layer head has the larger score." if others else ""
    )


def _suffices(_: Results) -> str:
    return (
        "The rest of the model was resampled: induction heads also need what other heads feed into their queries and "
        "keys."
    )


def _coincides(_: Results) -> str:
    return "Those that miss had more of the loss drop before the phase change: skip-trigrams use the context too."


WHY: Mapping[str, Callable[[Results], str]] = {
    "one_layer_copying_heads": _copying,
    "one_layer_skip_trigrams": _skip_trigrams,
    "repeat_loss": _repeats,
    "k_composition": _partner,
    "circuit_suffices": _suffices,
    "phase_change_coincides": _coincides,
}
