"""Models that were trained elsewhere: biases, norms with gains, and positions of other kinds.

Gains are folded into the matrices that follow them. Everything else that a model of this project lacks is a constant,
so the path expansion stays exact (docs/framework.md §2.9): logits = paths of tokens + paths of constants + b_U.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pathsum.config import ModelConfig
from pathsum.core.weights import Head, Weights
from pathsum.model.attention import Attention
from pathsum.model.positions import Relative, Rotary, Sinusoidal
from pathsum.model.transformer import Transformer

EPS = torch.finfo(torch.float32).eps  # of norms without one of their own


@dataclass(frozen=True)
class Rotation:
    """Rotary positions (Su et al. 2021). They rotate the first ``wave`` coordinates of queries and keys."""

    cos: Float[Tensor, "pos wave"]
    sin: Float[Tensor, "pos wave"]
    adjacent: bool  # pairs of coordinates: (0, 1), (2, 3), …; if false, (0, wave / 2), (1, wave / 2 + 1), …


@dataclass(frozen=True)
class Constants:
    """What the heads of a layer add to what they compute from the residual stream, and the layer to their sum."""

    queries: Float[Tensor, "head n d_head"]  # n: one for each position, or one for all; before rotation
    keys: Float[Tensor, "head n d_head"]
    values: Float[Tensor, "head 1 d_head"]
    output: Float[Tensor, "d_model"]  # b_O
    scores: Float[Tensor, "head distance"] | None = None  # by distance query − key, in nats


class Opened(Transformer):
    """An attention-only model from a file. Its parameters are in the precision of ``weights``, without gradients.

    ``weights`` have the gains of norms folded in (``circuits.folding.fold_gains``). ``kind`` names its positions. A
    head's write includes its value bias, so a zero-ablated head loses b_V, and b_O stays."""

    b_U: Tensor

    def __init__(
        self,
        weights: Weights,
        constants: Sequence[Constants],
        positions: Float[Tensor, "n d_model"],
        b_U: Float[Tensor, "vocab"],
        norm: Literal["none", "rms", "layer"],
        eps: float,
        n_ctx: int,
        kind: str,
        rotation: Rotation | None = None,
    ) -> None:
        nn.Module.__init__(self)
        first = weights.layers[0] if weights.layers else ()
        self.config = ModelConfig.model_construct(  # unlike models of this project, with a context of any length
            n_layers=len(weights.layers), n_heads=len(first), d_head=len(first[0].W_Q) if first else 0, n_ctx=n_ctx,
            d_model=len(weights.W_E), embedding_std=1.0, positions=kind, norm=norm, smeared_keys=False,
        )  # fmt: skip
        self.eps = eps
        self.W_E, self.W_U = nn.Parameter(weights.W_E), nn.Parameter(weights.W_U)
        self.layers = nn.ModuleList(
            OpenedAttention(Weights(weights.W_E, weights.W_U, (heads,)), added, rotation)
            for heads, added in zip(weights.layers, constants, strict=True)
        )
        joining = [positions, *(added.output[None] for added in constants)]
        self.joining = nn.ParameterList(nn.Parameter(vectors) for vectors in joining)  # before each layer and W_U
        self.register_buffer("b_U", b_U)
        self.eval().requires_grad_(False)

    def about(self) -> dict[str, Any]:
        """Return what ``reference.Model`` needs besides the tensors."""
        adjacent = any(cast(OpenedAttention, layer).adjacent for layer in self.layers)
        return {"norm": self.config.norm, "eps": self.eps, "adjacent": adjacent}

    def joined(self, x: Float[Tensor, "batch pos d_model"], layer: int) -> Float[Tensor, "batch pos d_model"]:
        return x + self.joining[layer][: x.shape[1]]

    def constants(self, pos: int) -> list[Float[Tensor, "#pos d_model"]] | None:
        found = [self.joining[0][:pos]]
        for layer, b_O in zip(self.layers, self.joining[1:], strict=True):
            found.append(b_O + (layer.W_O @ layer.b_V.mT).sum(0).mT)  # type: ignore[operator]
        return found if any(vectors.any() for vectors in found) else None

    def _normalised(self, x: Tensor) -> Tensor:
        return self.normalise(x)[0]


