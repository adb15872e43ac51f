"""Attention-only models from files: checkpoints of this project, and others with other positions, norms and biases.

What enters the residual stream in addition to tokens (``Extra``) is a second vocabulary, so the path expansion stays
exact (docs/framework.md §2.9): logits = paths of the tokens + paths of each extra + b_U.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pathsum.circuits.paths import path_sum
from pathsum.core.weights import Weights
from pathsum.model.transformer import Trace, Transformer
from pathsum.text.bos import BOS


class CheckpointModel(Transformer):
    """A model that is loaded from a checkpoint of this project. It shares the weights, without gradients."""

    def __init__(self, model: Transformer) -> None:
        super().__init__(model.config, len(model.W_U), torch.Generator())
        self.load_state_dict(model.state_dict(), assign=True)
        self.eval().requires_grad_(False)

    @property
    def n_ctx(self) -> int:
        return self.config.n_ctx

    def to(self, dtype: torch.dtype) -> CheckpointModel:  # type: ignore[override]
        """Return the same model in another precision, and leave this one unchanged."""
        return Transformer.to(copy.deepcopy(self), dtype)

    def only(self, ids: Int[Tensor, "n"]) -> CheckpointModel:
        """Return the model. ValueError unless ``ids`` are all ids in their order."""
        if not torch.equal(ids, every := torch.arange(len(self.W_U))):
            raise ValueError(f"TOKENIZER: expected the {len(every)} ids of the checkpoint in order, got {len(ids)} ids")
        return self

    def extra_logits(self, weights: Weights, kept: Int[Tensor, "n"], tokens: Tensor, trace: Trace) -> Tensor:
        """Return zeros, because every path begins at a token."""
        return weights.W_U.new_zeros(len(kept))


@dataclass(frozen=True)
class Extra:
    """Constant vectors in the residual stream: one for each position, or one for all positions."""

    layer: int  # first layer that reads it; n_layers if only the unembedding does
    vectors: Float[Tensor, "d_model pos"]


@dataclass(frozen=True)
class Rotation:
    """Rotary positions (Su et al. 2021). They rotate the first ``wave`` coordinates of queries and keys."""

    cos: Float[Tensor, "pos wave"]
    sin: Float[Tensor, "pos wave"]
    adjacent: bool  # pairs of coordinates: (0, 1), (2, 3), …; if false, (0, wave / 2), (1, wave / 2 + 1), …

    def rotate(self, x: Float[Tensor, "batch head pos d_head"]) -> Float[Tensor, "batch head pos d_head"]:
        pos, wave = x.shape[2], self.cos.shape[1]
        rotated, still = x[..., :wave], x[..., wave:]
        if self.adjacent:
            across = torch.stack([-rotated[..., 1::2], rotated[..., ::2]], -1).flatten(-2)
        else:
            across = torch.cat([-rotated[..., wave // 2 :], rotated[..., : wave // 2]], -1)
        return torch.cat([rotated * self.cos[:pos] + across * self.sin[:pos], still], -1)

    def to(self, dtype: torch.dtype) -> Rotation:
        return Rotation(self.cos.to(dtype), self.sin.to(dtype), self.adjacent)


@dataclass(frozen=True)
class TransformerLensModel:
    """A model with weights of TransformerLens: folded weights (``circuits.folding``), and what they do not contain."""

    folded: Weights
    queries: tuple[Float[Tensor, "head pos d_head"], ...]  # added to each layer's queries: biases and positions
    keys: tuple[Float[Tensor, "head pos d_head"], ...]  # added to each layer's keys
    extras: tuple[Extra, ...]
    b_U: Float[Tensor, "vocab"]
    norm: Literal["none", "rms", "layer"]
    eps: float  # of the norm
    n_ctx: int
    rotation: Rotation | None

    def trace(self, tokens: Int[Tensor, "batch pos"]) -> Trace:
        """Return the logits, equal to TransformerLens's up to rounding, with every pattern, output and norm scale."""
        if (pos := tokens.shape[1]) > self.n_ctx:
            raise ValueError(f"expected windows of at most n_ctx = {self.n_ctx} tokens, got {pos}")
        x = self.folded.W_E.mT[tokens]
        patterns, outputs, scales = tuple[Tensor, ...](), tuple[Tensor, ...](), tuple[Tensor, ...]()
        future = torch.ones(pos, pos, dtype=torch.bool).triu(1)
        for layer, heads in enumerate(self.folded.layers):
            read, scale = self.normalise(x + self._extra(layer, pos))
            q = torch.stack([read @ h.W_Q.mT for h in heads], 1) + self.queries[layer][:, :pos]
            k = torch.stack([read @ h.W_K.mT for h in heads], 1) + self.keys[layer][:, :pos]
            v = torch.stack([read @ h.W_V.mT for h in heads], 1)
            if self.rotation is not None:
                q, k = self.rotation.rotate(q), self.rotation.rotate(k)
            pattern = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf).softmax(-1)
            output = pattern @ v @ torch.stack([h.W_O.mT for h in heads])
            x = x + output.sum(1)
            patterns, outputs, scales = (*patterns, pattern), (*outputs, output), (*scales, scale)
        read, scale = self.normalise(x + self._extra(len(self.folded.layers), pos))
        return Trace(read, self.folded.W_U, patterns, outputs, (*scales, scale), self.b_U)

    def weights(self) -> Weights:
        """Return the heads, the embedding and the unembedding, with norms folded in."""
        return self.folded

    def normalise(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the residual stream normalized without gain, and the norm scale at each position."""
        if self.norm == "none":
            return x, x.new_ones(x.shape[:-1])
        if self.norm == "layer":
            x = x - x.mean(-1, keepdim=True)
        scale = (x.square().mean(-1) + self.eps).rsqrt()
        return x * scale[..., None], scale

    def to(self, dtype: torch.dtype) -> TransformerLensModel:
        """Return the same model in another precision."""
        queries, keys = (tuple(added.to(dtype) for added in part) for part in (self.queries, self.keys))
        extras = tuple(Extra(e.layer, e.vectors.to(dtype)) for e in self.extras)
        turn, folded, b_U = self.rotation and self.rotation.to(dtype), self.folded.to(dtype), self.b_U.to(dtype)
        return replace(self, folded=folded, queries=queries, keys=keys, extras=extras, b_U=b_U, rotation=turn)

    def only(self, ids: Int[Tensor, "n"]) -> TransformerLensModel:
        """Return the same model with only ``ids`` as its vocabulary, renumbered from 0 (docs/framework.md §2.9)."""
        w = self.folded
        return replace(self, folded=Weights(w.W_E[:, ids], w.W_U[ids], w.layers), b_U=self.b_U[ids])

    def extra_logits(self, weights: Weights, kept: Int[Tensor, "n"], tokens: Tensor, trace: Trace) -> Tensor:
        """Return the logits of the output tokens ``kept`` that are due to b_U and to all paths from extras."""
        return sum((extra_paths(extra, weights, tokens, trace) for extra in self.extras), self.b_U[kept])

    def _extra(self, layer: int, pos: int) -> Tensor:
        return sum((e.vectors[:, :pos].mT for e in self.extras if e.layer <= layer), torch.zeros_like(self.b_U[:1]))


def extra_paths(extra: Extra, weights: Weights, tokens: Tensor, trace: Trace) -> Float[Tensor, "batch pos vocab"]:
    """Return the summed logits of all paths from an extra, for the output tokens of ``weights``."""
    n_vectors, n_out = extra.vectors.shape[1], len(weights.W_U)
    size = max(n_vectors, n_out)  # Weights need as many input tokens as output tokens
    W_E, W_U = pad(extra.vectors, (0, size - n_vectors)), pad(weights.W_U, (0, 0, 0, size - n_out))
    alphabet = Weights(W_E, W_U, weights.layers[extra.layer :])
    letters = (torch.arange(tokens.shape[1]) % n_vectors).expand_as(tokens)
    return path_sum(alphabet, letters, trace.patterns[extra.layer :], trace.scales[extra.layer :])[..., :n_out]


Imported = CheckpointModel | TransformerLensModel  # a model from a file, as ``open_weights`` returns it


def bos_first(model: Imported, bos: int) -> Imported:
    """Return the same model with the ids 0 (BOS here) and ``bos`` exchanged. ValueError for a checkpoint of this
    project unless ``bos`` is 0."""
    order = torch.arange(len(model.weights().W_U))
    order[[BOS, bos]] = order[[bos, BOS]]
    return model.only(order)
