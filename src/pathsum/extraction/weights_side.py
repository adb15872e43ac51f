"""Analyze the weights of heads: token clusters, singular directions, joint copying, subspaces, deletion, virtual heads.

Some of these analyses also need attention patterns or head outputs on held-out text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from pathsum.behavior import induction, positional
from pathsum.circuits import eigenvalues
from pathsum.circuits.composition import composition
from pathsum.circuits.deleting import alignment, covariance, removed
from pathsum.circuits.joint_copying import joint_OV, pattern_similarity, similar_groups
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.circuits.subspaces import effective_rank, overlaps
from pathsum.circuits.token_clusters import singular_directions, token_clusters
from pathsum.circuits.virtual_heads import removal_costs, virtual_patterns
from pathsum.config import ExtractConfig
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.records.roles import Place
from pathsum.records.tokens import JOINER
from pathsum.records.weights_side import (
    BandwidthRow,
    DeletingRow,
    DirectionRow,
    JointCopyingRow,
    OverlapRow,
    TokenClusterRow,
    VirtualHeadRow,
)
from pathsum.statistics.bootstrap import standard_errors

WINDOWS = 16  # windows of held-out text, for patterns and for removal costs of virtual heads
COMMON = 512  # most frequent tokens, to which clusters and directions are limited
TOKENS, CLUSTERS = 8, 3  # tokens per cluster, clusters per head
ALIKE = 0.5  # smallest cosine of the patterns of heads in one group
OTHER_SETS = 20  # largest number of random sets of heads with which a group's joint copying is compared
_SEED = 2021


def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``token_clusters``, ``directions``, ``joint_copying``, ``overlaps``, ``bandwidth``,
    ``deleting`` and ``virtual_heads``."""
    generator, weights = torch.Generator().manual_seed(_SEED), trained.weights.to(torch.float64)
    # Rare tokens are left out, since a head's response to them says little about text.
    common = data.unigram.argsort(descending=True, stable=True)[: min(COMMON, int(data.present.sum()))]
    k = min(TOKENS, len(common))

    def words(tokens: Int[Tensor, "k"]) -> str:
        return JOINER.join(data.words[t] for t in tokens.tolist())

    heads = [(layer, h, weights.layers[layer][h]) for layer, h in trained.places]
    return {
        "token_clusters": [
            TokenClusterRow(layer, h, rank, c.eigenvalue, c.cohesion, c.chance, c.spread, words(c.tokens))
            for layer, h, head in heads
            for rank, c in enumerate(token_clusters(weights, head.W_OV, common, CLUSTERS, k, generator), start=1)
        ],
        "directions": [
            DirectionRow(layer, h, rank, d.gain, d.share, words(d.read), words(d.written))
            for layer, h, head in heads
            for rank, d in enumerate(singular_directions(weights, head.W_OV, common, CLUSTERS, k), start=1)
        ],
        "joint_copying": joint_copying_rows(trained, data, generator),
        "overlaps": [OverlapRow(o.kind, *o.early, *o.late, o.share, o.chance, o.spread) for o in overlaps(weights)],
        "bandwidth": bandwidth_rows(weights),
        "deleting": deleting_rows(trained),
        "virtual_heads": virtual_head_rows(trained, data),
    }


def joint_copying_rows(trained: TrainedModel, data: EvalData, generator: torch.Generator) -> list[JointCopyingRow]:
    """Measure joint copying by each group of heads with similar patterns, by the best single head of the group, and by
    other sets of as many heads of its layer (docs/framework.md §3.7)."""
    present = data.unigram.nonzero().squeeze(-1)
    rows = []
    for layer, heads in enumerate(trained.weights.layers):
        similarity = pattern_similarity(trained.natural.patterns[layer][:WINDOWS])

        def circuit(which: Sequence[int], heads: tuple[Head, ...] = heads) -> LowRank:
            return ov_circuit(trained.weights, joint_OV([heads[h] for h in which]))

        for group in similar_groups(similarity, ALIKE):
            if len(group) < 2:
                continue
            others = [s for s in combinations(range(len(heads)), len(group)) if s != group]
            some = torch.randperm(len(others), generator=generator)[:OTHER_SETS].tolist()
            chance = [eigenvalues.diagonal_rank(circuit(others[i]), present).top1 for i in some]
            joint = eigenvalues.diagonal_rank(circuit(group), present)
            rows.append(
                JointCopyingRow(
                    layer=layer,
                    heads=" ".join(map(str, group)),
                    similarity=min(similarity[a, b].item() for a, b in combinations(group, 2)),
                    positivity=eigenvalues.positivity(circuit(group).eigenvalues()),
                    top1=joint.top1,
                    top5=joint.top5,
                    best_top1=max(eigenvalues.diagonal_rank(circuit([h]), present).top1 for h in group),
                    chance_top1=sum(chance) / len(chance) if chance else None,
                )
            )
    return rows


