"""Path expansion: write the logits as a sum over paths through the heads (docs/framework.md §2.1).

Attention patterns and norm scales are frozen. A path is a tuple of heads, at most one per layer, earliest first; ``()``
is the direct path. No path is a difference of residual streams, so the sum is an independent check of the logits.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.precision import finite
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights

Path = tuple[tuple[int, int], ...]  # (layer, head), earliest first
Patterns = Sequence[Float[Tensor, "batch head query key"]]  # one per layer
Scales = Sequence[Float[Tensor, "batch pos"]]  # norm scale at each position: one per layer, then the final norm's
Joining = Sequence[Float[Tensor, "#pos d_model"]]  # constants that join the stream before each layer and W_U (§2.9)


def all_paths(weights: Weights) -> list[Path]:
    """List all paths from tokens to logits, sorted by order (the number of heads), then by layer and head.

    With H_l heads in layer l, there are Π_l (1 + H_l)."""
    steps = [[(), *(((layer, h),) for h in range(len(heads)))] for layer, heads in enumerate(weights.layers)]
    paths: list[Path] = [tuple(step for choice in choices for step in choice) for choices in product(*steps)]
    return sorted(paths, key=lambda path: (len(path), path))


def path_name(path: Path) -> str:
    """Return the name of a path: ``direct``, or its heads, such as ``L0H3→L1H2``."""
    return "→".join(f"L{layer}H{head}" for layer, head in path) or "direct"


def moved(
    path: Path, patterns: Patterns, scales: Scales, x: Float[Tensor, "batch pos d"]
) -> Float[Tensor, "batch pos d"]:
    """Move vectors along a path: apply its pattern s_L A^{h_n} s_{l_n} ⋯ A^{h_1} s_{l_1} to ``x``.

    Scales act as diagonal matrices, and s_L is the last of ``scales``. See docs/framework.md §2.1."""
    readers = [layer for layer, _ in path] + [-1]  # layers whose norm scales enter, in order; −1 is the final norm
    x = scales[readers[0]].unsqueeze(-1) * x
    for (layer, head), reader in zip(path, readers[1:], strict=True):
        x = scales[reader].unsqueeze(-1) * (patterns[layer][:, head] @ x)
    return x


def path_circuit(weights: Weights, path: Path) -> LowRank:
    """Return the circuit of a path, W_U W_OV^{h_n} ⋯ W_OV^{h_1} W_E, with later heads on the left.

    The entries are logits before any norm scale (``moved`` applies those), output × source, as low-rank factors. See
    docs/framework.md §2.1."""
    return path_W_OV(weights, path).after(weights.W_E).then(weights.W_U) if path else LowRank(weights.W_U, weights.W_E)


def path_W_OV(weights: Weights, path: Path) -> LowRank:
    """Return W_OV^{h_n} ⋯ W_OV^{h_1}, the OV circuit of the virtual head that the heads of a path make (§2.1)."""
    return reduce(lambda first, later: later.after(first), (weights.layers[at][head].W_OV for at, head in path))


def path_logits(
    weights: Weights, path: Path, tokens: Int[Tensor, "batch pos"], patterns: Patterns, scales: Scales
) -> Float[Tensor, "batch pos vocab"]:
    """Return what one path adds to the logits: its pattern ⊗ its circuit, applied to the tokens. ValueError as in
    ``check_frozen``."""
    return path_sum(weights, tokens, patterns, scales, [path])


def path_sum(
    weights: Weights,
    tokens: Int[Tensor, "batch pos"],
    patterns: Patterns,
    scales: Scales,
    paths: Sequence[Path] | None = None,
) -> Float[Tensor, "batch pos vocab"]:
    """Return the summed logits of ``paths``; by default of all paths, whose sum is the model's logits. Zeros for no
    paths. ValueError as in ``check_frozen``."""
    check_frozen(weights, patterns, scales)
    total = weights.W_E.new_zeros(*tokens.shape, len(weights.W_E))
    for path in all_paths(weights) if paths is None else paths:
        total += path_read(weights, path, tokens, patterns, scales)
    return total @ weights.W_U.mT


def path_read(
    weights: Weights, path: Path, tokens: Int[Tensor, "batch pos"], patterns: Patterns, scales: Scales
) -> Float[Tensor, "batch pos d_model"]:
    """Return what one path adds to the normalized residual stream that the last of ``scales`` belongs to: its pattern ⊗
    W_OV^{h_n} ⋯ W_OV^{h_1} W_E, applied to the tokens."""
    x = weights.W_E.mT[tokens]
    if not path:
        return moved(path, patterns, scales, x)
    W_OV = path_W_OV(weights, path)
    return moved(path, patterns, scales, x @ W_OV.right.mT) @ W_OV.left.mT


def by_order(
    weights: Weights, tokens: Int[Tensor, "batch pos"], patterns: Patterns, scales: Scales
) -> list[Float[Tensor, "batch pos vocab"]]:
    """Return the summed logits of all paths of each order 0, …, n_layers.

    Order 0 is the direct path, order 1 the single heads, and higher orders are virtual heads. Layer by layer, so that
    the cost does not grow with the number of paths. Errors as in ``check_frozen``."""
    check_frozen(weights, patterns, scales)
    orders = [weights.W_E.mT[tokens]]  # the residual stream by order
    for heads, pattern, scale in zip(weights.layers, patterns, scales[:-1], strict=True):
        written = [write(heads, pattern, scale.unsqueeze(-1) * x) for x in orders]
        orders = [orders[0], *(x + y for x, y in zip(orders[1:], written[:-1], strict=True)), written[-1]]
    return [scales[-1].unsqueeze(-1) * x @ weights.W_U.mT for x in orders]


def constant_reads(
    weights: Weights, joining: Joining, patterns: Patterns, scales: Scales
) -> list[Float[Tensor, "batch pos d_model"]]:
    """Return what each layer and the unembedding read of the constants ``joining`` alone: the sum of all paths that
    begin at one of them (docs/framework.md §2.9). Errors as in ``check_frozen``."""
    check_frozen(weights, patterns, scales)
    x, reads = joining[0].expand(*scales[0].shape, -1), []
    for layer, (heads, pattern) in enumerate(zip(weights.layers, patterns, strict=True)):
        reads.append(scales[layer].unsqueeze(-1) * x)
        x = x + write(heads, pattern, reads[-1]) + joining[layer + 1]
    return [*reads, scales[-1].unsqueeze(-1) * x]


def write(
    heads: Sequence[Head], pattern: Float[Tensor, "batch head query key"], read: Float[Tensor, "batch pos d_model"]
) -> Float[Tensor, "batch pos d_model"]:
    """Return what the heads of a layer write together under the given ``pattern``, Σ_h A^h x (W_OV^h)ᵀ with
    x = ``read``."""
    W_V, W_O = torch.stack([h.W_V for h in heads]), torch.cat([h.W_O for h in heads], -1)
    mixed = pattern @ (read.unsqueeze(1) @ W_V.mT)
    return mixed.transpose(1, 2).flatten(2) @ W_O.mT


def exactness(paths: Float[Tensor, "*shape"], logits: Float[Tensor, "*shape"]) -> float:
    """Return the relative error of the path expansion, max |paths − logits| / max |logits| (docs/framework.md §2.2).

    In float64 it should be below 1e-10. If all logits are zero, it is 0 if the sum of paths is zero too, and infinity
    otherwise. ValueError for NaN or infinity."""
    paths, logits = finite(paths, "sums of paths"), finite(logits, "logits")
    error, scale = (paths - logits).abs().max().item(), logits.abs().max().item()
    if scale == 0:
        return 0.0 if error == 0 else float("inf")
    return error / scale


def check_frozen(weights: Weights, patterns: Patterns, scales: Scales) -> None:
    """Raise ValueError unless there is one pattern per layer, with as many heads as the layer, and one scale per layer
    and one of the final norm."""
    n_layers = len(weights.layers)
    if len(patterns) != n_layers or len(scales) != n_layers + 1:
        raise ValueError(
            f"expected {n_layers} patterns, one per layer, and {n_layers + 1} scales, one per layer and one of the "
            f"final norm; got {len(patterns)} and {len(scales)}. Without a norm, pass scales of ones."
        )
    for layer, (heads, pattern) in enumerate(zip(weights.layers, patterns, strict=True)):
        if pattern.shape[1] != len(heads):
            raise ValueError(
                f"layer {layer} has {len(heads)} heads, but its pattern has {pattern.shape[1]}; "
                "take both from one model"
            )
