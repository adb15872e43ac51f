"""Split the attention scores of every head past the first layer by pairs of paths, on repeated random tokens, and test
token matching on the strongest pair (docs/framework.md §2.3 and §5.5).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.eigenvalues import positivity
from pathsum.circuits.matching import pair_matching_eigenvalues, scale_as_read
from pathsum.circuits.paths import Path, all_paths, path_name
from pathsum.circuits.score_paths import stream_paths
from pathsum.config import ExtractConfig
from pathsum.core.weights import Weights
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.pairs import POSITION, Pair, add_up, pairs, score_errors
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.paths import MatchingRow, ScorePathRow


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``score_paths`` and ``matching``; no rows for rotary positions, for smeared keys
    (``pairs.add_up``), or with fewer than two layers."""
    model = trained.cell.model
    if not add_up(model):
        return {"score_paths": [], "matching": []}
    exact, windows = copy.deepcopy(trained.model).double(), data.windows[: config.exactness_windows, :-1]
    with torch.no_grad():
        trace, later = exact.trace(windows), range(1, model.n_layers)
        errors = {layer: path_pair_errors(exact, trace, layer, windows) for layer in later}
    found = [pair for layer in later for pair in path_pairs(trained, layer)]
    rows = [ScorePathRow(p.layer, p.head, p.query, p.key, *p.summary(), errors[p.layer][p.head]) for p in found]
    by_head = itertools.groupby(found, key=lambda p: (p.layer, p.head))
    return {"score_paths": rows, "matching": [matching_row(trained, [*mine], data.unigram) for _, mine in by_head]}


def path_pairs(trained: TrainedModel, layer: int) -> list[Pair]:
    """Return the contribution of each pair of paths, and of positions, to the attention scores of the heads of
    ``layer`` on repeated random tokens. ValueError as in ``pairs``."""
    model, trace = trained.model, trained.repeated
    weights = model.weights()
    paths = paths_to(weights, layer)
    parts = stream_paths(weights, layer, paths, trained.repeated_tokens, trace.patterns, trace.scales)
    return [*pairs(model, layer, parts, [path_name(path) for path in paths], trained.block)]


def path_pair_errors(model: Transformer, trace: Trace, layer: int, tokens: Int[Tensor, "batch pos"]) -> list[float]:
    """Return the relative error of log A when scores are computed as sums over pairs of paths, for each head of
    ``layer``."""
    weights = model.weights()
    parts = stream_paths(weights, layer, paths_to(weights, layer), tokens, trace.patterns, trace.scales)
    return score_errors(model, trace, layer, parts)


def paths_to(weights: Weights, layer: int) -> list[Path]:
    """Return the paths from the embedding to the input of ``layer``, by number of heads, the direct path first."""
    return all_paths(Weights(weights.W_E, weights.W_U, weights.layers[:layer]))


def matching_row(trained: TrainedModel, mine: Sequence[Pair], unigram: Float[Tensor, "vocab"]) -> MatchingRow:
    """Measure token matching on the pair of paths that contributes most to a head's preference."""
    weights = trained.model.weights()
    paths = {path_name(path): path for path in all_paths(weights)}
    best = max((p for p in mine if POSITION not in (p.query, p.key)), key=lambda p: _halves(p)[0])
    both = (paths[best.query], paths[best.key])
    readers = [path[0][0] if path else best.layer for path in both]  # the layers that read the embedding
    query, key = (
        scale_as_read(trained.repeated.scales[reader], trained.repeated_tokens, len(unigram)) for reader in readers
    )
    head = weights.layers[best.layer][best.head]
    eigenvalues = pair_matching_eigenvalues(weights, head, both, (query, key), unigram)
    whole = [sum(half) for half in zip(*map(_halves, mine), strict=True)]
    chosen, judged = (nats / total if total > 0 else None for nats, total in zip(_halves(best), whole, strict=True))
    return MatchingRow(best.layer, best.head, best.query, best.key, chosen, judged, positivity(eigenvalues))


def _halves(pair: Pair) -> tuple[float, float]:
    """Return the mean contribution to the preference on the half of the windows that chooses, and on the other half."""
    half = len(pair.nats) // 2
    return pair.nats[:half].mean().item(), pair.nats[half:].mean().item()
