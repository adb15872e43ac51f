"""What would the model do, did some heads write something else? (docs/framework.md §5.8)

Every intervention comes down to a head's act being replaced: by zeros, a mean or another window's; by what it does
when it does not read an earlier head through its queries, keys or values (an edge); by what it writes under a given
pattern. What follows from it is then either computed again (``rerun``) or carried on by patterns and norm scales that
stay as they were (``carried``), where the path expansion is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.model.attention import Attention
from pathsum.model.transformer import Trace, Transformer

Place = tuple[int, int]  # (layer, head)
READERS = ("Q", "K", "V")


@dataclass(frozen=True)
class Recording:
    """A run without intervention, from which each one starts."""

    trace: Trace
    streams: tuple[Float[Tensor, "batch pos d_model"], ...]  # before each layer, and after the last


@dataclass(frozen=True)
class Act:
    """What a head attends to, and what it writes."""

    pattern: Float[Tensor, "batch query key"]
    output: Float[Tensor, "batch pos d_model"]


@dataclass(frozen=True)
class Outcome:
    """What an intervention leads to. Logits are W_U times what is read: those of some positions cost theirs alone."""

    read: Float[Tensor, "batch pos d_model"]  # the last residual stream, normalised
    patterns: tuple[tuple[Float[Tensor, "batch query key"], ...], ...]  # by layer and head


Heads = tuple[Tensor, Tensor]  # patterns and outputs of a layer
Acts = Mapping[Place, Act]  # in place of what these heads do


def record(model: Transformer, tokens: Int[Tensor, "batch pos"]) -> Recording:
    """What does the model do if left alone? Costs one trace."""
    trace, streams = model.trace(tokens), [model.embed(tokens)]
    for output in trace.outputs:
        streams.append(streams[-1] + output.sum(1))
    return Recording(trace, tuple(streams))


def rerun(model: Transformer, clean: Recording, acts: Acts) -> Outcome:
    """What does the model do when some heads act otherwise, and later heads and norms see it? docs/framework.md §5.8.

    Without acts, the model. Costs the layers after the first act. ValueError where a head is not the model's.
    """
    x, patterns = _run(clean, acts, lambda number, x: _layer(model, number).heads(model.normalise(x)[0]))
    return Outcome(model.normalise(x)[0], patterns)


def carried(model: Transformer, clean: Recording, acts: Acts) -> Outcome:
    """The same with the later heads' patterns and all norms' scales as they were: every path through a replaced head is
    replaced, and nothing else (docs/framework.md §2.1). The logits are then linear in the acts. Costs and errors as
    ``rerun``."""

    def attend(number: int, x: Tensor) -> Heads:
        layer, pattern = _layer(model, number), clean.trace.patterns[number]
        v = layer.queries_keys_values(_scaled(model, clean, number, x))[2]
        return pattern, pattern @ v @ layer.W_O.mT

    x, patterns = _run(clean, acts, attend)
    return Outcome(_scaled(model, clean, -1, x), patterns)


def reading_otherwise(
    model: Transformer,
    clean: Recording,
    layer: int,
    reader: str,
    early: Place,
    output: Float[Tensor, "batch pos d_model"],
) -> list[Act]:
    """What would each head of ``layer`` do if its queries (Q), keys (K) or values (V) read ``output`` where the
    ``early`` head wrote, and all else as it was? The edges from ``early`` into that layer (docs/framework.md §5.9).

    The norm before the layer keeps the scale it had: the other two readers see it, and with a new scale the removal of
    one head would turn up all the others. So edges are additive in what is read. Costs the layer. ValueError where
    ``early`` is not of an earlier layer.
    """
    if early[0] >= layer or reader not in READERS:
        raise ValueError(
            f"expected a reader of {READERS} and a head of a layer before {layer}, got {reader!r} and head {early}; "
            "a head reads earlier layers only"
        )
    heads, x = _layer(model, layer), clean.streams[layer]
    parts = list(heads.queries_keys_values(_scaled(model, clean, layer, x)))
    changed = x + (output - clean.trace.outputs[early[0]][:, early[1]])
    at = READERS.index(reader)
    parts[at] = heads.queries_keys_values(_scaled(model, clean, layer, changed))[at]
    q, k, v = parts
    pattern = (q @ k.mT + heads.position_scores(x.shape[1])).softmax(-1)
    return [Act(p, o) for p, o in zip(pattern.unbind(1), (pattern @ v @ heads.W_O.mT).unbind(1), strict=True)]


def patch_edges(
    model: Transformer,
    clean: Recording,
    place: Place,
    outputs: Mapping[tuple[str, Place], Float[Tensor, "batch pos d_model"]],
) -> Act:
    """Compute what one head does if several of its edges read something else: docs/framework.md §5.9.

    ``outputs`` holds by reader (Q, K or V) and earlier head what that reader finds where the head wrote. Scales stay as
    they were, as in ``reading_otherwise``, of which this is the case of many edges into one head. Costs the layer's
    queries, keys and values once a reader. ValueError where an earlier head is not of an earlier layer.
    """
    (number, head), edges = place, list(outputs)
    if wrong := [edge for edge in edges if edge[1][0] >= number or edge[0] not in READERS]:
        raise ValueError(f"expected a reader of {READERS} and a head before layer {number}, got {wrong[0]}")
    heads, x = _layer(model, number), clean.streams[number]
    parts = list(heads.queries_keys_values(_scaled(model, clean, number, x)))
    for at, reader in enumerate(READERS):
        changes = [o - clean.trace.outputs[p[0]][:, p[1]] for (of, p), o in outputs.items() if of == reader]
        if changes:
            parts[at] = heads.queries_keys_values(_scaled(model, clean, number, x + sum(changes)))[at]
    parts = [part[:, head] for part in parts]
    q, k, v = parts
    scores = heads.position_scores(q.shape[1])
    pattern = (q @ k.mT + scores[head]).softmax(-1)
    return Act(pattern, pattern @ v @ heads.W_O[head].mT)


def attending(model: Transformer, clean: Recording, place: Place, pattern: Float[Tensor, "*batch query key"]) -> Act:
    """What would a head write if it attended by ``pattern``, one for every window or one a window? Costs
    batch · pos² · d_head."""
    (number, head), heads = place, _layer(model, place[0])
    v = heads.queries_keys_values(_scaled(model, clean, number, clean.streams[number]))[2][:, head]
    given = pattern.expand(len(v), -1, -1)
    return Act(given, given @ v @ heads.W_O[head].mT)


def order_by_order(model: Transformer, clean: Recording) -> list[Float[Tensor, "batch pos d_model"]]:
    """What is read at the end with the direct path, with all paths through one head at most, two at most, …?

    AMF's own procedure ("term importance"): patterns as they were, each head writing what it makes of the writes of one
    order less. Norms take the scale of what is there, so that without a norm this is the sum of ``paths.by_order`` up
    to each order, and with one it differs by scales alone. The last, of n_layers, is the model's. Costs n_layers runs.
    """
    reads, writes = [], [torch.zeros_like(clean.streams[0])] * len(model.layers)
    for _ in range(len(model.layers) + 1):
        x, after = clean.streams[0], []
        for number, write in enumerate(writes):
            layer = _layer(model, number)
            v = layer.queries_keys_values(model.normalise(x)[0])[2]
            after.append((clean.trace.patterns[number] @ v @ layer.W_O.mT).sum(1))
            x = x + write
        reads.append(model.normalise(x)[0])
        writes = after
    return reads


def _run(
    clean: Recording, acts: Acts, attend: Callable[[int, Tensor], Heads]
) -> tuple[Tensor, tuple[tuple[Tensor, ...], ...]]:
    """The stream after the last layer and all patterns; up to the first act, those of the clean run."""
    outputs = clean.trace.outputs
    places = {(layer, head) for layer, output in enumerate(outputs) for head in range(output.shape[1])}
    if unknown := sorted(set(acts) - places):
        raise ValueError(f"expected heads (layer, head) from (0, 0) to {max(places, default=None)}, got {unknown[0]}")
    first = min((layer for layer, _ in acts), default=len(outputs))
    x, patterns = clean.streams[first], [p.unbind(1) for p in clean.trace.patterns]
    for number in range(first, len(outputs)):
        if number == first:
            pattern, output, x = clean.trace.patterns[first], outputs[first], clean.streams[first + 1]
        else:
            pattern, output = attend(number, x)
            x = x + output.sum(1)
        here = {head: act for (layer, head), act in acts.items() if layer == number}
        for head, act in here.items():
            x = x + (act.output - output[:, head])
        patterns[number] = tuple(here[h].pattern if h in here else p for h, p in enumerate(pattern.unbind(1)))
    return x, tuple(patterns)


def _layer(model: Transformer, number: int) -> Attention:
    return cast(Attention, model.layers[number])


def _scaled(model: Transformer, clean: Recording, number: int, x: Tensor) -> Tensor:
    """What layer ``number`` (−1: the unembedding) reads of a stream, at the scale it had in the clean run."""
    if model.config.norm == "layer":
        x = x - x.mean(-1, keepdim=True)
    return x * clean.trace.scales[number][..., None]
