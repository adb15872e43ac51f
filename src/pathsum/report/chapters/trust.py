"""The chapter on why to believe the results: controls, calibration, agreement, exactness."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import number, plural
from pathsum.page.document import Section
from pathsum.records.results import Results
from pathsum.report import agreement as agreed
from pathsum.report.theme import Figures, calibrated, detectors, drawn
from pathsum.report.themes import agreement, calibration, controls, exactness, provenance
from pathsum.report.themes.calibration import TRUSTED, certain, trusted
from pathsum.report.verdicts import PREREGISTRATION

TITLE = "Why believe it"
FOR = {  # how the questions of the agreement are printed
    agreed.COPIES: "copying heads",
    agreed.INDUCTION: "induction heads",
    agreed.PREVIOUS: "previous-token heads",
    "K-edge": "key edges",
    "Q-edge": "query edges",
    "V-edge": "value edges",
}


def chapter(results: Results, figures: Figures) -> Section:
    """Show exactness, the controls, the agreement of three kinds of evidence, and the calibration of the detectors."""
    text = (_exactness(results), _controls(results), _agreement(results), _calibration(results))
    blocks = drawn(figures, "calibration", "controls")
    more = (
        calibration.TITLE,
        agreement.TITLE,
        controls.TITLE,
        exactness.TITLE,
        PREREGISTRATION,
        provenance.TITLE,
    )
    return Section.of(TITLE, text, blocks, more)


def _calibration(results: Results) -> str:
    rows = calibrated(results)
    if not rows:
        return "No detector was tested on text with known structure."
    weak, sure = [detectors()[r.detector].name for r in rows if not trusted(r)], sum(map(certain, rows))
    text = (
        "Detectors were tested on models of synthetic text with known rules. Precision and recall both reach "
        f"{TRUSTED} for {len(rows) - len(weak)} of {plural(len(rows), 'detector')}; for {sure}, the lower ends of both "
        "intervals do too."
    )
    short = f"Precision or recall does not reach {TRUSTED} for"
    return f"{text} {short}: {', '.join(f'“{name}”' for name in weak)}." if weak else text


def _agreement(results: Results) -> str:
    items = [item for cell in results.cells.values() for item in agreed.judged(cell)]
    parts = [part for q in agreed.QUESTIONS if (part := _all_three(items, q))]
    if not parts:
        return ""
    found = [item.agreed for q in agreed.QUESTIONS for item in _found(items, q)]
    often = "agree" if all(found) else "often disagree" if 2 * sum(found) < len(found) else "sometimes disagree"
    return (
        f"Three kinds of evidence, weights, behavior and intervention, {often}. Of those heads and edges that at least "
        f"one kind finds, all three find {', '.join(parts)}.{copying_text(items)}{composing_text(items)}"
    )


def _found(items: Sequence[agreed.Judged], question: str) -> list[agreed.Judged]:
    """Return the heads or edges that at least one kind of evidence finds, of those where all three were measured."""
    asked = [i for i in items if i.question == question and all(i.of(kind) is not None for kind in agreed.KINDS)]
    return [i for i in asked if any(i.says(kind) for kind in agreed.KINDS)]


def _all_three(items: Sequence[agreed.Judged], question: str) -> str:
    some = _found(items, question)
    return f"{sum(i.agreed for i in some)} of {len(some)} {FOR[question]}" if some else ""


def copying_text(items: Sequence[agreed.Judged]) -> str:
    """State how many heads copy by each kind of evidence, of those that copy by at least one; empty if all kinds
    agree."""
    some = _found(items, agreed.COPIES)
    if all(i.agreed for i in some):
        return ""
    weights, behaviour, intervention = (sum(i.says(kind) for i in some) for kind in agreed.KINDS)
    first = sum(i.says("intervention") and i.n_layers > 1 and i.name.startswith("L0") for i in some)
    return (
        f" Of the {plural(len(some), 'copying head')}, {weights} copy by weights and {behaviour} by behavior. For "
        f"{intervention}, resample ablation significantly raises the loss on the second copy ({first} of these in "
        "the first layer of deeper models, where heads can matter without copying)."
    )


def composing_text(items: Sequence[agreed.Judged]) -> str:
    """State how many K- and Q-edges compose, of those that the second copy needs; empty if it needs none."""
    parts = []
    for question in ("K-edge", "Q-edge"):
        needed = [i for i in items if i.question == question and i.weights and i.says("intervention")]
        if needed:
            parts.append(f"{sum(i.says('weights') for i in needed)} of {len(needed)} {FOR[question]}")
    return f" Of the edges that the second copy needs, composition scores find {' and '.join(parts)}." if parts else ""


def _controls(results: Results) -> str:
    outcomes = [(c.name, controls.outcome(c)[1]) for c in results.controls.values() if controls.outcome(c)[1] != "–"]
    if not outcomes:
        return ""
    failed = [name for name, outcome in outcomes if outcome != "as expected"]
    but = f" (not: {', '.join(failed)})" if failed else ""
    bare = sum(not c.summary.tokens_seen for c in results.controls.values())
    held = f"{len(outcomes) - len(failed)} of {plural(len(outcomes), 'control')} with a predictable outcome"
    return f"{held}{f' ({bare} untrained)' if bare else ''} end as predicted{but}."


def _exactness(results: Results) -> str:
    errors = [c.summary.exactness for c in results.cells.values() if c.summary.n_layers]
    if not errors:
        return ""
    return (
        "With attention patterns and norm scales fixed, the sum over all paths equals the model's logits up to a "
        f"relative error of {number(max(errors))} (float64, all checkpoints)."
    )
