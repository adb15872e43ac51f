"""Detectors and intervals on synthetic corpora (docs/framework.md §11); words in calibration.md."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from pathsum.claims.reliability import TRUSTED, coverage, precision, recall
from pathsum.core.storage import frame
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme, calibrated, detectors

TITLE = "Precision and recall of the detectors"
QUANTITIES = {
    "head": "effect of a head",
    "edge": "effect of an edge",
    "share": "effect of an edge / effect of its later head",
}


def facts(results: Results) -> dict[str, Any]:
    """Return the rows of the detectors, and which fall short. Empty without calibration."""
    if not (rows := calibrated(results)):
        return {}
    return {
        "rows": rows,
        "not_learned": max(r.not_learned for r in rows),
        "trusted": TRUSTED,
        "weak": [detectors()[r.detector].name for r in rows if not trusted(r)],
        "unsure": [detectors()[r.detector].name for r in rows if trusted(r) and not certain(r)],
        "coverage": coverage(results),
        "coverages": frame(results.coverage, CoverageRow),
    }


def doubts(names: Sequence[str], results: Results) -> list[str]:
    """Return a sentence on each of these detectors whose calibration is not ``certain``."""
    found = {row.detector: row for row in results.calibration}
    return [
        f"On synthetic corpora, the detector “{detectors()[name].name}” has precision {precision(row)} and recall "
        f"{recall(row)}; {'an interval begins' if trusted(row) else 'this is'} below the aim, {TRUSTED}."
        for name in names
        if name in found and not certain(row := found[name])
    ]


def trusted(row: CalibrationRow) -> bool:
    """Return whether precision and recall both reach TRUSTED; False if one was not measured."""
    return _reach(row.precision, row.recall)


def certain(row: CalibrationRow) -> bool:
    """Return whether the lower bounds of precision and recall both reach TRUSTED."""
    return _reach(row.precision_low, row.recall_low)


def _reach(*shares: float | None) -> bool:
    return all(share is not None and share >= TRUSTED for share in shares)


def _table(found: dict[str, Any]) -> Table:
    shown = [
        {
            "detector": detectors()[r.detector].name,
            "ground truth; found if": detectors()[r.detector].criterion,
            "units": str(r.n),
            "corpora": r.models,
            "units in the ground truth": str(r.positives),
            "corpora that contain them": r.positive_models,
            "units found": str(r.found),
            "precision (95 %)": precision(r),
            "recall (95 %)": recall(r),
        }
        for r in found["rows"]
    ]
    caption = "Units are the token pairs, skip-trigrams, heads, edges or models that a detector judges."
    texts = ("detector", "ground truth; found if")
    return told.table(pd.DataFrame(shown), caption, texts=texts, csv="calibration.csv")


def _coverage(found: dict[str, Any]) -> Table:
    rows = found["coverages"]
    shown = {
        "loss": rows["text"],
        "quantity": rows["quantity"].map(QUANTITIES),
        "windows": rows["windows"].astype(str),
        "intervals": rows["n"],
        "models": rows["models"],
        "share that hold the value (95 %)": told.intervals(rows, "share"),
    }
    caption = (
        "How often 95 % intervals from some windows hold the change of the loss under resample ablation on "
        f"{rows['many'].max()} windows, in models of synthetic corpora."
    )
    return told.table(pd.DataFrame(shown), caption, texts=("loss", "quantity"), csv="coverage.csv")


def calibration(results: Results) -> Figure | None:
    """Draw precision and recall with their intervals, a row per detector."""
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
        f"Dashed: {TRUSTED}. n: units found (precision) or in the ground truth (recall). Bars: 95 % Wilson intervals."
    )
    return picture("calibration", "Detectors on synthetic corpora", caption, data, (9.6, 4.2), paint)


section = told.from_results(TITLE, "calibration", facts, detectors=_table, coverages=_coverage)
THEME = Theme(TITLE, section, figures=(calibration,), tables=("calibration", "coverage"))
