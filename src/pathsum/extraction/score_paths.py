"""What the scores of every head past the first layer are made of, on repeated random tokens."""

from __future__ import annotations

import copy
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pathsum.circuits.paths import Path, all_paths, path_name
from pathsum.circuits.score_paths import stream_paths
from pathsum.config import ExtractConfig
from pathsum.core.weights import Weights
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.matching import matching_rows
from pathsum.extraction.pairs import Pair, add_up, pairs, score_errors
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.score_paths import ScorePathRow


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the rows by record name; no rows where positions or keys do not add up (``sides`` says which)."""
    model = trained.cell.model
    if not add_up(model):
        return {"score_paths": [], "matching": []}
    exact, windows = copy.deepcopy(trained.model).double(), data.windows[: config.certificate_windows, :-1]
    with torch.no_grad():
        trace, later = exact.trace(windows), range(1, model.n_layers)
        errors = {layer: certificates(exact, trace, layer, windows) for layer in later}
    found = [pair for layer in later for pair in path_pairs(trained, layer)]
    rows = [ScorePathRow(p.layer, p.head, p.query, p.key, *p.summary(), errors[p.layer][p.head]) for p in found]
    return {"score_paths": rows, "matching": matching_rows(trained, found, data.unigram)}


def path_pairs(trained: TrainedModel, layer: int) -> list[Pair]:
    """Every pair of paths to what a layer reads on the repeated tokens, and position's bias."""
    model, trace = trained.model, trained.repeated
    weights = model.weights()
    paths = paths_to(weights, layer)
    parts = stream_paths(weights, layer, paths, trained.repeated_tokens, trace.patterns, trace.scales)
    return [*pairs(model, layer, parts, [path_name(path) for path in paths], trained.block)]


def certificates(model: Transformer, trace: Trace, layer: int, tokens: Int[Tensor, "batch pos"]) -> list[float]:
    """For each head, the sum over pairs against the attention in the model's own ``trace`` of ``tokens``: largest error
    of log A, relative to the largest log A. ``model`` in float64."""
    weights = model.weights()
    parts = stream_paths(weights, layer, paths_to(weights, layer), tokens, trace.patterns, trace.scales)
    return score_errors(model, trace, layer, parts)


def paths_to(weights: Weights, layer: int) -> list[Path]:
    """Through which heads does a token reach what ``layer`` reads? The direct path comes first."""
    return all_paths(Weights(weights.W_E, weights.W_U, weights.layers[:layer]))