class OpenedAttention(Attention):
    """The heads of a layer of an ``Opened`` model."""

    b_Q: Tensor
    b_K: Tensor
    b_V: Tensor
    bias: Tensor
    cos: Tensor
    sin: Tensor

    def __init__(self, weights: Weights, added: Constants, rotation: Rotation | None) -> None:
        nn.Module.__init__(self)
        (heads,) = weights.layers
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            self.register_parameter(name, nn.Parameter(torch.stack([getattr(head, name) for head in heads])))
        self.register_parameter("smear", None)
        bias = weights.W_E.new_zeros(len(heads), 1) if added.scores is None else added.scores
        constants = {"b_Q": added.queries, "b_K": added.keys, "b_V": added.values, "bias": bias}
        for name, constant in constants.items():
            self.register_buffer(name, constant)
        turn = rotation or Rotation(weights.W_E.new_ones(1, 0), weights.W_E.new_ones(1, 0), False)
        self.register_buffer("cos", turn.cos)
        self.register_buffer("sin", turn.sin)
        self.adjacent = turn.adjacent
        self.bilinear = rotation is None

    def position_bias(self, pos: int) -> Float[Tensor, "head distance"]:
        return self.bias[:, :pos].expand(-1, pos)

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Float[Tensor, "batch head pos d_head"]:
        return F.scaled_dot_product_attention(q, k, v, self.position_scores(q.shape[2]), scale=1.0)

    def queries(self, x: Tensor, at: slice = slice(None)) -> Float[Tensor, "batch head pos d_head"]:
        return self.turned(super().queries(x, at) + self.b_Q[at, : x.shape[1]] * self.W_Q.shape[1] ** -0.5)

    def keys(self, x: Tensor, at: slice = slice(None)) -> Float[Tensor, "batch head pos d_head"]:
        return self.turned(super().keys(x, at) + self.b_K[at, : x.shape[1]])

    def values(self, x: Tensor, at: slice = slice(None)) -> Float[Tensor, "batch head pos d_head"]:
        return super().values(x, at) + self.b_V[at]

    def turned(self, x: Float[Tensor, "batch head pos d_head"]) -> Float[Tensor, "batch head pos d_head"]:
        """Rotate queries or keys, biases included, by their positions."""
        (pos, d_head), wave = x.shape[2:], self.cos.shape[1]
        if not wave:
            return x
        rotated, still = x.split([wave, d_head - wave], -1)
        if self.adjacent:
            across = torch.stack([-rotated[..., 1::2], rotated[..., ::2]], -1).flatten(-2)
        else:
            across = torch.cat([-rotated[..., wave // 2 :], rotated[..., : wave // 2]], -1)
        return torch.cat([rotated * self.cos[:pos] + across * self.sin[:pos], still], -1)


def generalised(net: Transformer) -> Opened:
    """Return a model of this project as one with constants, biases and tables of positions."""
    if isinstance(net, Opened):
        return net
    nothing, layers, added = net.W_E.new_zeros(1), [], []
    rotation = None
    for layer in range(len(net.layers)):
        heads = net.attention(layer)
        layers.append(tuple(map(Head, heads.W_Q, heads.W_K, heads.W_V, heads.W_O)))
        places = heads.position_vectors(net.n_ctx).sum(0)[None]
        none = nothing.expand(len(heads.W_Q), 1, heads.W_Q.shape[1])
        q, k = (places @ W.mT if isinstance(heads, Sinusoidal) else none for W in (heads.W_Q, heads.W_K))
        bias = heads.bias if isinstance(heads, Relative) else None
        added.append(Constants(q, k, none, nothing.expand(len(net.W_E)), bias))
        if isinstance(heads, Rotary):
            cos, sin = heads.waves.to(net.W_E.dtype).chunk(2, -1)
            rotation = Rotation(cos.repeat(1, 2), sin.repeat(1, 2), adjacent=False)
    weights, b_U = Weights(net.W_E, net.W_U, tuple(layers)), nothing.expand(len(net.W_U))
    norm, positions = net.config.norm, nothing.expand(1, len(net.W_E))
    sizes = (net.eps or EPS, net.n_ctx, net.config.positions)
    return Opened(weights, added, positions, b_U, norm, *sizes, rotation)


def turned(heads: Attention, x: Float[Tensor, "batch head pos d_head"]) -> Float[Tensor, "batch head pos d_head"]:
    """Rotate queries or keys of a layer, biases included, by their positions."""
    return heads.turned(x) if isinstance(heads, OpenedAttention) else heads.rotate(x)


def biases(heads: Attention, head: int, pos: int) -> tuple[Float[Tensor, "n d_head"], Float[Tensor, "m d_head"]] | None:
    """Return the biases of the queries of a head, scaled as they are, and of its keys, before rotation; n and m are 1
    or ``pos``. None without any."""
    if not isinstance(heads, OpenedAttention):
        return None
    queries, keys = heads.b_Q[head, :pos] * heads.W_Q.shape[1] ** -0.5, heads.b_K[head, :pos]
    return (queries, keys) if queries.any() or keys.any() else None


def converted(model: Transformer, dtype: torch.dtype) -> Transformer:
    """Return the same model in another precision, and leave ``model`` unchanged."""
    return copy.deepcopy(model).to(dtype)


def only(model: Transformer, ids: Int[Tensor, "n"]) -> Transformer:
    """Return the same model with only ``ids`` as its vocabulary, renumbered from 0 (docs/framework.md §2.9)."""
    changed = copy.deepcopy(model)
    changed.W_E = nn.Parameter(model.W_E.mT[ids].mT, requires_grad=False)  # token-major, as in ``Transformer``
    changed.W_U = nn.Parameter(model.W_U[ids], requires_grad=False)
    if model.b_U is not None:
        changed.register_buffer("b_U", model.b_U[ids])
    return changed
