"""Analyze the weights of heads, virtual heads, and the parts of the residual stream."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from pathsum.behavior import induction, positional
from pathsum.circuits import eigenvalues
from pathsum.circuits.balance import power_share, projection_share, rms_norm
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
from pathsum.extraction.inputs import EvalData, TrainedModel, printed
from pathsum.records.roles import Place
from pathsum.records.weights_side import (
    BalanceRow,
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
    """Return the records of ``records/weights_side.py``."""
    generator, weights = torch.Generator().manual_seed(_SEED), trained.exact
    # Rare tokens are left out, since a head's response to them says little about text.
    common = data.unigram.argsort(descending=True, stable=True)[: min(COMMON, int(data.present.sum()))]
    k = min(TOKENS, len(common))
    heads = [(layer, h, weights.layers[layer][h]) for layer, h in trained.places]
    circuits = [head.W_OV for *_, head in heads]
    clusters = token_clusters(weights, circuits, common, CLUSTERS, k, generator) if heads else []
    return {
        "token_clusters": [
            TokenClusterRow(layer=layer, head=h, rank=rank, **vars(c) | {"tokens": printed(data, c.tokens)})
            for (layer, h, _), groups in zip(heads, clusters, strict=True)
            for rank, c in enumerate(groups, start=1)
        ],
        "directions": [
            DirectionRow(
                layer=layer,
                head=h,
                rank=rank,
                **vars(d) | {"read": printed(data, d.read), "written": printed(data, d.written)},
            )
            for layer, h, head in heads
            for rank, d in enumerate(singular_directions(weights, head.W_OV, common, CLUSTERS, k), start=1)
        ],
        "joint_copying": joint_copying_rows(trained, data, generator),
        "overlaps": [
            OverlapRow(
                kind=o.kind,
                early_layer=o.early[0],
                early_head=o.early[1],
                late_layer=o.late[0],
                late_head=o.late[1],
                share=o.share,
                chance=o.chance,
                spread=o.spread,
            )
            for o in overlaps(weights)
        ],
        "bandwidth": bandwidth_rows(weights),
        "deleting": deleting_rows(trained),
        "virtual_heads": virtual_head_rows(trained, data),
        "balance": balance_rows(trained, data),
    }


def joint_copying_rows(trained: TrainedModel, data: EvalData, generator: torch.Generator) -> list[JointCopyingRow]:
    """Measure joint copying by heads with similar patterns, by the best of them, and by other sets of heads."""
    rows = []
    for layer, heads in enumerate(trained.exact.layers):
        similarity = pattern_similarity(trained.natural.patterns[layer][:WINDOWS])

        def circuit(which: Sequence[int], heads: tuple[Head, ...] = heads) -> LowRank:
            return ov_circuit(trained.exact, joint_OV([heads[h] for h in which]))

        for group in similar_groups(similarity, ALIKE):
            if len(group) < 2:
                continue
            others = [s for s in combinations(range(len(heads)), len(group)) if s != group]
            some = torch.randperm(len(others), generator=generator)[:OTHER_SETS].tolist()
            chance = [eigenvalues.diagonal_rank(circuit(others[i]), data.sources).top1 for i in some]
            joint = eigenvalues.diagonal_rank(circuit(group), data.sources)
            rows.append(
                JointCopyingRow(
                    layer=layer,
                    heads=" ".join(map(str, group)),
                    similarity=min(similarity[a, b].item() for a, b in combinations(group, 2)),
                    positivity=eigenvalues.positivity(circuit(group).eigenvalues()),
                    top1=joint.top1,
                    top5=joint.top5,
                    best_top1=max(eigenvalues.diagonal_rank(circuit([h]), data.sources).top1 for h in group),
                    chance_top1=sum(chance) / len(chance) if chance else None,
                )
            )
    return rows


def bandwidth_rows(weights: Weights) -> list[BandwidthRow]:
    """Measure the effective rank of each head's W_OV and W_QK, and of W_E and W_U about their means over tokens."""
    if not weights.layers:
        return []
    d_model = len(weights.W_E)
    eye = torch.eye(d_model, dtype=weights.W_E.dtype)
    ends = {"W_E": (weights.W_E - weights.W_E.mean(1, keepdim=True)).mT, "W_U": weights.W_U - weights.W_U.mean(0)}
    found: list[tuple[str, int | None, int | None, LowRank]] = []
    found += [(part, None, None, LowRank(W, eye)) for part, W in ends.items()]
    for layer, heads in enumerate(weights.layers):
        for h, head in enumerate(heads):
            found += [("W_OV", layer, h, head.W_OV), ("W_QK", layer, h, head.W_QK)]
    return [
        BandwidthRow(part=part, layer=layer, head=h, effective_rank=effective_rank(W), rank=min(W.left.shape))
        for part, layer, h, W in found
    ]


