"""How far each detector can be trusted, and a word wherever one cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pathsum.claims.formatting import number, plural
from pathsum.records.calibration import CalibrationRow
from pathsum.records.composition import COMPOSITION_RULE
from pathsum.records.results import Results
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures import Figure
from pathsum.report.figures.calibration import NAMES, TRUSTED

TITLE = "How far to trust the detectors"
PLANTED = {  # what was planted for each, and what counts as found
    "bigram": "the five likeliest successors of each word; those of the direct path of a zero-layer model",
    "skip_trigram": "source … destination → out; entries of the atlas that the text bears out",
    "skip_trigram_model": "the same; triples that a head makes likelier by half a nat, on documents that "
    "did not choose them, whatever the text says",
    "previous_token": "the word before the last tells of the next, which the one head must see to; the label",
    "induction": "stretches of text repeat, and one layer alone can tell what followed; the label of one of its heads",
    "copying": "as for induction, whose heads must write what they read; eigenvalue positivity above 0.5",
    "composition_q": "edges into queries that a model relies on; an edge that composes",
    "composition_k": "edges into keys that a model relies on; an edge that composes",
    "composition_v": "edges into values that a model relies on; an edge that composes",
    "composition": "edges of any kind that a model relies on; an edge that composes",
    "composition_all_heads": "the same, where an edge into a head that the model does not need counts as absent",
    "keys_of_previous_token": "stretches of text repeat, so a second-layer head must compare the current token with "
    "the token before the key; at least half of a preference of one nat or more of one of its heads, by content",
    "phase_change": "when the loss on planted copies is half-way down; the onset of prefix matching, to one evaluation",
}


def section(results: Results, figures: Mapping[str, Figure]) -> Section:
    """The scoreboard of precision and recall on synthetic corpora."""
    rows = results.calibration
    if not rows:
        return Section(TITLE, ("No detector was tried on text with known structure.",), ())
    left_out = max(r.not_learnt for r in rows)
    text = (
        "Detectors were tried on models of synthetic corpora with known structure. Each corpus is a world of its own: "
        f"rules, text and model share nothing with any other, and intervals count worlds. {plural(left_out, 'model')} "
        f"had not learnt the rules of the text, by the loss on held-out text, and {'is' if left_out == 1 else 'are'} "
        "left out. Nothing is planted for a detector in worlds with other rules, nor in untrained models. Composition "
        "is judged within each model of two layers with two heads each, on all its twelve edges. An edge is there if "
        "the model relies on it, by intervention: the loss where a rule made the word rises by half a nat when the "
        "edge is removed, or falls by as much when it is the only edge of its kind that is left. An edge is absent "
        "below a tenth of a nat; edges in between are left out. So are edges into heads that matter less than half a "
        "nat by the same two tests, since the loss cannot tell what such a head reads; one row counts these as absent. "
        f"An edge is found if {COMPOSITION_RULE}. Precision is the share of what was found that is there, recall the "
        "share of what is there that was found."
    )
    return Section(TITLE, (text, _limits(rows)), (figures["calibration"], _table(rows)))


def marked(section: Section, detectors: Sequence[str], results: Results) -> Section:
    """``section``, with a word on each of its ``detectors`` whose shares or intervals fall below TRUSTED."""
    found = {r.detector: r for r in results.calibration}
    doubts = [_doubt(found[name]) for name in detectors if name in found and not certain(found[name])]
    return replace(section, paragraphs=(*section.paragraphs, *doubts))


def trusted(row: CalibrationRow) -> bool:
    """Whether precision and recall reach TRUSTED; what was not measured is not trusted."""
    return _reach(row.precision, row.recall)


def certain(row: CalibrationRow) -> bool:
    """Whether their lower bounds do."""
    return _reach(row.precision_low, row.recall_low)


def _reach(*shares: float | None) -> bool:
    return all(share is not None and share >= TRUSTED for share in shares)


def _doubt(row: CalibrationRow) -> str:
    shares = (
        f"a precision of {_share(row.precision, row.precision_low, row.precision_high)} and a recall of "
        f"{_share(row.recall, row.recall_low, row.recall_high)}"
    )
    if not trusted(row):
        return f"Caution: on synthetic corpora the detector of {NAMES[row.detector]} has {shares}."
    return (
        f"On synthetic corpora the detector of {NAMES[row.detector]} has {shares}: too few worlds to say that both are "
        f"above {TRUSTED}."
    )


def _limits(rows: Sequence[CalibrationRow]) -> str:
    weak = [NAMES[r.detector] for r in rows if not trusted(r)]
    unsure = [NAMES[r.detector] for r in rows if trusted(r) and not certain(r)]
    verdict = f"Under {TRUSTED}: {'; '.join(weak)}." if weak else f"All reach {TRUSTED} in both."
    if unsure:
        verdict += f" At or above {TRUSTED}, with a lower bound under it: {'; '.join(unsure)}."
    return (
        f"{verdict} Real models have more heads that share a job, and words of which no table is known: these shares "
        "are what the detectors do at their best."
    )


def _table(rows: Sequence[CalibrationRow]) -> Table:
    columns = (
        "detector",
        "planted; found if",
        "n",
        "worlds",
        "planted",
        "in worlds",
        "found",
        "precision (95 %)",
        "recall (95 %)",
    )
    fields = tuple(
        (
            Entry(NAMES[r.detector]),
            Entry(PLANTED[r.detector]),
            *(Entry(str(count), "number") for count in (r.n, r.worlds, r.planted, r.planted_worlds, r.found)),
            Entry(_share(r.precision, r.precision_low, r.precision_high), "number"),
            Entry(_share(r.recall, r.recall_low, r.recall_high), "number"),
        )
        for r in rows
    )
    return Table(
        "What each detector finds of what was planted: n units in independent worlds; 95 % intervals.",
        columns,
        fields,
        "calibration.csv",
    )


def _share(value: float | None, low: float | None, high: float | None) -> str:
    return "–" if value is None else f"{number(value)} ({number(low)} to {number(high)})"
