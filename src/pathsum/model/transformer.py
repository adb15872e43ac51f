"""An attention-only transformer with any number of layers, and the trace of a run."""

from dataclasses import dataclass
from functools import cached_property
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

CLAMPED = 1e4  # nats; no other key receives attention, and the scores receive no gradient


@dataclass(frozen=True)
class Trace:
    """The head outputs and logits of a run, with the patterns and norm scales that the path expansion freezes
    (docs/framework.md §2.1). Logits are computed on first access."""

    streams: tuple[Float[Tensor, "batch pos d_model"], ...]  # the residual stream before each layer and after the last
    read: Float[Tensor, "batch pos d_model"]  # the normalized final residual stream
    W_U: Float[Tensor, "vocab d_model"]
    patterns: tuple[Float[Tensor, "batch head query key"], ...]  # one per layer
    outputs: tuple[Float[Tensor, "batch head pos d_model"], ...]  # the write of each head
    scales: tuple[Float[Tensor, "batch pos"], ...]  # norm scale before each layer, then before the unembedding
    b_U: Float[Tensor, "vocab"] | None = None

    @cached_property
    def logits(self) -> Float[Tensor, "batch pos vocab"]:
        return F.linear(self.read, self.W_U, self.b_U)


class Transformer(nn.Module):
    """An attention-only transformer: embedding, ``n_layers`` layers of heads, unembedding (docs/framework.md §1.2).

    Norms have no learned gain, because the matrices that follow could absorb it. The norm ``layer`` subtracts the mean
    over coordinates and then does what ``rms`` does. Initial weights are sampled with ``generator``. Raises ValueError
    if ``config.positions`` is not a position scheme, or if the scheme does not support ``config``.
    """

    eps: float | None = None  # of the norm; by default that of the data type
    b_U: Tensor | None  # added to the logits; only models from elsewhere have one

    def __init__(self, config: ModelConfig, d_vocab: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        d_model = config.d_model
        # stored token-major, so that a token's vector is contiguous; W_E itself is d_model × d_vocab as in the paper
        embedding = torch.randn(d_vocab, d_model, generator=generator) * config.embedding_std
        self.W_E = nn.Parameter(embedding.mT)
        self.W_U = nn.Parameter(torch.randn(d_vocab, d_model, generator=generator) / d_model)
        self.register_buffer("b_U", None)
        layer = scheme(config)
        self.layers = nn.ModuleList(layer(config, generator) for _ in range(config.n_layers))
        if config.clamp == "previous_token":
            with torch.no_grad():
                self.layers[0].bias[0, 1] = CLAMPED  # type: ignore[operator]

    def attention(self, layer: int) -> Attention:
        """Return the heads of layer ``layer``."""
        return cast(Attention, self.layers[layer])

    @property
    def n_ctx(self) -> int:
        return self.config.n_ctx

    def joined(self, x: Float[Tensor, "batch pos d_model"], layer: int) -> Float[Tensor, "batch pos d_model"]:
        """Add what joins the residual stream before ``layer`` (n_layers: before the unembedding) besides embeddings
        and heads: nothing, except in models from elsewhere."""
        return x

    def constants(self, pos: int) -> list[Float[Tensor, "#pos d_model"]] | None:
        """Return the constants from which paths begin besides tokens: what joins the residual stream before each layer
        and before the unembedding, and value biases, since the rows of a pattern add up to 1. None if there are none.
        """
        return None

    def forward(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos vocab"]:
        """Return the next-token logits, in nats, by the fast path for training and evaluation."""
        return F.linear(self.read(tokens), self.W_U, self.b_U)

    def read(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        """Return the final residual stream after the norm, which the unembedding reads."""
        x = self.embed(tokens)
        for i, layer in enumerate(self.layers, 1):
            x = self.joined(x + layer(self._normalised(x)), i)
        return self._normalised(x)

    def trace(self, tokens: Int[Tensor, "batch pos"]) -> Trace:
        """Return the logits (those of ``forward`` up to rounding), patterns, head outputs and norm scales of a run.
        Stores batch · heads · pos · (pos + d_model) numbers per layer."""
        x, patterns, outputs, scales = self.embed(tokens), [], [], []
        streams = [x]
        for layer in range(len(self.layers)):
            read, scale = self.normalise(x)
            pattern, output = self.attention(layer).heads(read)
            x = self.joined(x + output.sum(1), layer + 1)
            streams.append(x)
            patterns.append(pattern)
            outputs.append(output)
            scales.append(scale)
        read, scale = self.normalise(x)
        return Trace(tuple(streams), read, self.W_U, tuple(patterns), tuple(outputs), (*scales, scale), self.b_U)

    def embed(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_model"]:
        """Return the embeddings x_0 = W_E t, with what joins them. ValueError if a window is longer than n_ctx."""
        if tokens.shape[1] > self.config.n_ctx:
            raise ValueError(f"expected windows of at most n_ctx = {self.config.n_ctx} tokens, got {tokens.shape[1]}")
        return self.joined(F.embedding(tokens, self.W_E.mT), 0)

    def weights(self) -> Weights:
        """Return a copy of the weights, with the centering of the norm folded into W_Q, W_K, W_V and W_U
        (docs/framework.md §1.4)."""

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
        """Return the normalized residual stream, which a layer reads, and the norm scale at each position; 1 without a
        norm."""
        if self.config.norm == "none":
            return x, x.new_ones(x.shape[:-1])
        x = self.centred(x)
        scale = (x.pow(2).mean(-1) + (self.eps or torch.finfo(x.dtype).eps)).rsqrt()
        return x * scale[..., None], scale

    def centred(self, x: Float[Tensor, "*rest d_model"]) -> Float[Tensor, "*rest d_model"]:
        """Subtract the mean over coordinates if the norm is ``layer``; otherwise return ``x``."""
        return x - x.mean(-1, keepdim=True) if self.config.norm == "layer" else x

    def rescale(
        self, x: Float[Tensor, "batch pos d_model"], scale: Float[Tensor, "batch pos"]
    ) -> Float[Tensor, "batch pos d_model"]:
        """Normalize a residual stream with the frozen norm scale ``scale``."""
        return self.centred(x) * scale[..., None]

    def _normalised(self, x: Tensor) -> Tensor:
        """Return the normalized residual stream, as ``normalise`` does, by the fast path."""
        return x if self.config.norm == "none" else rms_normalised(self.centred(x))
