"""Precision and recall of each detector."""

from pathsum.records.registry import record


@record(
    "calibration",
    "each detector on synthetic corpora",
    "precision and recall, Wilson intervals for n / design effect by synthetic corpus",
    "calibration/score.py",
    stored="data/calibration.parquet",
    stage="calibrate",
)
class CalibrationRow:
    """Precision and recall of a detector on models trained on synthetic text with known structure."""

    detector: str
    n: int  # units examined: pairs, triples, heads, edges or models
    planted: int  # units with the structure
    found: int  # units that the detector reports
    hits: int  # both
    precision: float | None  # hits / found; None if nothing was found
    precision_low: float | None  # 95 % Wilson interval for the number of independent units, by synthetic corpus
    precision_high: float | None
    recall: float | None  # hits / planted; None if there is no structure
    recall_low: float | None
    recall_high: float | None
    worlds: int  # synthetic corpora, each with its model, that the units come from
    planted_worlds: int  # of those, with the structure
    not_learnt: int  # corpora left out because their model did not learn the structure
