"""Measure how exactly the paths add up to logits and attention scores at every checkpoint (docs/framework.md §2.2)."""

from pathlib import Path
from typing import Any

import torch

from pathsum.circuits import paths
from pathsum.config import ExtractConfig
from pathsum.extraction import score_paths
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.evaluation import Evaluation
from pathsum.records.paths import ExactnessRow


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``exactness``: one row per checkpoint."""
    checkpoints = zip(trained.checkpoints, trained.log, strict=True)
    return {"exactness": [exactness_row(path, at, data, config) for path, at in checkpoints]}


def exactness_row(path: Path, at: Evaluation, data: EvalData, config: ExtractConfig) -> ExactnessRow:
    """Return the relative errors for the checkpoint at ``path``, in float64."""
    model = load_checkpoint(path, data.tokenizer_hash, torch.float64)
    tokens = data.windows[: config.exactness_windows, :-1]
    trace = model.trace(tokens)
    total = paths.path_sum(model.weights(), tokens, trace.patterns, trace.scales)
    scores = None
    if score_paths.add_up(model.config):
        later = range(1, model.config.n_layers)
        errors = (e for layer in later for e in score_paths.path_pair_errors(model, trace, layer, tokens))
        scores = max(errors, default=None)
    return ExactnessRow(
        step=at.step,
        tokens_seen=at.tokens_seen,
        max_relative_error=paths.exactness(total, model(tokens)),
        scores_max_relative_error=scores,
    )
