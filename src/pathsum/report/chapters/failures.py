"""The chapter on claims that did not reproduce, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pathsum.claims.formatting import number, plural, span
from pathsum.claims.judging import NOT, PARTLY, within
from pathsum.claims.one_layer import copying_heads, count, passing_share
from pathsum.claims.phase_change import BEFORE, formed_across_onset
from pathsum.claims.suffixes import LEFT, ablated
from pathsum.claims.two_layers import strongest_k_partner
from pathsum.page.document import ClaimCard, Section, Table, Text
from pathsum.records.ablations import EdgeContrastRow
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramTallyRow
from pathsum.records.suffixes import CONTROLS_OF, SuffixCutRow
from pathsum.records.verdicts import ClaimResult
from pathsum.report.themes import one_layer, sufficiency

TITLE = "What did not reproduce, and why"
UNKNOWN = "not known"
ALL = "Every claim that could be tested is reproduced."


def chapter(results: Results, claims: Sequence[ClaimResult], cards: Sequence[ClaimCard]) -> Section:
    """Return the section on claims that some models miss: their numbers and, where the records show it, the reason."""
    missed = [(c, card) for c, card in zip(claims, cards, strict=True) if c.verdict in (PARTLY, NOT)]
    if not missed:
        return Section(TITLE, (ALL,))
    table = Table.of(
        missed,
        Text("claim", lambda _, card: card.claim),
        Text("reproduced in", lambda _, card: card.passing),
        Text("median (range)", lambda _, card: f"{card.value} {card.unit}"),
        Text("needed", lambda claim, _: claim.threshold),
        Text("why", lambda claim, _: WHY.get(claim.id, lambda _: "")(results) or UNKNOWN),
        caption="",
        source="claims",
        fold=False,
    )
    return Section.of(TITLE, (), (table,), (one_layer.TITLE, sufficiency.TITLE))


def _copying(results: Results) -> str:
    found = [c for cell in results.with_layers(1) for c in copying_heads(cell)]
    return f"{count(found, 'weights')} heads copy by their weights (paper: 10 of 12)."


def _skip_trigrams(results: Results) -> str:
    base = passing_share([t for c in results.with_layers(1) for t in c.rows(SkipTrigramTallyRow)])
    return (
        "Of all candidate skip-trigrams that are more frequent than chance in both halves of the documents, "
        f"including those not judged here, a share of {number(base)} copy."
    )


def _repeats(results: Results) -> str:
    two = [c.summary for c in results.with_layers(2)]
    first = span([s.repeat_first_loss_nats - s.repeat_guessing_nats for s in two])
    return (
        "Random tokens are far from the training text: on the first copy, the loss is higher than that of guessing by "
        f"{first} nats per token."
    )


def _with_head(results: Results) -> list[Cell]:
    return [c for c in results.with_layers(2) if c.has_induction_head()]


def _partner(results: Results) -> str:
    cells = _with_head(results)
    others = sum(
        (edge.early_layer, edge.early_head) != (previous.layer, previous.head)
        for c in cells
        if (edge := strongest_k_partner(c)) and (previous := c.previous_token_head())
    )
    which = f"In {plural(others, 'model')}, another first-layer head composes more with the induction head's keys."
    return which if others else ""


def _key_edge(results: Results) -> str:
    cells = _with_head(results)
    missed = [rows[0].rivals for c in cells if (rows := [r for r in c.rows(EdgeContrastRow) if r.low <= 0])]
    if not missed:
        return ""
    return (
        f"In {plural(len(missed), 'model')}, cutting as many other edges raises the loss about as much, or more: "
        f"{'; '.join(missed)}."
    )


def _two_tokens(results: Results) -> str:
    """State in how many models half or more of the advantage of longer matches may (by the 95 % interval) be left
    without the two-token edges, in how many of the others cutting them may also remove half or more of one-token
    matching, and in how many a control may leave no more."""
    cells = _with_head(results)
    rows = [[r for cut in CONTROLS_OF for r in ablated(c, cut)] for c in cells]
    left = sum(any(r.left_high is not None and r.left_high >= LEFT for r in found) for found in rows)
    both = sum(
        bool(found)
        and all(r.left_high is not None and r.left_high < LEFT for r in found)
        and any(r.alone_left_low is not None and r.alone_left_low <= LEFT for r in found)
        for found in rows
    )
    beaten = sum(any(r.spared_low is not None and r.spared_low <= 0 for r in c.rows(SuffixCutRow)) for c in cells)
    carried = f"In {plural(both, 'model')}, cutting these edges may also remove half or more of one-token matching."
    unsure = f"In {plural(left, 'model')}, half or more of the preference for longer matches may be left."
    equal = f"In {plural(beaten, 'model')}, a control may leave no more of the preference than cutting these edges."
    return " ".join([carried] * bool(both) + [unsure] * bool(left) + [equal] * bool(beaten))


def _coincides(results: Results) -> str:
    rows = [around[0] for c in _with_head(results) if (around := formed_across_onset(c))]
    early = [r.loss_drop_nats for r in rows if r.loss_drop_nats >= BEFORE]
    unsure = sum(within(BEFORE, r.loss_drop_low, r.loss_drop_high) for r in rows)
    if not early:
        return ""
    return (
        f"Before the phase change, the loss drop was already {span(early)} nats in {plural(len(early), 'model')}; "
        f"{BEFORE} nats lies within the 95 % interval in {unsure} of {plural(len(rows), 'model')}. This threshold is "
        "ICL's, for other positions in the window."
    )


def _minimal(results: Results) -> str:
    cells = sufficiency.measured(results)
    return sufficiency.why_not_minimal(cells) if cells else ""


WHY: Mapping[str, Callable[[Results], str]] = {
    "one_layer_copying_heads": _copying,
    "one_layer_skip_trigrams": _skip_trigrams,
    "repeat_loss": _repeats,
    "k_composition": _partner,
    "induction_key_edge": _key_edge,
    "minimal_circuit_suffices": _minimal,
    "two_token_edges": _two_tokens,
    "phase_change_coincides": _coincides,
}
