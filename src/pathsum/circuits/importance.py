"""Importance of the terms of the path expansion for the loss (AMF "term importance", docs/framework.md §2.6).

A term is any sum of paths: an order, a part of an order, or a group of content. Patterns and scales must be those of
the windows that the loss is computed on (docs/framework.md §9.4).
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Importance:
    """The loss reduction by a term, in nats per token for each window: positive where it helps."""

    added_first: Float[Tensor, "batch"]  # fall of the loss when it joins the terms of lower order
    removed_last: Float[Tensor, "batch"]  # rise of the loss when it is removed from the sum of all terms


def importance(
    term: Float[Tensor, "batch pos vocab"],
    lower: Float[Tensor, "batch pos vocab"],
    everything: Float[Tensor, "batch pos vocab"],
    targets: Int[Tensor, "batch pos"],
) -> Importance:
    """Compute L(lower) − L(lower + term), which AMF reports, and L(everything − term) − L(everything), with L the mean
    cross-entropy of a window. Nats per token, any sign. ``lower`` is zero for the direct path. Costs four softmaxes
    over batch · pos · d_vocab logits."""
    return Importance(
        added_first=window_losses(lower, targets) - window_losses(lower + term, targets),
        removed_last=window_losses(everything - term, targets) - window_losses(everything, targets),
    )


def window_losses(
    logits: Float[Tensor, "batch pos vocab"], targets: Int[Tensor, "batch pos"]
) -> Float[Tensor, "batch"]:
    """Compute the mean cross-entropy of each window over its positions, nats per token, from 0."""
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten().long(), reduction="none")
    return losses.view(targets.shape).mean(-1)
