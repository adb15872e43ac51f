"""Judge claims: find the result of each model that a claim concerns, and a verdict over these models
(docs/framework.md §10.7)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pathsum.claims.chance import UNKNOWN, Level, always
from pathsum.claims.formatting import number, plural
from pathsum.claims.samples import Sample
from pathsum.records.results import Cell, Results
from pathsum.records.verdicts import ClaimResult

REPRODUCED, PARTLY, NOT, UNTESTABLE = "reproduced", "partly", "not", "not testable here"
ABSENT = "no induction head here"  # verdict on a claim about induction heads if no model has one
NO_MODEL = "This sweep has no model that the claim concerns."
OWN = "this suite"  # the section of a claim that is in neither paper


@dataclass(frozen=True)
class Finding:
    """The result of one model for a claim: the value of the measure (None: not measured, or undefined for this model),
    whether the model passes, and a note, which the report shows after the value if the model does not pass."""

    value: float | None
    passes: bool
    note: str = ""
    unsure: bool = False  # a threshold lies within the 95 % interval of the number that it bounds


_UNKNOWN = always(UNKNOWN)


@dataclass(frozen=True)
class Claim:
    """A claim with its measure and its threshold.

    ``theme`` names the file that defines the claim, and the section of the report that shows the evidence.
    """

    id: str
    claim: str
    section: str  # of the paper
    measure: str
    threshold: str
    evaluate: Callable[[Results], Mapping[str, Finding]]  # a finding for each model that the claim concerns
    unit: str  # of the measure, with its range where it has one
    sample: Sample  # what the value of one model rests on (n)
    digits: int = 2
    chance: Level = _UNKNOWN  # the measure's value without the effect
    papers: str = UNKNOWN  # value in the papers or their public checkpoints
    theme: str = ""
    needs_induction_head: bool = False  # judged only on models with one (``Cell.has_induction_head``)


def judge(claim: Claim, results: Results) -> ClaimResult:
    """Judge ``claim`` on ``results``. The ``value`` of the result is the median over models (None without values)."""
    found = claim.evaluate(results)
    absent = [n for n in found if claim.needs_induction_head and not results.cells[n].has_induction_head()]
    findings = {name: finding for name, finding in found.items() if name not in absent}
    passing = sum(f.passes for f in findings.values())
    known = [f.value for f in findings.values() if f.value is not None]
    verdict = ABSENT if absent else UNTESTABLE
    if findings:
        verdict = REPRODUCED if passing == len(findings) else PARTLY if passing else NOT
    return ClaimResult(
        id=claim.id,
        claim=claim.claim,
        section=claim.section,
        measure=claim.measure,
        threshold=claim.threshold,
        value=statistics.median(known) if known else None,
        values={name: f.value for name, f in findings.items()},
        verdict=verdict,
        detail=_detail(claim, findings, absent, known),
        short=[name for name, f in findings.items() if not f.passes],
        notes={name: f.note for name, f in findings.items() if _noted(f)},
        unsure=[name for name, f in findings.items() if f.unsure],
        absent=absent,
    )


def _detail(claim: Claim, findings: Mapping[str, Finding], absent: Sequence[str], known: list[float]) -> str:
    if not findings:
        return without_head(absent) or NO_MODEL
    passing = sum(f.passes for f in findings.values())
    values = _range([number(v, claim.digits) for v in sorted(known)])
    notes = [f"{name}: {number(f.value, claim.digits)} ({f.note})" for name, f in findings.items() if _noted(f)]
    sentences = [
        f"{passing} of {plural(len(findings), 'model')} {'passes' if len(findings) == 1 else 'pass'}; {values}.",
        f"Models that do not pass: {'; '.join(notes)}." if notes else "",
        near_threshold([name for name, f in findings.items() if f.unsure], len(findings)),
        without_head(absent),
    ]
    return " ".join(filter(None, sentences))


def _noted(finding: Finding) -> bool:
    return not finding.passes and bool(finding.note)


def near_threshold(models: Sequence[str], of: int) -> str:
    """Return a sentence that names the ``models``, of ``of`` in all, in which a threshold lies within a 95 % interval.
    Empty if there is none."""
    if not models:
        return ""
    names = " and ".join(filter(None, (", ".join(models[:-1]), models[-1])))
    return f"In {'every model' if 1 < len(models) == of else names}, a threshold lies within a 95 % interval."


def without_head(models: Sequence[str]) -> str:
    """Return a sentence that names the ``models`` without an induction head. Empty if there is none."""
    return f"No induction head here, so not judged: {', '.join(models)}." if models else ""


def _range(known: list[str]) -> str:
    """Format the range over models, labeled as a range so that it is not mistaken for a confidence interval."""
    if not known:
        return "no value"
    return known[0] if known[0] == known[-1] else f"range over models {known[0]} to {known[-1]}"


def each(n_layers: int | None, find: Callable[[Cell], Finding]) -> Callable[[Results], dict[str, Finding]]:
    """Return a function from results to the findings of ``find`` by name of the model: for each model of the grid with
    ``n_layers`` layers, or for each model of the grid if ``n_layers`` is None. Empty if there is no such model."""

    def evaluate(results: Results) -> dict[str, Finding]:
        cells = results.cells.values() if n_layers is None else results.with_layers(n_layers)
        return {c.name: find(c) for c in cells}

    return evaluate


def within(threshold: float, low: float | None, high: float | None) -> bool:
    """Return whether ``threshold`` lies in the interval from ``low`` to ``high``. False if an end is None."""
    return low is not None and high is not None and low <= threshold <= high


def at_least(value: float | None, threshold: float, note: str = "") -> Finding:
    """Return a finding that passes if ``value`` is at least ``threshold``. A ``value`` of None does not pass."""
    return Finding(value, value is not None and value >= threshold, note)
