"""An attention-only transformer with any number of layers, and its trace for analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pathsum.config import ModelConfig
from pathsum.core.weights import Head, Weights
from pathsum.model.attention import Attention
from pathsum.model.fast.norm import rms_normalised
from pathsum.model.positions import scheme

CLAMPED = 1e4  # nats: no other key receives attention, and no score a gradient


@dataclass(frozen=True)
class Trace:
    """Everything that the path expansion freezes, and the logits that its paths add up to."""

    logits: Float[Tensor, "batch pos vocab"]
    patterns: tuple[Float[Tensor, "batch head query key"], ...]  # one per layer
    outputs: tuple[Float[Tensor, "batch head pos d_model"], ...]  # what each head writes
    scales: tuple[Float[Tensor, "batch pos"], ...]  # the norm's factor at each layer's input, and last at W_U's


class Transformer(nn.Module):
    """Token embedding, ``n_layers`` of heads that add to the residual stream, unembedding (docs/framework.md §1.2).

    The norm has no learned gain, because the matrices that follow it would absorb one. ``layer`` differs from ``rms``
    by centering, which ``weights()`` folds into the reading matrices.
    """

    def __init__(self, config: ModelConfig, d_vocab: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        d_model = config.d_model
        # stored token-major, so that a token's vector is contiguous; W_E itself is d_model × d_vocab as in the paper
        embedding = torch.randn(d_vocab, d_model, generator=generator) * config.embedding_std
        self.W_E = nn.Parameter(embedding.mT)
        self.W_U = nn.Parameter(torch.randn(d_vocab, d_model, generator=generator) / d_model)
        layer = scheme(config)
        self.layers = nn.ModuleList(layer(config, generator) for _ in range(config.n_layers))
        if config.clamp == "previous_token":
            with torch.no_grad():
                self.layers[0].bias[0, 1] = CLAMPED  # type: ignore[operator]

    def attention(self, layer: int) -> Attention:
        """Return the heads of a layer."""
        return cast(Attention, self.layers[layer])

    def forward(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos vocab"]:
        """Compute the next-token logits, in nats up to a constant, by the fast path for training and evaluation."""
        return F.linear(self.read(tokens), self.W_U)

    def read(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        """Return what the unembedding reads: the final residual stream, normalized."""
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(self._normalised(x))
        return self._normalised(x)

    def trace(self, tokens: Int[Tensor, "batch pos"]) -> Trace:
        """Compute the logits with every pattern, head output and norm scale; equal to ``forward`` up to rounding."""
        x, patterns, outputs, scales = self.embed(tokens), [], [], []
        for layer in range(len(self.layers)):
            read, scale = self.normalise(x)
            pattern, output = self.attention(layer).heads(read)
            x = x + output.sum(1)
            patterns.append(pattern)
            outputs.append(output)
            scales.append(scale)
        read, scale = self.normalise(x)
        return Trace(F.linear(read, self.W_U), tuple(patterns), tuple(outputs), (*scales, scale))

    def embed(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        """Return x_0 = W_E t. Raises ValueError if a window is longer than the context."""
        if tokens.shape[1] > self.config.n_ctx:
            raise ValueError(
                f"expected windows of at most n_ctx = {self.config.n_ctx} tokens, got {tokens.shape[1]}; cut them, "
                "or train with a longer context"
            )
        return F.embedding(tokens, self.W_E.mT)

    def weights(self) -> Weights:
        """Copy the weights for ``pathsum.circuits``, with the norm's centering folded into the reading matrices."""

        def read(matrix: Tensor) -> Tensor:
            return self.centred(matrix).detach().clone()

        layers = tuple(
            tuple(
                Head(read(q), read(k), read(v), o.detach().clone())
                for q, k, v, o in zip(layer.W_Q, layer.W_K, layer.W_V, layer.W_O, strict=True)  # type: ignore[arg-type]
            )
            for layer in self.layers
        )
        return Weights(self.W_E.detach().clone(), read(self.W_U), layers)

    def normalise(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return what a layer reads of the residual stream, and the factor by which the norm scales it."""
        if self.config.norm == "none":
            return x, x.new_ones(x.shape[:-1])
        x = self.centred(x)
        scale = (x.pow(2).mean(-1) + torch.finfo(x.dtype).eps).rsqrt()
        return x * scale[..., None], scale

    def centred(self, x: Float[Tensor, "*rest d_model"]) -> Float[Tensor, "*rest d_model"]:
        """Subtract the mean over coordinates if the norm does so."""
        return x - x.mean(-1, keepdim=True) if self.config.norm == "layer" else x

    def rescale(
        self, x: Float[Tensor, "batch pos d_model"], scale: Float[Tensor, "batch pos"]
    ) -> Float[Tensor, "batch pos d_model"]:
        """Return what a layer reads of a residual stream when the norm's ``scale`` is frozen."""
        return self.centred(x) * scale[..., None]

    def _normalised(self, x: Tensor) -> Tensor:
        """Return the first result of ``normalise`` by the fast path."""
        return x if self.config.norm == "none" else rms_normalised(self.centred(x))
