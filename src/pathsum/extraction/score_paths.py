"""Split attention scores into pairs of parts, one read at the query and one at the key (docs/framework.md §2.3, §2.4),
test token matching on the strongest pair (§5.5), and measure how exactly paths add up at every checkpoint (§2.2)."""

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.eigenvalues import positivity
from pathsum.circuits.matching import pair_matching_eigenvalues, scale_as_read
from pathsum.circuits.paths import (
    Path,
    Patterns,
    Scales,
    all_paths,
    by_order,
    constant_reads,
    exactness,
    path_name,
    path_sum,
)
from pathsum.circuits.score_paths import (
    by_distance,
    contrasted,
    preference_contrast,
    score_sum,
    stream_paths,
    variance_contrast,
)
from pathsum.config import ExtractConfig
from pathsum.core.weights import Head, Weights
from pathsum.extraction.inputs import EvalData, Load, TrainedModel
from pathsum.model.attention import Attention
from pathsum.model.opened import biases, turned
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.records.paths import ExactnessRow, MatchingRow, ScorePathRow
from pathsum.statistics.bootstrap import Interval, independent, ratio_interval, standard_errors

POSITION = "position"
MOST_PARTS = 100  # paths to a layer, which are paired in its scores; behind two layers of eight heads there are 81
MOST_PATHS = 10_000  # added up one by one; four layers of eight heads have 6,561

Sides = tuple[
    Float[Tensor, "path_ batch pos d_head"], Float[Tensor, "path_ batch pos d_head"], Float[Tensor, "distance"]
]


