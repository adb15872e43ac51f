"""The content of reports/metrics.json, the machine-readable result, and of reports/headline.json, the numbers that
`dvc metrics show` prints. Equal records give equal bytes."""

import json
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pathsum.claims.judging import NOT, PARTLY, REPRODUCED
from pathsum.records.results import Results
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


def metrics(
    results: Results, claims: Sequence[ClaimResult], texts: Mapping[str, Sequence[ClaimResult]] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the content of metrics.json, with all numbers but integers rounded to six significant digits. ``texts``:
    the verdicts on each further text."""
    found = {
        **_on_a_text(results, claims),
        "calibration": {r.detector: _numbers(r, CALIBRATION_METRICS) for r in results.calibration},
        "provenance": results.provenance,
        "texts": {text: _on_a_text(results.texts[text], verdicts) for text, verdicts in texts.items()},
    }
    return _rounded(found)


def _on_a_text(results: Results, claims: Sequence[ClaimResult]) -> dict[str, Any]:
    return {
        "cells": {name: _numbers(cell.summary, CELL_METRICS) for name, cell in results.cells.items()},
        "controls": {name: _numbers(cell.summary, CELL_METRICS) for name, cell in results.controls.items()},
        "corpus": _numbers(results.corpus, CORPUS_METRICS),
        "claims": {c.id: {"value": c.value, "threshold": c.threshold, "verdict": c.verdict} for c in claims},
        "missing_cells": list(results.missing),
    }


def headline(results: Results, claims: Sequence[ClaimResult]) -> dict[str, float | int]:
    """Return the content of headline.json: numbers of verdicts, and medians over the grid's models of each depth."""
    verdicts = Counter(claim.verdict for claim in claims)
    found: dict[str, float | int] = {
        "claims_reproduced": verdicts[REPRODUCED],
        "claims_partly_reproduced": verdicts[PARTLY],
        "claims_not_reproduced": verdicts[NOT],
        "claims_not_judged": len(claims) - verdicts[REPRODUCED] - verdicts[PARTLY] - verdicts[NOT],
        "models_missing": len(results.missing),
        "loss_bigram_model_nats_per_token": results.corpus.bigram_loss_nats,
    }
    models = [cell.summary for cell in results.cells.values()]
    for n_layers in sorted({s.n_layers for s in models}):
        depth = f"{n_layers}_layer" + "s" * (n_layers != 1)
        of_depth = [s for s in models if s.n_layers == n_layers]
        found[f"loss_{depth}_nats_per_token"] = statistics.median(s.val_loss_nats for s in of_depth)
        if n_layers:
            found[f"prefix_matching_{depth}"] = statistics.median(s.prefix_matching or 0.0 for s in of_depth)
        if n_layers > 1:
            drop = statistics.median(s.in_context_loss_drop_nats for s in of_depth)
            onset = statistics.median(s.onset_tokens or math.inf for s in of_depth)
            found[f"in_context_loss_drop_{depth}_nats_per_token"] = drop
            found |= {f"onset_{depth}_tokens": onset} if onset < math.inf else {}
    return _rounded(found)


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    rounded: dict[str, Any] = json.loads(json.dumps(found), parse_float=lambda digits: float(f"{float(digits):.6g}"))
    return rounded


def _numbers(row: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
