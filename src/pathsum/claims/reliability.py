"""What calibration on synthetic corpora says of a detector and of the intervals from few windows, as text."""

from pathsum.claims.formatting import interval, span
from pathsum.records.calibration import CalibrationRow
from pathsum.records.results import Results

TRUSTED = 0.9  # precision and recall that a trusted detector must reach


def precision(row: CalibrationRow) -> str:
    """Format the precision of a detector with its interval."""
    return _share(row.precision, row.precision_low, row.precision_high)


def recall(row: CalibrationRow) -> str:
    """Format the recall of a detector with its interval."""
    return _share(row.recall, row.recall_low, row.recall_high)


def reliability(results: Results, detector: str) -> str:
    """Format precision and recall of ``detector`` as the end of a sentence on a count of what it finds."""
    row = next((r for r in results.calibration if r.detector == detector), None)
    if row is None:
        return "precision and recall unknown"
    return f"precision {precision(row)}, recall {recall(row)} on synthetic corpora"


def coverage(results: Results) -> str:
    """State how often the intervals from the smallest number of windows held the value on many; empty without
    calibration."""
    windows = min((row.windows for row in results.coverage), default=None)
    rows = [row for row in results.coverage if row.windows == windows and row.share is not None]
    if not rows:
        return ""
    held = span([100 * row.share for row in rows if row.share is not None], 0)
    return (
        f"On synthetic corpora, 95 % intervals from {windows} windows held the value on many windows in {held} % of "
        "cases (by quantity: effects of heads and edges, and their ratios)."
    )


def _share(value: float | None, low: float | None, high: float | None) -> str:
    return "–" if value is None else interval(value, low, high, 3 if value < TRUSTED <= round(value, 2) else 2)