@dataclass(frozen=True)
class Pair:
    """What one part at the query and one part at the key together contribute to a head's scores, by window."""

    layer: int
    head: int
    query: str
    key: str
    nats: Float[Tensor, "batch"]  # contribution to the preference (docs/framework.md §2.4)
    shares: Float[Tensor, "batch"]  # share of the variance of the scores over keys

    @property
    def place(self) -> tuple[int, int]:
        return self.layer, self.head

    @property
    def halves(self) -> tuple[float, float]:
        """Return the mean of ``nats`` on the half of the windows that chooses, and on the other half."""
        half = len(self.nats) // 2
        return self.nats[:half].mean().item(), self.nats[half:].mean().item()

    def share(self, whole: Float[Tensor, "batch"], generator: torch.Generator) -> Interval | None:
        """Return the share of the head's ``whole`` preference; None unless its mean is positive."""
        return ratio_interval(self.nats, whole, independent(whole), generator) if whole.mean() > 0 else None

    def columns(self) -> dict[str, Any]:
        """Return the columns that ``ScorePathRow`` and ``ContentScoreRow`` have in common."""
        return {
            **{name: getattr(self, name) for name in ("layer", "head", "query", "key")},
            "preference_nats": self.nats.mean().item(),
            "preference_error_nats": standard_errors(self.nats[None], independent(self.nats)).item(),
            "variance_share": self.shares.mean().item(),
        }


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``exactness``, ``score_paths`` and ``matching``; the last two may have none."""
    checkpoints = zip(trained.checkpoints, trained.log, strict=True)
    checks = [exactness_row(load, at, data, config) for load, at in checkpoints]
    if not add_up(trained.model):
        return {"exactness": checks, "score_paths": [], "matching": []}
    exact, windows = copy.deepcopy(trained.model).double(), data.windows[: config.exactness_windows, :-1]
    with torch.no_grad():
        trace, later = exact.trace(windows), split_layers(trained.weights)
        errors = {layer: path_pair_errors(exact, trace, layer, windows) for layer in later}
    found = [pair for layer in later for pair in path_pairs(trained, layer)]
    by_head = itertools.groupby(found, key=lambda p: p.place)
    return {
        "exactness": checks,
        "score_paths": [ScorePathRow(**p.columns(), exactness=errors[p.layer][p.head]) for p in found],
        "matching": [
            matching_row(trained, [*mine], data.unigram)
            for (layer, _), mine in by_head
            if trained.model.attention(layer).bilinear
        ],
    }


def exactness_row(load: Load, at: Evaluation, data: EvalData, config: ExtractConfig) -> ExactnessRow:
    """Return the relative errors of the sums over paths at one checkpoint, in float64."""
    model = copy.deepcopy(load()).double()
    tokens = data.windows[: config.exactness_windows, :-1]
    trace, later = model.trace(tokens), split_layers(model.weights()) if add_up(model) else []
    total = logits_by_paths(model, tokens, trace)
    errors = (error for layer in later for error in path_pair_errors(model, trace, layer, tokens))
    return ExactnessRow(
        step=at.step,
        tokens_seen=at.tokens_seen,
        max_relative_error=exactness(total, model(tokens)),
        scores_max_relative_error=max(errors, default=None),
    )


def logits_by_paths(
    model: Transformer, tokens: Int[Tensor, "batch pos"], trace: Trace
) -> Float[Tensor, "batch pos vocab"]:
    """Return the sum over all paths, those from constants included; layer by layer if there are more than
    ``MOST_PATHS`` (docs/framework.md §2.9)."""
    weights, frozen = model.weights(), (trace.patterns, trace.scales)
    few = math.prod(1 + len(heads) for heads in weights.layers) <= MOST_PATHS
    total = path_sum(weights, tokens, *frozen) if few else torch.stack(by_order(weights, tokens, *frozen)).sum(0)
    return total + constant_logits(model, weights, *frozen)


def constant_logits(
    model: Transformer, weights: Weights, patterns: Patterns, scales: Scales
) -> Float[Tensor, "*rows vocab"]:
    """Return the logits that are due to b_U and to all paths from constants, zeros if the model has neither."""
    if (joining := model.constants(scales[-1].shape[1])) is None:
        return weights.W_U.new_zeros(len(weights.W_U)) if model.b_U is None else model.b_U
    return F.linear(constant_reads(weights, joining, patterns, scales)[-1], weights.W_U, model.b_U)


def add_up(model: Transformer) -> bool:
    """Return whether attention scores can be split into pairs of parts: not with smeared keys."""
    return all(model.attention(layer).smear is None for layer in range(len(model.layers)))


def constant_read(model: Transformer, trace: Trace, layer: int) -> Float[Tensor, "batch pos d_model"] | None:
    """Return what ``layer`` reads of positions and biases; None without any."""
    joining = model.constants(trace.scales[0].shape[1])
    return None if joining is None else constant_reads(model.weights(), joining, trace.patterns, trace.scales)[layer]


def split_layers(weights: Weights) -> list[int]:
    """Return the layers past the first whose scores are split by path: those with few paths to them."""
    return [layer for layer in range(1, len(weights.layers)) if len(paths_to(weights, layer)) <= MOST_PARTS]


def path_pairs(trained: TrainedModel, layer: int) -> Iterator[Pair]:
    """Yield the contribution of each pair of paths, and of positions, to the scores of the heads of ``layer``."""
    model, trace = trained.model, trained.repeated
    weights = model.weights()
    paths = paths_to(weights, layer)
    parts = stream_paths(weights, layer, paths, trained.repeated_tokens, trace.patterns, trace.scales)
    yield from pairs(model, trace, layer, parts, [path_name(path) for path in paths], trained.block)


def pairs(
    model: Transformer,
    trace: Trace,
    layer: int,
    parts: Float[Tensor, "path batch pos d_model"],
    names: Sequence[str],
    block: int,
) -> Iterator[Pair]:
    """Yield, for each head of ``layer``, what each pair of ``parts`` contributes to its scores, and what positions and
    biases do."""
    constants = constant_read(model, trace, layer)
    names, preference = [*names, POSITION], preference_contrast(block).expand(parts.shape[1], -1, -1)
    for h, head in enumerate(model.weights().layers[layer]):
        queries, keys, bias = sides(model.attention(layer), h, head, parts, constants)
        from_bias = by_distance(bias)
        variance = variance_contrast(queries.sum(0) @ keys.sum(0).mT + from_bias, block + 1)
        nats, shares = (contrasted(queries, keys, contrast) for contrast in (preference, variance))
        nat, share = ((contrast * from_bias).sum((-2, -1)) for contrast in (preference, variance))
        if own := len(queries) > len(parts):  # one pair of positions, whatever they do
            nats[-1, -1], shares[-1, -1] = nats[-1, -1] + nat, shares[-1, -1] + share
        for q, k in itertools.product(range(len(queries)), range(len(keys))):
            yield Pair(layer, h, names[q], names[k], nats[q, k], shares[q, k])
        if bias.any() and not own:
            yield Pair(layer, h, POSITION, POSITION, nat, share)


def path_pair_errors(model: Transformer, trace: Trace, layer: int, tokens: Int[Tensor, "batch pos"]) -> list[float]:
    """Return ``score_errors`` if the parts are paths."""
    weights = model.weights()
    parts = stream_paths(weights, layer, paths_to(weights, layer), tokens, trace.patterns, trace.scales)
    return score_errors(model, trace, layer, parts)


def score_errors(
    model: Transformer, trace: Trace, layer: int, parts: Float[Tensor, "path batch pos d_model"]
) -> list[float]:
    """Return each head's relative error of log A if scores are sums over pairs of parts (docs/framework.md §2.2)."""
    constants = constant_read(model, trace, layer)
    future = torch.ones(parts.shape[2], parts.shape[2], dtype=torch.bool).triu(1)
    errors = []
    heads = zip(model.weights().layers[layer], trace.patterns[layer].unbind(1), strict=True)
    for h, (head, pattern) in enumerate(heads):
        scores = score_sum(*sides(model.attention(layer), h, head, parts, constants))
        ours = scores.masked_fill(future, -math.inf).log_softmax(-1)
        errors.append(exactness(ours[pattern > 0], pattern[pattern > 0].log()))
    return errors


