"""Measure the loss reduction by a term of the path expansion, any sum of paths (docs/framework.md §2.6).

The attention patterns and norm scales must be those of the windows on which the loss is measured (§9.4).
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Importance:
    """The loss reduction by a term in each window, in nats per token; positive if the term lowers the loss."""

    added_first: Float[Tensor, "batch"]  # fall of the loss when the term is added to all terms of lower order
    removed_last: Float[Tensor, "batch"]  # rise of the loss when the term is removed from the sum of all terms


def importance(
    term: Float[Tensor, "batch pos vocab"],
    lower: Float[Tensor, "batch pos vocab"],
    everything: Float[Tensor, "batch pos vocab"],
    targets: Int[Tensor, "batch pos"],
) -> Importance:
    """Return L(lower) − L(lower + term) and L(everything − term) − L(everything), with L the mean cross-entropy of a
    window.

    ``lower`` is the sum of all terms of lower order: zero for the direct path. ``everything`` is the sum of all terms.
    In nats per token, of any sign. AMF reports the first quantity."""
    return Importance(
        added_first=window_losses(lower, targets) - window_losses(lower + term, targets),
        removed_last=window_losses(everything - term, targets) - window_losses(everything, targets),
    )


def window_losses(
    logits: Float[Tensor, "batch pos vocab"], targets: Int[Tensor, "batch pos"]
) -> Float[Tensor, "batch"]:
    """Return the mean cross-entropy of each window over its positions, in nats per token."""
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten().long(), reduction="none")
    return losses.view(targets.shape).mean(-1)
