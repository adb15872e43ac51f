"""How far each detector can be trusted, and a word wherever one cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pathsum.claims.formatting import number, plural
from pathsum.records.calibration import CalibrationRow
from pathsum.records.composition import COMPOSITION_RULE
from pathsum.records.results import Results
from pathsum.report.document import Column, Section, Table, Text
from pathsum.report.figures.calibration import TRUSTED, calibration
from pathsum.report.theme import Figures, Theme, calibrated, detectors

TITLE = "How far to trust the detectors"


def section(results: Results, figures: Figures) -> Section:
    """The scoreboard of precision and recall on synthetic corpora."""
    rows = calibrated(results)
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
        return f"Caution: on synthetic corpora the detector of {detectors()[row.detector].name} has {shares}."
    return (
        f"On synthetic corpora the detector of {detectors()[row.detector].name} has {shares}: too few worlds to say "
        f"that both are above {TRUSTED}."
    )


def _limits(rows: Sequence[CalibrationRow]) -> str:
    weak = [detectors()[r.detector].name for r in rows if not trusted(r)]
    unsure = [detectors()[r.detector].name for r in rows if trusted(r) and not certain(r)]
    verdict = f"Under {TRUSTED}: {'; '.join(weak)}." if weak else f"All reach {TRUSTED} in both."
    if unsure:
        verdict += f" At or above {TRUSTED}, with a lower bound under it: {'; '.join(unsure)}."
    return (
        f"{verdict} Real models have more heads that share a job, and words of which no table is known: these shares "
        "are what the detectors do at their best."
    )


def _table(rows: Sequence[CalibrationRow]) -> Table:
    return Table.of(
        rows,
        Text("detector", lambda r: detectors()[r.detector].name),
        Text("planted; found if", lambda r: detectors()[r.detector].planted),
        Column("n", lambda r: str(r.n)),
        Column("worlds", "worlds"),
        Column("planted", lambda r: str(r.planted)),
        Column("in worlds", "planted_worlds"),
        Column("found", lambda r: str(r.found)),
        Column("precision (95 %)", lambda r: _share(r.precision, r.precision_low, r.precision_high)),
        Column("recall (95 %)", lambda r: _share(r.recall, r.recall_low, r.recall_high)),
        caption="What each detector finds of what was planted: n units in independent worlds; 95 % intervals.",
        csv="calibration.csv",
    )


def _share(value: float | None, low: float | None, high: float | None) -> str:
    return "–" if value is None else f"{number(value)} ({number(low)} to {number(high)})"


THEME = Theme(TITLE, section, figures=(calibration,), tables=("calibration",))
