"""Precision and recall of each detector on synthetic corpora, and a note where they are low."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import number, plural
from pathsum.core.storage import frame
from pathsum.records.calibration import CalibrationRow
from pathsum.records.composition import COMPOSITION_RULE
from pathsum.records.results import Results
from pathsum.report import symbols
from pathsum.report.document import Column, Section, Table, Text
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.theme import Figures, Theme, calibrated, detectors

TITLE = "How far to trust the detectors"
TRUSTED = 0.9  # precision and recall from which a detector is trusted


def section(results: Results, figures: Figures) -> Section:
    """Show precision and recall on synthetic corpora."""
    rows = calibrated(results)
    if not rows:
        return Section(TITLE, ("No detector was tested on text with known structure.",))
    left_out = max(r.not_learnt for r in rows)
    text = (
        "Detectors were tested on models trained on synthetic corpora with known structure, the ground truth. Corpora "
        "are independent: each has its own rules, text and model, and intervals count corpora. "
        f"{plural(left_out, 'model')} had not learned the rules of the text, by the held-out loss, and "
        f"{'is' if left_out == 1 else 'are'} left out. Corpora with other rules and untrained models have no positives "
        "for a detector. Composition is judged within each model of two layers with two heads each, on all its twelve "
        "edges. An edge is there if the model relies on it, by intervention: the loss where a rule made the word rises "
        "by half a nat when the edge is removed, or falls by as much when it is the only edge of its kind that is "
        "left. An edge is absent below a tenth of a nat; edges in between are left out. So are edges into heads that "
        "matter less than half a nat by the same two tests, since the loss cannot tell what such a head reads; one row "
        f"counts these as absent. An edge is found if {COMPOSITION_RULE}. Precision is the share of what was found "
        "that is there, recall the share of what is there that was found."
    )
    return Section(TITLE, (text, _limits(rows)), (figures["calibration"], _table(rows)))


def marked(section: Section, detectors: Sequence[str], results: Results) -> Section:
    """Add a note to ``section`` on each of its ``detectors`` whose shares or intervals fall below TRUSTED."""
    found = {r.detector: r for r in results.calibration}
    doubts = [_doubt(found[name]) for name in detectors if name in found and not certain(found[name])]
    return replace(section, paragraphs=(*section.paragraphs, *doubts))


def trusted(row: CalibrationRow) -> bool:
    """Return whether precision and recall reach TRUSTED; what was not measured is not trusted."""
    return _reach(row.precision, row.recall)


def certain(row: CalibrationRow) -> bool:
    """Return whether their lower bounds do."""
    return _reach(row.precision_low, row.recall_low)


def _reach(*shares: float | None) -> bool:
    return all(share is not None and share >= TRUSTED for share in shares)


def _doubt(row: CalibrationRow) -> str:
    name, shares = detectors()[row.detector].name, f"a precision of {_precision(row)} and a recall of {_recall(row)}"
    if not trusted(row):
        return f"Caution: on synthetic corpora the detector of {name} has {shares}."
    return (
        f"On synthetic corpora the detector of {name} has {shares}: too few corpora to show that both are above "
        f"{TRUSTED}."
    )


def _limits(rows: Sequence[CalibrationRow]) -> str:
    weak = [detectors()[r.detector].name for r in rows if not trusted(r)]
    unsure = [detectors()[r.detector].name for r in rows if trusted(r) and not certain(r)]
    verdict = f"Under {TRUSTED}: {'; '.join(weak)}." if weak else f"All reach {TRUSTED} in both."
    if unsure:
        verdict += f" At or above {TRUSTED}, with a lower bound under it: {'; '.join(unsure)}."
    return (
        f"{verdict} In models of real text more heads share a function and no rules are known: these shares are the "
        "best case."
    )


def _table(rows: Sequence[CalibrationRow]) -> Table:
    return Table.of(
        rows,
        Text("detector", lambda r: detectors()[r.detector].name),
        Text("ground truth; found if", lambda r: detectors()[r.detector].criterion),
        Column("n", lambda r: str(r.n)),
        Column("corpora", "worlds"),
        Column("ground truth", lambda r: str(r.planted)),
        Column("in corpora", "planted_worlds"),
        Column("found", lambda r: str(r.found)),
        Column("precision (95 %)", _precision),
        Column("recall (95 %)", _recall),
        caption="What each detector finds of the ground truth: n units in independent corpora; 95 % intervals.",
        csv="calibration.csv",
    )


def _precision(row: CalibrationRow) -> str:
    return _share(row.precision, row.precision_low, row.precision_high)


def _recall(row: CalibrationRow) -> str:
    return _share(row.recall, row.recall_low, row.recall_high)


def _share(value: float | None, low: float | None, high: float | None) -> str:
    return "–" if value is None else f"{number(value)} ({number(low)} to {number(high)})"


def calibration(results: Results) -> Figure | None:
    """Draw both shares with their intervals, a row per detector."""
    if not results.calibration:
        return None
    data = frame(calibrated(results), CalibrationRow)

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, 2, sharey=True)
        for ax, share, units in zip(axes, ("precision", "recall"), ("found", "planted"), strict=True):
            part = data[data[share].notna()]
            ax.hlines(part.index, part[f"{share}_low"], part[f"{share}_high"], color=symbols.FAINT, lw=2)
            ax.plot(part[share].astype(float), part.index, "o", color=symbols.ACCENT)
            ax.axvline(TRUSTED, color=symbols.FAINT, ls="--", lw=1)
            for place, n in part[units].items():
                ax.annotate(f"n = {n}", (0.02, place), va="center", fontsize=9, color="#555555")
            ax.set(xlim=(0, 1.03), title=share, xlabel=f"{share} (share, 95 % interval)")
        axes[0].set_yticks(range(len(data)), [detectors()[name].name for name in data["detector"]])
        axes[0].invert_yaxis()

    caption = (
        "Precision and recall of each detector in models trained on synthetic corpora; the dashed line is at "
        f"{TRUSTED}. Each corpus has rules and a model of its own. n: found units (precision) and units of the ground "
        "truth (recall). Bars: 95 % Wilson intervals for the number of independent units, from the variance between "
        "corpora."
    )
    return picture("calibration", "Detectors on synthetic corpora", caption, data, (9.6, 4.2), paint)


THEME = Theme(TITLE, section, figures=(calibration,), tables=("calibration",))
