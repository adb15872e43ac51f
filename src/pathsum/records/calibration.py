"""Precision and recall of each detector."""

from pathsum.records.registry import record


@record(
    "calibration",
    "hits / found; hits / present; Wilson intervals with n divided by the design effect",
    "calibration/score.py",
    stored="reports/calibration/detectors.jsonl",
    stage="calibrate",
)
class CalibrationRow:
    """Precision and recall of each detector on synthetic corpora. See docs/framework.md §11."""

    detector: str
    n: int  # units examined: pairs, triples, heads, edges or models
    positives: int  # units in which the structure is present
    found: int  # units in which the detector finds it
    hits: int  # units with both
    precision: float | None  # hits / found; None if found is 0
    precision_low: float | None  # 95 % Wilson interval, n divided by the design effect (docs/framework.md §10.5)
    precision_high: float | None
    recall: float | None  # hits / positives; None if positives is 0
    recall_low: float | None
    recall_high: float | None
    models: int  # models that the units come from, one per synthetic corpus
    positive_models: int  # models with a unit in which the structure is present
    not_learned: int  # models left out because they did not learn the rules of their synthetic corpus


@record(
    "coverage",
    "intervals that hold the mean over all windows / intervals; each from windows drawn with replacement",
    "calibration/coverage.py",
    stored="reports/calibration/coverage.jsonl",
    stage="calibrate",
)
class CoverageRow:
    """Share of 95 % intervals from few windows that hold the value on many, for effects of ablations. See §11.5."""

    text: str  # held-out text | second copy (of repeated random tokens)
    quantity: str  # effect of a head | of an edge | share: effect of an edge divided by that of its later head
    windows: int  # of each interval
    many: int  # windows whose mean is the true value
    n: int  # intervals
    held: int  # intervals that hold the true value
    share: float | None  # held / n
    share_low: float | None  # 95 % Wilson interval, n divided by the design effect (docs/framework.md §10.5)
    share_high: float | None
    models: int
