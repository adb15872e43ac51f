"""How far each detector can be trusted, and a word wherever one cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pathsum.records import CalibrationRow
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures import Figure
from pathsum.report.figures.calibration import NAMES, TRUSTED
from pathsum.report.symbols import number, plural
from pathsum.results import Results

TITLE = "How far to trust the detectors"
PLANTED = {  # what was planted for each, and what counts as found
    "bigram": "the five likeliest successors of each word; those of the direct path of a zero-layer model",
    "skip_trigram": "source … destination → out; entries of the atlas that the text bears out",
    "previous_token": "the word before the last tells of the next, which only one head can carry on; the label",
    "induction": "stretches of text come again, and one head alone can tell what followed; the label",
    "copying": "as for induction, whose heads must write what they read; eigenvalue positivity above 0.5",
    "composition_q": "the edge into the queries by which an answer is looked up under two words; a significant score",
    "composition_k": "the edge into the keys by which copies are foretold; a significant score",
    "composition_v": "the edge into the values that makes a virtual head; a significant score",
    "composition": "every edge that a model relies on, though its text may ask for another; a significant score",
    "phase_change": "when the loss on planted copies is half-way down; the onset of prefix matching, to one evaluation",
}


def section(results: Results, figures: Mapping[str, Figure]) -> Section:
    """The scoreboard of precision and recall on planted truth."""
    rows = results.calibration
    if not rows:
        return Section(TITLE, ("No detector was tried on text with known structure.",), ())
    left_out = max(r.not_learnt for r in rows)
    models = max(r.models for r in rows) + left_out
    text = (
        f"Detectors were tried on {plural(models, 'model')} trained on generated text with known structure. These have "
        "one head a layer, so that it is known which head must do what, and through which edge, if the text is learnt "
        f"at all; {left_out or 'none'} had not learnt it and {'was' if left_out == 1 else 'were'} left out. Nothing is "
        "planted for a detector in the other texts, nor in untrained models, nor in edges from a head of one model to "
        "the later head of another. An edge is there if the model relies on it, which an intervention tells: the loss "
        "where the rule made the word rises by half a nat without the edge. (It is not there below a tenth; what lies "
        "between is left out.) Precision is the "
        "share of what was found that is there, recall the share of what is there that was found."
    )
    return Section(TITLE, (text, _limits(rows)), (figures["calibration"], _table(rows)))


def marked(section: Section, detectors: Sequence[str], results: Results) -> Section:
    """``section``, with a word on each of its ``detectors`` that is not to be trusted."""
    found = {r.detector: r for r in results.calibration}
    doubts = [_doubt(found[name]) for name in detectors if name in found and not trusted(found[name])]
    return replace(section, paragraphs=(*section.paragraphs, *doubts))


def trusted(row: CalibrationRow) -> bool:
    """Whether precision and recall reach TRUSTED; what was not measured is not trusted."""
    return all(share is not None and share >= TRUSTED for share in (row.precision, row.recall))


def _doubt(row: CalibrationRow) -> str:
    return (
        f"Caution: on planted truth the detector of {NAMES[row.detector]} has a precision of {number(row.precision)} "
        f"and a recall of {number(row.recall)}."
    )


def _limits(rows: Sequence[CalibrationRow]) -> str:
    weak = [NAMES[r.detector] for r in rows if not trusted(r)]
    verdict = f"Under {TRUSTED}: {', '.join(weak)}." if weak else f"All reach {TRUSTED} in both."
    return (
        f"{verdict} Real models have several heads a layer that share a job, and words of which no table is known: "
        "these shares are what the detectors do at their best."
    )


def _table(rows: Sequence[CalibrationRow]) -> Table:
    columns = ("detector", "planted; found if", "n", "planted", "found", "precision (95 %)", "recall (95 %)")
    fields = tuple(
        (
            Entry(NAMES[r.detector]),
            Entry(PLANTED[r.detector]),
            *(Entry(str(count), "number") for count in (r.n, r.planted, r.found)),
            Entry(_share(r.precision, r.precision_low, r.precision_high), "number"),
            Entry(_share(r.recall, r.recall_low, r.recall_high), "number"),
        )
        for r in rows
    )
    return Table("The scoreboard: what each detector finds of what was planted.", columns, fields, "calibration.csv")


def _share(value: float | None, low: float | None, high: float | None) -> str:
    return "–" if value is None else f"{number(value)} ({number(low)} to {number(high)})"
