"""Judge claims: find the result of each model that a claim concerns, and a verdict over these models."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pathsum.claims.formatting import number, plural, span
from pathsum.claims.samples import UNKNOWN, Level, Sample
from pathsum.records.results import Cell, Results
from pathsum.records.verdicts import ClaimResult

REPRODUCED, PARTLY, NOT, UNTESTABLE = "reproduced", "partly", "not", "not testable here"
ABSENT = "no induction head here"  # verdict on a claim about induction heads if no model has one
NO_MODEL = "No model here is of the kind that the claim concerns."
OWN = "this suite"  # the section of a claim that is in neither paper


@dataclass(frozen=True)
class Finding:
    """The result of one model for a claim."""

    value: float | None  # of the measure; None: not measured, or undefined for this model
    passes: bool
    note: str = ""  # shown after the value if the model does not pass
    unsure: bool = False  # a threshold lies within the 95 % interval of the number that it bounds


@dataclass(frozen=True)
class Claim:
    """A claim with its measure and its threshold."""

    id: str
    claim: str
    section: str  # of the paper
    measure: str
    threshold: str
    evaluate: Callable[[Results], Mapping[str, Finding]]  # a finding for each model that the claim concerns
    unit: str  # of the measure, with its range where it has one
    sample: Sample  # what the value of one model rests on (n)
    digits: int = 2
    chance: Level = lambda _: UNKNOWN  # the measure's value without the effect
    papers: str = UNKNOWN  # value in the papers or their public checkpoints
    theme: str = ""  # the file that defines the claim, and the section of the report with the evidence
    needs_induction_head: bool = False  # judged only on models with one (``Cell.has_induction_head``)


def judge(claim: Claim, results: Results) -> ClaimResult:
    """Judge ``claim`` on ``results``. The ``value`` of the result is the median over models (None without values)."""
    found = claim.evaluate(results)
    absent = [n for n in found if claim.needs_induction_head and not results.cells[n].has_induction_head()]
    findings = {name: finding for name, finding in found.items() if name not in absent}
    short = [name for name, f in findings.items() if not f.passes]
    unsure = [name for name, f in findings.items() if f.unsure]
    notes = {name: findings[name].note for name in short if findings[name].note}
    known = [f.value for f in findings.values() if f.value is not None]
    verdict, detail = ABSENT if absent else UNTESTABLE, []
    if findings:
        verdict = NOT if len(short) == len(findings) else PARTLY if short else REPRODUCED
        passing = f"{len(findings) - len(short)} of {plural(len(findings), 'model')}"
        detail = [f"{passing} {'passes' if len(findings) == 1 else 'pass'}; {_range(known, claim.digits)}."]
    if notes:
        told = [f"{name}: {number(findings[name].value, claim.digits)} ({note})" for name, note in notes.items()]
        detail.append(f"Models that do not pass: {'; '.join(told)}.")
    return ClaimResult(
        id=claim.id,
        claim=claim.claim,
        section=claim.section,
        measure=claim.measure,
        threshold=claim.threshold,
        value=statistics.median(known) if known else None,
        values={name: f.value for name, f in findings.items()},
        verdict=verdict,
        detail=" ".join([*detail, *remarks(unsure, len(findings), absent)]),
        short=short,
        notes=notes,
        unsure=unsure,
        absent=absent,
    )


def _range(known: Sequence[float], digits: int) -> str:
    """Format the range over models, labeled as a range so that it is not mistaken for a confidence interval."""
    shown = span(known, digits) if known else "no value"
    return f"range over models {shown}" if " to " in shown else shown


def remarks(unsure: Sequence[str], judged: int, absent: Sequence[str]) -> list[str]:
    """Name the models in which a threshold is near, and those without an induction head, or say that there is none."""
    found = []
    if unsure:
        names = " and ".join(filter(None, (", ".join(unsure[:-1]), unsure[-1])))
        where = "every model" if 1 < len(unsure) == judged else names
        found.append(f"In {where}, a threshold lies within a 95 % interval.")
    if absent:
        found.append(f"No induction head here, so not judged: {', '.join(absent)}.")
    return found or [NO_MODEL] * (not judged)


def each(
    depth: int | None, find: Callable[[Cell], Finding], where: Callable[[Cell], object] = lambda _: True
) -> Callable[[Results], dict[str, Finding]]:
    """Return a function from results to the findings of ``find`` by name of the model: for each model of the grid with
    ``depth`` layers (2: two or more; None: any number), if ``where`` is true for it."""

    def evaluate(results: Results) -> dict[str, Finding]:
        cells = results.cells.values() if depth is None else results.of_depth(depth)
        return {c.name: find(c) for c in cells if where(c)}

    return evaluate


def within(threshold: float, low: float | None, high: float | None) -> bool:
    """Return whether ``threshold`` lies in the interval from ``low`` to ``high``. False if an end is None."""
    return low is not None and high is not None and low <= threshold <= high


def at_least(value: float | None, threshold: float, note: str = "") -> Finding:
    """Return a finding that passes if ``value`` is at least ``threshold``. A ``value`` of None does not pass."""
    return Finding(value, value is not None and value >= threshold, note)
