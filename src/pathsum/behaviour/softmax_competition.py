"""Competition in a softmax: one high score lowers all other keys equally (AMF "one-layer attention-only transformers").

A_k = e^{s_k} / Σ_i e^{s_i}. A score changes the attention to another key only through the denominator, which is the
same for all keys of a query. A match can attract attention to itself, but cannot move it to the token after it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

NEAR = (2, 3, 4, 5)  # distances from the match, on either side, of the keys that are compared with it
LEAST_BLOCK = 2 * max(NEAR) + 1  # tokens of the shortest block that contains all of them


def inhibition(attention: Float[Tensor, "*shape"], raised: float) -> Float[Tensor, "*shape"]:
    """Return the change of log A_k of every other key k when the score of a key with attention A_j rises by ``raised``
    nats: −log(1 + A_j (e^raised − 1)). Nats, ≤ 0 if the score rises. An identity of softmax."""
    return -torch.log1p(attention * torch.expm1(torch.as_tensor(raised, dtype=attention.dtype)))


def preference(pattern: Float[Tensor, "batch head query key"], block: int, offset: int) -> Float[Tensor, "head batch"]:
    """Return a head's preference in nats for the key ``offset`` after the match over keys near it, averaged over the
    second copy's queries: log A[p, p − block + offset] − mean over ±NEAR of log A[p, p − block ± n].

    A head that depends on distance alone has the same preference in windows that do not repeat. Costs batch · head ·
    block. ValueError if the window is not BOS and a block twice.
    """
    if pattern.shape[-1] != 1 + 2 * block or block < LEAST_BLOCK:
        raise ValueError(
            f"expected BOS and a block of {LEAST_BLOCK} tokens or more twice, got {pattern.shape[-1]} positions"
        )
    logs = pattern.clamp(min=torch.finfo(pattern.dtype).tiny).log()
    queries = torch.arange(block + 1 + max(NEAR), 2 * block + 1, device=pattern.device)  # no key is BOS

    def at(back: int) -> Tensor:
        return logs[..., queries, queries - back]

    near = torch.stack([at(block - n) for n in (*NEAR, *(-n for n in NEAR))]).mean(0)
    return (at(block - offset) - near).mean(-1).mT
