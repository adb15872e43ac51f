"""Precision and recall of each detector."""

from pathsum.records.registry import record


@record(
    "calibration",
    "precision and recall of each detector on synthetic corpora",
    "hits / found; hits / present; Wilson intervals with n divided by the design effect",
    "calibration/score.py",
    stored="data/calibration.parquet",
    stage="calibrate",
)
class CalibrationRow:
    """Precision and recall of a detector on models trained on synthetic text with known structure (docs/framework.md
    §11)."""

    detector: str
    n: int  # units examined: pairs, triples, heads, edges or models
    planted: int  # units in which the structure is present
    found: int  # units in which the detector finds the structure
    hits: int  # units in which it is present and found
    precision: float | None  # hits / found; None if found is 0
    precision_low: float | None  # 95 % Wilson interval, n divided by the design effect (docs/framework.md §10.5)
    precision_high: float | None
    recall: float | None  # hits / planted; None if planted is 0
    recall_low: float | None
    recall_high: float | None
    worlds: int  # synthetic corpora that the units come from, one model each
    planted_worlds: int  # synthetic corpora that contain the structure
    not_learnt: int  # synthetic corpora left out because their model did not learn the structure
