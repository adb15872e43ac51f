"""Softmax competition: a higher score of one key lowers the attention to all others by the same factor.

In a one-layer model, a match can therefore attract attention to itself, but cannot move attention to the token after it
(docs/framework.md §5.14).
"""

import torch
from jaxtyping import Float
from torch import Tensor

NEAR = (2, 3, 4, 5)  # distances from the match, on either side, of the keys for comparison
LEAST_BLOCK = 2 * max(NEAR) + 1  # length of the shortest block that contains all these keys


def inhibition(attention: Float[Tensor, "*shape"], raised: float) -> Float[Tensor, "*shape"]:
    """Return the change of log A_k of every other key k if the score of a key j with A_j = ``attention`` rises by
    ``raised`` nats.

    It is −log(1 + A_j (e^raised − 1)), in nats, and at most 0 if the score rises. This is an identity of the softmax.
    See docs/framework.md §5.14."""
    return -torch.log1p(attention * torch.expm1(torch.as_tensor(raised, dtype=attention.dtype)))


def preference(pattern: Float[Tensor, "batch head query key"], block: int, offset: int) -> Float[Tensor, "head batch"]:
    """Return each head's preference for the key ``offset`` positions after the match over the keys near the match, in
    nats.

    It is log A[p, p − block + offset] minus the mean over n = ±2, …, ±5 of log A[p, p − block + n], averaged over
    queries p = block + 6 … 2·block, for which none of these keys is the beginning-of-sequence token (BOS). Attention of
    0 counts as the smallest normal number of the data type. A head whose attention depends on distance alone has the
    same preference in windows that do not repeat. ValueError unless the window has 1 + 2·block positions (BOS and a
    block given twice) and ``block`` ≥ LEAST_BLOCK (11). See docs/framework.md §5.14."""
    if pattern.shape[-1] != 1 + 2 * block or block < LEAST_BLOCK:
        raise ValueError(
            f"expected BOS and a block of {LEAST_BLOCK} tokens or more twice, got {pattern.shape[-1]} positions"
        )
    queries = torch.arange(block + 1 + max(NEAR), 2 * block + 1, device=pattern.device)  # no key is BOS

    def at(back: int) -> Tensor:
        return pattern[..., queries, queries - back].clamp(min=torch.finfo(pattern.dtype).tiny).log()

    near = torch.stack([at(block - n) for n in (*NEAR, *(-n for n in NEAR))]).mean(0)
    return (at(block - offset) - near).mean(-1).mT
