"""How much of the loss is each term of the path expansion worth? (AMF "term importance")

A term is any sum of paths: an order (the direct path, the single heads, the virtual heads), or a part of one. Patterns
and scales must be those of the very windows that the loss is taken on (docs/framework.md §9.4).
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Importance:
    """What a term saves, in nats a token, a window each: positive where it helps."""

    added_first: Float[Tensor, "batch"]  # fall of the loss when it joins the terms of lower order alone
    removed_last: Float[Tensor, "batch"]  # rise of the loss when it is taken from the sum of all terms


def importance(
    term: Float[Tensor, "batch pos vocab"],
    lower: Float[Tensor, "batch pos vocab"],
    everything: Float[Tensor, "batch pos vocab"],
    targets: Int[Tensor, "batch pos"],
) -> Importance:
    """What is a term worth to a model that has only the ``lower`` orders, and to one that has ``everything``?

    added_first = L(lower) − L(lower + term), removed_last = L(everything − term) − L(everything), with L the mean
    cross-entropy of a window (AMF "term importance" measures the first). Nats a token, any sign. Under the direct path
    lies nothing: zero logits, which lose log d_vocab. The two differ by as much as terms stand in for each other.
    Costs four softmaxes over batch · pos · d_vocab logits.
    """
    return Importance(
        added_first=window_losses(lower, targets) - window_losses(lower + term, targets),
        removed_last=window_losses(everything - term, targets) - window_losses(everything, targets),
    )


def window_losses(
    logits: Float[Tensor, "batch pos vocab"], targets: Int[Tensor, "batch pos"]
) -> Float[Tensor, "batch"]:
    """What does each window lose? Mean cross-entropy over its positions, nats a token, from 0."""
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten().long(), reduction="none")
    return losses.view(targets.shape).mean(-1)
