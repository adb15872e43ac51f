"""What the scores of every head past the first layer are made of, on repeated random tokens."""

from __future__ import annotations

import copy
import math
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pathsum.circuits.bootstrap import independent, standard_errors
from pathsum.circuits.paths import Path, all_paths, exactness, path_name
from pathsum.circuits.score_paths import (
    by_distance,
    contrasted,
    preference_contrast,
    score_sum,
    stream_paths,
    variance_contrast,
)
from pathsum.circuits.weights import Head, Weights
from pathsum.config import ExtractConfig, ModelConfig
from pathsum.extraction.evidence import Evidence, Subject
from pathsum.model.transformer import Trace, Transformer
from pathsum.records import ScorePathRow

POSITION = "position"

Sides = tuple[
    Float[Tensor, "path_ batch pos d_head"], Float[Tensor, "path_ batch pos d_head"], Float[Tensor, "distance"]
]


def tables(subject: Subject, seen: Evidence, how: ExtractConfig) -> dict[str, list[Any]]:
    """By field of ``Cell``; no rows where positions or keys do not add up (``sides`` says which)."""
    model = subject.cell.model
    if not add_up(model):
        return {"score_paths": []}
    exact, windows = copy.deepcopy(subject.model).double(), seen.windows[: how.certificate_windows, :-1]
    with torch.no_grad():
        trace, later = exact.trace(windows), range(1, model.n_layers)
        found = [layer_rows(subject, layer, certificates(exact, trace, layer, windows)) for layer in later]
    return {"score_paths": [row for rows in found for row in rows]}


def add_up(model: ModelConfig) -> bool:
    """Whether scores are a bilinear function of what is read, with one W_QK for every pair of positions."""
    return model.positions != "rotary" and not model.smeared_keys


def layer_rows(subject: Subject, layer: int, errors: list[float]) -> list[ScorePathRow]:
    """A row for every head of a layer, path to the query and path to the key; position's bias is one more pair."""
    model, block, trace = subject.model, subject.block, subject.repeated
    weights, batch = model.weights(), len(subject.repeated_tokens)
    paths = paths_to(weights, layer)
    parts = stream_paths(weights, layer, paths, subject.repeated_tokens, trace.patterns, trace.scales)
    names = [*map(path_name, paths), POSITION]
    preference = preference_contrast(block).expand(batch, -1, -1)
    rows = []
    for h, error in enumerate(errors):
        queries, keys, bias = sides(model.layers[layer], h, weights.layers[layer][h], parts)
        from_bias = by_distance(bias)
        variance = variance_contrast(queries.sum(0) @ keys.sum(0).mT + from_bias, block + 1)
        nats, shares = (contrasted(queries, keys, contrast) for contrast in (preference, variance))
        pairs = list(product(names[: len(queries)], names[: len(keys)]))
        worth = list(zip(pairs, nats.flatten(0, 1), shares.flatten(0, 1), strict=True))
        if bias.any():
            nat, share = ((contrast * from_bias).sum((-2, -1)) for contrast in (preference, variance))
            worth.append(((POSITION, POSITION), nat, share))
        rows += [
            ScorePathRow(
                layer,
                h,
                query,
                key,
                nat.mean().item(),
                standard_errors(nat[None], independent(nat)).item(),
                share.mean().item(),
                error,
            )
            for (query, key), nat, share in worth
        ]
    return rows


def certificates(model: Transformer, trace: Trace, layer: int, tokens: Int[Tensor, "batch pos"]) -> list[float]:
    """For each head, the sum over pairs against the attention in the model's own ``trace`` of ``tokens``: largest error
    of log A, relative to the largest log A. ``model`` in float64."""
    weights = model.weights()
    parts = stream_paths(weights, layer, paths_to(weights, layer), tokens, trace.patterns, trace.scales)
    future = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
    errors = []
    for h, (head, pattern) in enumerate(zip(weights.layers[layer], trace.patterns[layer].unbind(1), strict=True)):
        scores = score_sum(*sides(model.layers[layer], h, head, parts))
        ours = scores.masked_fill(future, -math.inf).log_softmax(-1)
        errors.append(exactness(ours[pattern > 0], pattern[pattern > 0].log()))
    return errors


def paths_to(weights: Weights, layer: int) -> list[Path]:
    """Through which heads does a token reach what ``layer`` reads? The direct path comes first."""
    return all_paths(Weights(weights.W_E, weights.W_U, weights.layers[:layer]))


def sides(attention: nn.Module, h: int, head: Head, parts: Float[Tensor, "path batch pos d_model"]) -> Sides:
    """What each path gives to a head's queries and keys, with position vectors as one more path where it has them, and
    the bias that it adds to scores. ValueError where positions or keys do not add up."""
    if attention.positions == "rotary" or hasattr(attention, "smear"):
        raise ValueError(
            "expected positions that add to what heads read or to scores, got rotary positions or smeared keys; such "
            "scores are no bilinear function of what is read, with one W_QK for every pair of positions"
        )
    queries, keys = parts @ head.W_QK.left, parts @ head.W_QK.right.mT
    pos = parts.shape[2]
    if attention.positions == "sinusoidal":  # read after the norm, so its centring is not theirs
        W_Q, W_K = attention.W_Q[h], attention.W_K[h]  # type: ignore[index]
        waves = attention.waves[:pos].expand(1, *parts.shape[1:])  # type: ignore[index]
        queries = torch.cat([queries, waves @ W_Q.mT / math.sqrt(len(W_Q))])
        keys = torch.cat([keys, waves @ W_K.mT])
    bias = attention.bias[h, :pos] if attention.positions == "relative" else parts.new_zeros(pos)  # type: ignore[index]
    return queries, keys, bias