def sides(
    attention: Attention,
    h: int,
    head: Head,
    parts: Float[Tensor, "path batch pos d_model"],
    constants: Float[Tensor, "batch pos d_model"] | None = None,
) -> Sides:
    """Return the queries and the keys of each part, and the position bias by distance, for head ``h`` of a layer. The
    last part is that of positions and biases, if there are any."""
    if attention.smear is not None:
        raise ValueError("expected keys of one position each, got smeared keys")
    pos, W_Q, W_K = parts.shape[2], attention.W_Q[h], attention.W_K[h]
    added = biases(attention, h, pos)
    if constants is not None or added is not None:
        rest = parts.new_zeros(parts.shape[1:]) if constants is None else constants
        own = (added[0], added[1]) if added is not None else (0.0, 0.0)
        queries = torch.cat([parts @ head.W_QK.left, (rest @ head.W_QK.left + own[0])[None]])
        keys = torch.cat([parts @ head.W_QK.right.mT, (rest @ head.W_QK.right.mT + own[1])[None]])
        return turned(attention, queries), turned(attention, keys), attention.position_bias(pos)[h]
    vectors = attention.position_vectors(pos)[:, None].expand(-1, *parts.shape[1:])
    # Position vectors are added after the norm, which does not center them.
    queries = torch.cat([parts @ head.W_QK.left, vectors @ W_Q.mT / math.sqrt(len(W_Q))])
    keys = torch.cat([parts @ head.W_QK.right.mT, vectors @ W_K.mT])
    return turned(attention, queries), turned(attention, keys), attention.position_bias(pos)[h]


def paths_to(weights: Weights, layer: int) -> list[Path]:
    """Return the paths from the embedding to the input of ``layer``, by number of heads, the direct path first."""
    return all_paths(Weights(weights.W_E, weights.W_U, weights.layers[:layer]))


def matching_row(trained: TrainedModel, mine: Sequence[Pair], unigram: Float[Tensor, "vocab"]) -> MatchingRow:
    """Measure token matching on the pair of paths that contributes most to a head's preference."""
    weights = trained.model.weights()
    paths = {path_name(path): path for path in all_paths(weights)}
    best = max((p for p in mine if POSITION not in (p.query, p.key)), key=lambda p: p.halves[0])
    both = (paths[best.query], paths[best.key])
    readers = [path[0][0] if path else best.layer for path in both]  # the layers that read the embedding
    query, key = (
        scale_as_read(trained.repeated.scales[reader], trained.repeated_tokens, len(unigram)) for reader in readers
    )
    eigenvalues = pair_matching_eigenvalues(weights, weights.layers[best.layer][best.head], both, (query, key), unigram)
    whole = [sum(half) for half in zip(*(p.halves for p in mine), strict=True)]
    chosen, judged = (nats / total if total > 0 else None for nats, total in zip(best.halves, whole, strict=True))
    return MatchingRow(
        layer=best.layer,
        head=best.head,
        query=best.query,
        key=best.key,
        chosen_share=chosen,
        judged_share=judged,
        positivity=positivity(eigenvalues),
    )
