"""The section on how detectors and intervals do on synthetic corpora, and the notes on both in other sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import plural
from pathsum.claims.reliability import TRUSTED, coverage, precision, recall
from pathsum.core.storage import frame
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row
from pathsum.page.document import Column, Section, Table, Text
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pathsum.records.results import Results
from pathsum.report.theme import Figures, Theme, calibrated, detectors

TITLE = "Precision and recall of the detectors"
QUANTITIES = {
    "head": "effect of a head",
    "edge": "effect of an edge",
    "share": "effect of an edge / effect of its later head",
}


def section(results: Results, figures: Figures) -> Section:
    """Describe the test on synthetic corpora, and show precision and recall of each detector."""
    rows = calibrated(results)
    if not rows:
        return Section(TITLE, ("No detector was tested on text with known structure.",))
    left_out = max(r.not_learned for r in rows)
    corpora = (
        "Each detector was tested on models trained on synthetic corpora with known structure, the ground truth. The "
        "corpora are independent: each has its own rules, text and model. The intervals allow for the likeness of "
        f"units of one corpus. {plural(left_out, 'model')} had not learned the rules of the text, judged by the "
        f"held-out loss, and {'is' if left_out == 1 else 'are'} left out. Untrained models and corpora without the "
        "rule in question contain no positives. Precision is the share of found units that are present in the ground "
        "truth. Recall is the share of present units that are found."
    )
    composition = (
        "Composition is judged on all twelve edges of each model with two layers of two heads. Intervention decides "
        "which edges are present. An edge is present (the model relies on it) if the loss at words that a rule "
        "produced rises by at least half a nat when the edge is removed, or falls by as much when, of all edges of its "
        "kind, only this one is restored. An edge is absent if both effects are at most a tenth of a nat. Edges in "
        "between are left out. Edges into a head whose own effect, by the same two tests, is below half a nat are also "
        "left out, because the loss cannot show what such a head reads; one row of the table counts them as absent. An "
        "edge is found if it composes (rule in the section “Two layers”)."
    )
    tables = (_table(rows), *([_coverage(results.coverage)] if results.coverage else []))
    return Section.of(
        TITLE, (corpora, composition, coverage(results), _limits(rows)), (figures["calibration"], *tables)
    )


def marked(section: Section, detectors: Sequence[str], results: Results) -> Section:
    """Add a note to ``section`` on each of its ``detectors`` whose calibration is not ``certain``."""
    found = {r.detector: r for r in results.calibration}
    doubts = [_doubt(found[name]) for name in detectors if name in found and not certain(found[name])]
    return replace(section, paragraphs=(*section.paragraphs, *doubts))


def with_coverage(section: Section, results: Results) -> Section:
    """Add to ``section``, unless it shows nothing, how often intervals from few windows hold the value."""
    note = coverage(results) if section.blocks else ""
    return replace(section, paragraphs=(*section.paragraphs, note)) if note else section


def trusted(row: CalibrationRow) -> bool:
    """Return whether precision and recall both reach TRUSTED; False if one was not measured."""
    return _reach(row.precision, row.recall)


def certain(row: CalibrationRow) -> bool:
    """Return whether the lower bounds of precision and recall both reach TRUSTED."""
    return _reach(row.precision_low, row.recall_low)


def _reach(*shares: float | None) -> bool:
    return all(share is not None and share >= TRUSTED for share in shares)


def _doubt(row: CalibrationRow) -> str:
    name, shares = detectors()[row.detector].name, f"precision {precision(row)} and recall {recall(row)}"
    if not trusted(row):
        return f"Caution: on synthetic corpora, the detector “{name}” has {shares}; the aim is {TRUSTED}."
    low = sum(not _reach(end) for end in (row.precision_low, row.recall_low))
    reach = "both intervals begin" if low == 2 else "one interval begins"
    return f"On synthetic corpora, the detector “{name}” has {shares}; {reach} below the aim, {TRUSTED}."


def _limits(rows: Sequence[CalibrationRow]) -> str:
    weak = [detectors()[r.detector].name for r in rows if not trusted(r)]
    unsure = [detectors()[r.detector].name for r in rows if trusted(r) and not certain(r)]
    low = f"Precision or recall is below {TRUSTED} for: {'; '.join(weak)}."
    verdict = low if weak else f"Precision and recall reach {TRUSTED} for every detector."
    if unsure:
        verdict += f" Both reach {TRUSTED}, but a lower bound does not, for: {'; '.join(unsure)}."
    return (
        f"{verdict} These values are a best case: in models of real text, more heads share a function, and the rules "
        "of the text are not known."
    )


def _table(rows: Sequence[CalibrationRow]) -> Table:
    return Table.of(
        rows,
        Text("detector", lambda r: detectors()[r.detector].name),
        Text("ground truth; found if", lambda r: detectors()[r.detector].criterion),
        Column("units", lambda r: str(r.n)),
        Column("corpora", "models"),
        Column("units in the ground truth", lambda r: str(r.positives)),
        Column("corpora that contain them", "positive_models"),
        Column("units found", lambda r: str(r.found)),
        Column("precision (95 %)", precision),
        Column("recall (95 %)", recall),
        caption="Each detector on synthetic corpora. Units are the token pairs, skip-trigrams, heads, edges or models "
        "that it judges. Precision and recall with 95 % intervals.",
        csv="calibration.csv",
    )


def _coverage(rows: Sequence[CoverageRow]) -> Table:
    return Table.of(
        rows,
        Text("loss", "text"),
        Text("quantity", lambda r: QUANTITIES[r.quantity]),
        Column("windows", lambda r: str(r.windows)),
        Column("intervals", lambda r: f"{r.n:,}"),
        Column("models", "models"),
        Column("share that hold the value (95 %)", ("share", "share_low", "share_high")),
        caption=f"How often 95 % intervals hold the true value: the effect of resample ablation on {rows[0].many} "
        "windows, of which each interval draws some with replacement. Effects are changes of the loss on held-out text "
        "or on the second copy of repeated random tokens, in models of synthetic corpora.",
        csv="coverage.csv",
    )


def calibration(results: Results) -> Figure | None:
    """Draw precision and recall with their intervals, a row per detector. None without calibration."""
    if not results.calibration:
        return None
    data = frame(calibrated(results), CalibrationRow)

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, 2, sharey=True)
        for ax, share, units in zip(axes, ("precision", "recall"), ("found", "positives"), strict=True):
            part = data[data[share].notna()]
            ax.hlines(part.index, part[f"{share}_low"], part[f"{share}_high"], color=symbols.FAINT, lw=2)
            ax.plot(part[share].astype(float), part.index, "o", color=symbols.ACCENT)
            ax.axvline(TRUSTED, color=symbols.FAINT, ls="--", lw=1)
            for place, n in part[units].items():
                ax.annotate(f"n = {n:,}", (0.02, place), va="center", fontsize=9, color="#555555")
            ax.set(xlim=(0, 1.03), title=share, xlabel=f"{share} (share, 95 % interval)")
        axes[0].set_yticks(range(len(data)), [detectors()[name].name for name in data["detector"]])
        axes[0].invert_yaxis()

    caption = (
        f"Each corpus has its own rules and model; dashed: {TRUSTED}. n: units found (precision) or in the ground "
        "truth (recall). Bars: 95 % Wilson intervals for the effective number of independent units."
    )
    return picture("calibration", "Detectors on synthetic corpora", caption, data, (9.6, 4.2), paint)


THEME = Theme(TITLE, section, figures=(calibration,), tables=("calibration", "coverage"))