def bandwidth_rows(weights: Weights) -> list[BandwidthRow]:
    """Measure the effective rank of each head's W_OV and W_QK, and of W_E and W_U about their means over tokens
    (docs/framework.md §3.15). No rows for a model without layers."""
    if not weights.layers:
        return []
    d_model = len(weights.W_E)
    eye = torch.eye(d_model, dtype=weights.W_E.dtype)
    ends = {"W_E": (weights.W_E - weights.W_E.mean(1, keepdim=True)).mT, "W_U": weights.W_U - weights.W_U.mean(0)}
    rows = [BandwidthRow(part, None, None, effective_rank(LowRank(W, eye)), d_model) for part, W in ends.items()]
    for layer, heads in enumerate(weights.layers):
        for h, head in enumerate(heads):
            for part, W in {"W_OV": head.W_OV, "W_QK": head.W_QK}.items():
                rows.append(BandwidthRow(part, layer, h, effective_rank(W), min(W.left.shape)))
    return rows


def deleting_rows(trained: TrainedModel) -> list[DeletingRow]:
    """Measure how much heads past the first layer delete of what earlier layers wrote on held-out text
    (docs/framework.md §3.16). No rows with fewer than two layers."""
    rows = []
    outputs = trained.natural.outputs
    for layer in range(1, len(outputs)):
        written = torch.stack([o.sum(1) for o in outputs[:layer]]).sum(0)
        C = covariance(written)
        for h, head in enumerate(trained.weights.layers[layer]):
            found = alignment(head.W_OV, C)
            rows.append(DeletingRow(layer, h, found.value, found.spread, removed(outputs[layer][:, h], written)))
    return rows


def virtual_head_rows(trained: TrainedModel, data: EvalData) -> list[VirtualHeadRow]:
    """Describe the virtual head of every pair of heads in different layers by its weights, its pattern and its removal
    cost, in nats per token, with its standard error (docs/framework.md §2.8). No rows with fewer than two layers."""
    weights, natural, places = trained.weights.to(torch.float64), trained.natural, trained.places
    pairs = [(a, b) for a in places for b in places if a[0] < b[0]]
    if not pairs:
        return []
    patterns, scales = ([values[:WINDOWS] for values in kind] for kind in (natural.patterns, natural.scales))
    windows, logits = data.windows[:WINDOWS], natural.logits[:WINDOWS]
    costs = removal_costs(trained.model.weights(), pairs, windows, logits, patterns, scales)
    errors = standard_errors(costs, data.window_documents[:WINDOWS])
    looks, chance = _looks(trained), 1 / math.sqrt(len(weights.W_E))
    heads = [(weights.layers[i][a], weights.layers[j][b]) for (i, a), (j, b) in pairs]
    copied = eigenvalues.copying_eigenvalues(weights, [second.W_OV.after(first.W_OV) for first, second in heads])
    rows = []
    columns = zip(pairs, heads, copied, costs.mean(1).tolist(), errors.tolist(), strict=True)
    for (early, late), (first, second), values, cost, error in columns:
        by_weights = (composition(first, second, "V"), chance, eigenvalues.positivity(values))
        numbers: Any = (*by_weights, *looks[early, late], cost, error)
        rows.append(VirtualHeadRow(*early, *late, *numbers))
    return rows


def _looks(trained: TrainedModel) -> dict[tuple[Place, Place], tuple[float, int, float, float]]:
    """Return each virtual head's previous-token score, the distance and the height of its largest mean attention, and
    its prefix matching."""
    natural, repeated = ([p[:WINDOWS] for p in t.patterns] for t in (trained.natural, trained.repeated))
    found = {}
    for late, second in trained.places:
        for early in range(late):
            by_distance = positional.attention_by_distance(virtual_patterns(natural[early], natural[late][:, second]))
            peaks = by_distance[:, : by_distance.shape[1] // 2 + 1].max(-1)
            again = virtual_patterns(repeated[early], repeated[late][:, second])
            matching = induction.prefix_matching(again, trained.block)
            for first in range(len(by_distance)):
                found[(early, first), (late, second)] = (
                    by_distance[first, 1].item(),
                    int(peaks.indices[first]),
                    peaks.values[first].item(),
                    matching[first].item(),
                )
    return found
