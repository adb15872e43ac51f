"""Competition in a softmax: one high score lowers all other keys equally (AMF "one-layer attention-only transformers").

A_k = e^{s_k} / Σ_i e^{s_i}. A score changes the attention to another key only through the denominator, which is the
same for all keys of a query. So a match can attract attention to itself, but cannot move it to the token after it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

NEAR = (2, 3, 4, 5)  # tokens on either side of a match: about as far back, but not next to it
LEAST_BLOCK = 2 * max(NEAR) + 1  # tokens of a block with room for all of them


def inhibition(attention: Float[Tensor, "*shape"], raised: float) -> Float[Tensor, "*shape"]:
    """Return the change of log A_k of every other key when a score of attention A_j rises by ``raised`` nats:
    −log(1 + A_j (e^raised − 1)), whatever k is. Nats, ≤ 0 where the score rises. An identity of softmax."""
    return -torch.log1p(attention * torch.expm1(torch.as_tensor(raised, dtype=attention.dtype)))


def preference(pattern: Float[Tensor, "batch head query key"], block: int, offset: int) -> Float[Tensor, "head batch"]:
    """Return by how many nats a head prefers the key ``offset`` after the match to keys near it, mean over the second
    copy's queries: log A[p, p − block + offset] − mean over ±NEAR of log A[p, p − block ± n].

    0 where a head sees only how far back a key is, up to what its position bias itself does: compare with
    windows that do not repeat. Costs batch · head · block. ValueError where the window is no BOS and block twice.
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
