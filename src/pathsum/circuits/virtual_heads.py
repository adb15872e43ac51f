"""Virtual heads: two heads in succession act as one (docs/framework.md §2.8)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.importance import window_losses
from pathsum.circuits.paths import Path, Patterns, Scales, path_logits
from pathsum.core.weights import Weights


def virtual_patterns(
    early: Float[Tensor, "batch early query key"], late: Float[Tensor, "batch query key"]
) -> Float[Tensor, "batch early query key"]:
    """Return the pattern A^{h2} A^{h1} of each virtual head that a ``late`` head forms with the ``early`` heads. Rows
    sum to 1."""
    return torch.matmul(late.unsqueeze(1), early)


def removal_costs(
    weights: Weights,
    paths: Sequence[Path],
    windows: Int[Tensor, "batch window"],
    logits: Float[Tensor, "batch pos vocab"],
    patterns: Patterns,
    scales: Scales,
) -> Float[Tensor, "n batch"]:
    """Return the rise of the loss if a path is removed, L(logits − path) − L(logits), for each path and window.

    ``patterns`` and ``scales`` are frozen at their values on these windows. The inputs are all tokens of a window but
    the last, the targets all but the first. In nats per token, positive if the path lowers the loss. Costs
    ``path_logits`` and a softmax for each path. ValueError if ``logits`` have another batch size or number of positions
    than the inputs, or as in ``check_frozen``. See docs/framework.md §2.6."""
    if logits.shape[:2] != windows[:, 1:].shape:
        raise ValueError(
            f"expected logits for {windows.shape[0]} × {windows.shape[1] - 1} inputs, got {logits.shape[0]} × "
            f"{logits.shape[1]}; give the logits, patterns and scales of these windows"
        )
    inputs, targets = windows[:, :-1], windows[:, 1:].long()
    whole = window_losses(logits, targets)
    parts = (path_logits(weights, path, inputs, patterns, scales) for path in paths)
    costs = [(window_losses(logits - part, targets) - whole).tolist() for part in parts]
    # ``costs`` holds Python numbers, because small tensors that stay allocated would fragment the memory of the logits.
    return logits.new_tensor(costs).reshape(len(paths), len(windows))
