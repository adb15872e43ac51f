"""The chapter on learning: the phase change."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from pathsum.claims.formation import by_onset, change_of
from pathsum.claims.formatting import millions, plural, span
from pathsum.claims.joint_ablation import MOST, undecided
from pathsum.claims.judging import REPRODUCED
from pathsum.page.document import Section
from pathsum.records.formation import ChangePointRow
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.theme import Figures, drawn
from pathsum.report.themes import dose_response, formation, joint_ablation, phase_change

TITLE = "Learning: a phase change"


def chapter(results: Results, figures: Figures, claims: Mapping[str, ClaimResult]) -> Section:
    """Describe when induction heads form, what forms before them, and how much of the loss drop depends on them."""
    more = (phase_change.TITLE, formation.TITLE, joint_ablation.TITLE, dose_response.TITLE)
    text = (
        _onset(results, claims["phase_change_coincides"]),
        _order(claims["previous_token_first"]),
        _joint(results, claims["joint_ablation"]),
        dose_response.paragraph(results.doses),
    )
    return Section.of(TITLE, text, drawn(figures, "phase_change", "dose_response"), more)


def _onset(results: Results, coincides: ClaimResult) -> str:
    two = [c.summary for c in results.with_layers(2)]
    onsets = [s.onset_tokens for s in two if s.onset_tokens is not None]
    if not onsets:
        return "No two-layer model went through a phase change."
    with_one = results.with_layers(1)
    one = f"{sum(c.summary.onset_tokens is not None for c in with_one)} of {len(with_one)}"
    median, first, last = (millions(pick(onsets)) for pick in (statistics.median, min, max))
    n = len(coincides.values)
    with_it = (
        f" By ICL's thresholds, in-context learning appears at the phase change in {n - len(coincides.short)} of {n}."
        if n
        else ""
    )
    return (
        f"Induction heads form in {len(onsets)} of {plural(len(two), 'two-layer model')} and in {one} with "
        f"one layer; the median onset is {median} tokens ({first} to {last}).{with_it}{_undecided_order(results)}"
        f"{_bends(results)}"
    )


def _undecided_order(results: Results) -> str:
    """State in how many models the rises of loss drop and prefix matching have intervals that overlap; empty if in
    none."""
    both = [
        (drop, matching)
        for c in results.with_layers(2)
        if (drop := change_of(c, "loss_drop_nats")) and (matching := change_of(c, "prefix_matching"))
    ]
    undecided = 0
    for drop, matching in both:
        (low, high), (first, last) = _interval(drop), _interval(matching)
        undecided += low <= last and first <= high
    if not undecided:
        return ""
    return (
        f" In {undecided} of {len(both)}, intervals leave open whether the in-context loss drop rises before or after "
        "prefix matching."
    )


def _interval(change: ChangePointRow) -> tuple[int, int]:
    """Return the 95 % bootstrap interval in tokens seen or, if there is none, the evaluations before and after."""
    if change.low_documents is None or change.high_documents is None:
        return change.low, change.high
    return change.low_documents, change.high_documents


def _bends(results: Results) -> str:
    """State in how many models with and without a phase change a fit finds a bend of the loss; empty unless there are
    both kinds."""
    formed, others = by_onset(results)
    if not formed or not others:
        return ""
    bent, rest = (sum(change_of(c, "loss_nats") is not None for c in cells) for cells in (formed, others))
    marks = rest == 0 and bent == len(formed)
    return (
        f" A fit of two lines to the loss over log tokens finds a bend to a steeper slope in {bent} of "
        f"{plural(len(formed), 'model')} with induction and in {rest} of {len(others)} without, so such a bend "
        f"{'marks' if marks else 'does not mark'} the phase change."
    )


def _order(claim: ClaimResult) -> str:
    leads = [lead for lead in claim.values.values() if lead is not None]
    if claim.verdict != REPRODUCED:
        return ""
    return (
        f"The previous-token head forms {millions(min(leads))} to {millions(max(leads))} tokens before the "
        "induction head."
    )


def _joint(results: Results, claim: ClaimResult) -> str:
    shares = [share for share in claim.values.values() if share is not None]
    if not shares:
        return ""
    more = ", more than ablating as many other heads or removing random directions" * (claim.verdict == REPRODUCED)
    two = results.with_layers(2)
    unsure = sum(undecided(cell) for cell in two if cell.name in claim.values)
    among = (
        f" in the {len(claim.values)} of {plural(len(two), 'two-layer model')} whose layers have as many other heads"
        if len(claim.values) < len(two)
        else ""
    )
    doubt = (
        f" But in {unsure} of {plural(len(shares), 'model')}, the 95 % interval of this share includes {MOST}, the "
        "least share needed."
    )
    return (
        f"Ablating all induction heads together{among} removes a share of {span(shares)} of the in-context loss drop "
        f"(minus that of the bigram model; the smaller effect of zero and resample ablation){more}."
        f"{doubt if unsure else ''}"
    )
