"""Measure copying on text: whether a head raises the tokens that it attends to, and what that saves
(docs/framework.md §3.18)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.core.weights import Head, Weights


def attended_logits(
    pattern: Float[Tensor, "batch query key"],
    output: Float[Tensor, "batch query d_model"],
    tokens: Int[Tensor, "batch key"],
    W_U: Float[Tensor, "vocab d_model"],
) -> tuple[Float[Tensor, "batch"], float]:
    """Return, for each window, how much more a head's output raises the tokens that it attends to than those that it
    attends to in another window (docs/framework.md §3.18).

    The result is the mean over queries of o · (u − u'), in logits per unit of the final norm scale. o is the head's
    ``output``, u the sum of the attended tokens' rows of ``W_U``, weighted by attention, and u' is u in the window
    before. Key 0 (BOS) does not count. The mean over windows is exactly 0 for a head that writes one vector everywhere.
    The second result is the standard deviation of this mean under random rotations of the output, where its
    expectation is 0. Costs batch · pos · d_model · (pos + d_model)."""
    vectors = (W_U - W_U.mean(0))[tokens]
    vectors[:, 0] = 0
    u = pattern @ vectors
    products = output.mT @ (u - u.roll(1, 0)) / pattern.shape[1]
    return products.diagonal(0, 1, 2).sum(-1), (products.mean(0).norm() / math.sqrt(len(W_U.mT))).item()


def own_entries(weights: Weights, head: Head) -> Float[Tensor, "vocab"]:
    """Return OV[t, t] of every token t: the logit, above the mean over outputs, that attention to t adds to t
    (docs/framework.md §3.3)."""
    W_U = weights.W_U - weights.W_U.mean(0)
    return ((W_U @ head.W_O) * (head.W_V @ weights.W_E).mT).sum(-1)


def removal_rises(
    moved: Float[Tensor, "batch head query key"],
    tokens: Int[Tensor, "batch key"],
    targets: Int[Tensor, "batch query"],
    logits: Float[Tensor, "batch query vocab"],
) -> Float[Tensor, "batch head query"]:
    """Return the rise of the loss, in nats, if what each head adds to the logits of attended tokens is removed
    (docs/framework.md §3.18).

    ``moved[b, h, q, k]`` is subtracted from the logit of the token at k for the prediction at q. Patterns and scales
    are frozen."""
    first = (tokens[:, :, None] == tokens[:, None]).int().argmax(2)  # of each key: the first key with its token
    lost = torch.zeros_like(moved).scatter_add_(-1, first[:, None, None].expand_as(moved), moved)
    probability = logits.softmax(-1).gather(2, tokens[:, None].expand(-1, logits.shape[1], -1))
    followed = (targets[:, :, None] == tokens[:, None])[:, None]
    return torch.log1p((probability[:, None] * torch.expm1(-lost)).sum(-1)) + (moved * followed).sum(-1)
