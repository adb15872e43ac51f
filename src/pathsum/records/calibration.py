"""Precision and recall of each detector."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "calibration",
    "each detector on synthetic corpora",
    "precision and recall, Wilson intervals for n / design effect by world",
    "calibration/score.py",
    stored="data/calibration.parquet",
    stage="calibrate",
)
@dataclass(frozen=True)
class CalibrationRow:
    """Precision and recall of a detector on models trained on synthetic text with known structure."""

    detector: str
    n: int  # units that were looked at: pairs, triples, heads, edges or models
    planted: int  # of those, what is there
    found: int
    hits: int  # found and there
    precision: float | None  # hits / found; None where nothing was found
    precision_low: float | None  # 95 % Wilson interval for the number of independent units, counted by world
    precision_high: float | None
    recall: float | None  # hits / planted; None where nothing was planted
    recall_low: float | None
    recall_high: float | None
    worlds: int  # independent texts and models that the units come from
    planted_worlds: int  # of those, where something is there
    not_learnt: int  # worlds left out, as their model had not learnt what was planted