def deleting_rows(trained: TrainedModel) -> list[DeletingRow]:
    """Measure how much heads past the first layer delete of what earlier layers wrote on held-out text."""
    rows, outputs = [], trained.natural.outputs
    for layer in range(1, len(outputs)):
        written = torch.stack([o.sum(1) for o in outputs[:layer]]).sum(0)
        C = covariance(written)
        for h, head in enumerate(trained.weights.layers[layer]):
            found, share = alignment(head.W_OV, C), removed(outputs[layer][:, h], written)
            rows.append(DeletingRow(layer=layer, head=h, alignment=found.value, spread=found.spread, removed=share))
    return rows


def virtual_head_rows(trained: TrainedModel, data: EvalData) -> list[VirtualHeadRow]:
    """Describe the virtual head of every pair of heads in different layers."""
    weights, natural, places = trained.exact, trained.natural, trained.places
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
    columns = zip(pairs, heads, copied, costs.mean(1).tolist(), errors.tolist(), strict=True)
    return [
        VirtualHeadRow(
            early_layer=early[0],
            early_head=early[1],
            late_layer=late[0],
            late_head=late[1],
            composition=composition(first, second, "V"),
            composition_chance=chance,
            positivity=eigenvalues.positivity(values),
            **looks[early, late],
            cost_nats=cost,
            cost_error_nats=error,
        )
        for (early, late), (first, second), values, cost, error in columns
    ]


def _looks(trained: TrainedModel) -> dict[tuple[Place, Place], dict[str, Any]]:
    """Return the columns of ``VirtualHeadRow`` on patterns."""
    natural, repeated = ([p[:WINDOWS] for p in t.patterns] for t in (trained.natural, trained.repeated))
    found = {}
    for late, second in trained.places:
        for early in range(late):
            by_distance = positional.attention_by_distance(virtual_patterns(natural[early], natural[late][:, second]))
            peaks = by_distance[:, : by_distance.shape[1] // 2 + 1].max(-1)
            again = virtual_patterns(repeated[early], repeated[late][:, second])
            matching = induction.prefix_matching(again, trained.block)
            for first in range(len(by_distance)):
                found[(early, first), (late, second)] = {
                    "previous_token": by_distance[first, 1].item(),
                    "peak_distance": int(peaks.indices[first]),
                    "peak_attention": peaks.values[first].item(),
                    "prefix_matching": matching[first].item(),
                }
    return found


@torch.no_grad()
def balance_rows(trained: TrainedModel, data: EvalData) -> list[BalanceRow]:
    """Measure each part of the stream that each layer or the unembedding reads (docs/framework.md §7.3)."""
    model, trace, rows = trained.model, trained.natural, []
    embedded = trace.streams[0]
    for reader, (stream, scale) in enumerate(zip(trace.streams, trace.scales, strict=True)):
        x = model.centred(stream)
        for name, part in _parts(embedded, stream, trace.outputs[:reader], trained.has_constants):
            own = model.centred(part)
            shares = {"power_share": power_share(own, x, scale), "projection_share": projection_share(own, x, scale)}
            rows.append(BalanceRow(reader=reader, part=name, norm=rms_norm(part), **shares))
    return rows


def _parts(embedded: Tensor, stream: Tensor, outputs: tuple[Tensor, ...], biased: bool) -> list[tuple[str, Tensor]]:
    """Return the parts of a stream: the embedding (with positions that join it), layers, heads and biases."""
    layers = [(f"L{layer}", output.sum(1)) for layer, output in enumerate(outputs)]
    heads = [(f"L{n}H{h}", part) for n, output in enumerate(outputs) for h, part in enumerate(output.unbind(1))]
    rest = [("biases", stream - embedded - sum(part for _, part in layers))] if biased and layers else []
    return [("embedding", embedded), *layers, *heads, *rest]
