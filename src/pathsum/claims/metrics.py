"""The content of reports/metrics.json, the machine-readable result. Equal records give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pathsum.records.results import Results
from pathsum.records.summary import CellSummary
from pathsum.records.verdicts import ClaimResult

CELL_METRICS = (
    "n_layers",
    "n_heads",
    "seed",
    "tokens_seen",
    "val_loss_nats",
    "in_context_loss_drop_nats",
    "icl_loss_drop_nats",
    "repeat_first_loss_nats",
    "repeat_second_loss_nats",
    "repeat_guessing_nats",
    "repeat_top1",
    "prefix_matching",
    "previous_token",
    "copying_heads",
    "exactness",
    "onset_tokens",
    "bigram_correlation",
    "unigram_correlation",
    "bigram_partial_correlation",
    "direct_path_kl_nats",
)
CALIBRATION_METRICS = ("precision", "precision_low", "recall", "recall_low", "n", "models", "positives", "found")
CORPUS_METRICS = (
    "name",
    "train_tokens",
    "tuning_tokens",
    "verdict_tokens",
    "judged_documents",
    "judged_windows",
    "bigram_loss_nats",
    "unigram_loss_nats",
)


def metrics(results: Results, claims: Sequence[ClaimResult]) -> dict[str, Any]:
    """Return the content of metrics.json, with all numbers but integers rounded to six significant digits.

    ``onset_tokens`` is None for a model without a phase change.
    """
    found = {
        "cells": {name: _cell(cell.summary) for name, cell in results.cells.items()},
        "controls": {name: _cell(cell.summary) for name, cell in results.controls.items()},
        "corpus": {key: getattr(results.corpus, key) for key in CORPUS_METRICS},
        "claims": {c.id: {"value": c.value, "threshold": c.threshold, "verdict": c.verdict} for c in claims},
        "calibration": {r.detector: {k: getattr(r, k) for k in CALIBRATION_METRICS} for r in results.calibration},
        "missing_cells": list(results.missing),
        "provenance": results.provenance,
    }
    rounded: dict[str, Any] = json.loads(json.dumps(found), parse_float=lambda digits: float(f"{float(digits):.6g}"))
    return rounded


def _cell(summary: CellSummary) -> dict[str, Any]:
    return {key: getattr(summary, key) for key in CELL_METRICS}
