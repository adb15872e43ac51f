"""Measure at every checkpoint how exactly the path expansion adds up to the model's logits and attention scores
(docs/framework.md §2.2).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from pathsum.circuits import paths
from pathsum.config import ExtractConfig
from pathsum.extraction import score_paths
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.pairs import add_up
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.evaluation import Evaluation
from pathsum.records.paths import ExactnessRow


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``exactness``: one row per checkpoint."""
    pairs = zip(trained.checkpoints, trained.log, strict=True)
    return {"exactness": [exactness_row(path, at, data, config) for path, at in pairs]}


def exactness_row(path: Path, evaluation: Evaluation, data: EvalData, config: ExtractConfig) -> ExactnessRow:
    """Return the relative errors of the path expansions of logits and attention scores for the checkpoint at ``path``,
    in float64."""
    model = load_checkpoint(path, data.tokenizer_hash, torch.float64)
    tokens = data.windows[: config.exactness_windows, :-1]
    trace = model.trace(tokens)
    total = paths.path_sum(model.weights(), tokens, trace.patterns, trace.scales)
    scores = None
    if add_up(model.config):
        later = range(1, model.config.n_layers)
        errors = (e for layer in later for e in score_paths.path_pair_errors(model, trace, layer, tokens))
        scores = max(errors, default=None)
    return ExactnessRow(evaluation.step, evaluation.tokens_seen, paths.exactness(total, model(tokens)), scores)
