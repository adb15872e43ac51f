"""Precision and recall of every detector on synthetic corpora of known structure."""

from __future__ import annotations

from matplotlib.figure import Figure as Canvas

from pathsum.core.storage import frame
from pathsum.records.calibration import CalibrationRow
from pathsum.records.results import Results
from pathsum.report import symbols
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.theme import calibrated, detectors

TRUSTED = 0.9  # precision and recall from which a detector is trusted


def calibration(results: Results) -> Figure | None:
    """Both shares with their intervals, a row per detector."""
    if not results.calibration:
        return None
    rows = calibrated(results)
    data = frame(rows, CalibrationRow)

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, 2, sharey=True)
        places = range(len(data))
        for ax, share, units in zip(axes, ("precision", "recall"), ("found", "planted"), strict=True):
            known = [i for i in places if rows[i].__dict__[share] is not None]
            part = data.iloc[known]
            ax.hlines(known, part[f"{share}_low"], part[f"{share}_high"], color=symbols.FAINT, lw=2)
            ax.plot(part[share].astype(float), known, "o", color=symbols.ACCENT)
            ax.axvline(TRUSTED, color=symbols.FAINT, ls="--", lw=1)
            for i in known:
                ax.annotate(f"n = {data[units][i]}", (0.02, i), va="center", fontsize=9, color="#555555")
            ax.set(xlim=(0, 1.03), title=share, xlabel=f"{share} (share, 95 % interval)")
        axes[0].set_yticks(list(places), [detectors()[name].name for name in data["detector"]])
        axes[0].invert_yaxis()

    caption = (
        "Precision and recall of each detector in models trained on synthetic corpora; the dashed line is at "
        f"{TRUSTED}. Each corpus has rules and a model of its own. n: found units (precision) and units of the ground "
        "truth (recall). Bars: 95 % Wilson intervals for the number of independent units, from the variance between "
        "corpora."
    )
    return picture("calibration", "Detectors on synthetic corpora", caption, data, (9.6, 4.2), paint)
