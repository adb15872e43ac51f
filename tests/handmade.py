"""Hand-made weights with known circuits, in float64, and attention patterns for them.

The residual stream consists of *rooms* of d_vocab coordinates each. Token t is the t-th unit vector of a room, so all
tables can be read off directly.
"""

import math

import torch
from torch import Tensor

from pathsum.core.weights import Head, Weights
from pathsum.hand_made import induction_weights

DTYPE = torch.float64
induction_pair = induction_weights


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=DTYPE)


def random_weights(
    seed: int, n_layers: int, n_heads: int = 3, d_vocab: int = 23, d_model: int = 13, d_head: int = 5
) -> Weights:
    """Return random weights without structure, the negative control of every detector."""
    g = torch.Generator().manual_seed(seed)

    def head() -> Head:
        read = [normal(g, d_head, d_model) / math.sqrt(d_model) for _ in range(3)]
        return Head(*read, normal(g, d_model, d_head) / math.sqrt(d_head))

    layers = tuple(tuple(head() for _ in range(n_heads)) for _ in range(n_layers))
    return Weights(normal(g, d_model, d_vocab) / math.sqrt(d_model), normal(g, d_vocab, d_model), layers)


def bigram(table: Tensor) -> Weights:
    """Return a model without layers and with W_U W_E = ``table`` (next × token)."""
    return Weights(torch.eye(len(table), dtype=DTYPE), table.to(DTYPE))


def skip_trigram_head(qk: Tensor, ov: Tensor) -> Weights:
    """Return one head with W_Eᵀ W_QK W_E = ``qk`` (dest × source) and W_U W_OV W_E = ``ov`` (out × source)."""
    eye = torch.eye(len(qk), dtype=DTYPE)
    return Weights(eye, eye, ((Head(eye * math.sqrt(len(qk)), qk.to(DTYPE), eye, ov.to(DTYPE)),),))


def copying_head(d_vocab: int, strength: float = 1.0) -> Weights:
    """Return one head that attends uniformly and raises the attended tokens by ``strength``."""
    eye = torch.eye(d_vocab, dtype=DTYPE)
    return skip_trigram_head(0 * eye, strength * eye)


def deleting_head(d_vocab: int) -> Weights:
    """Return one head that attends uniformly and lowers the attended tokens."""
    return copying_head(d_vocab, strength=-1.0)


def suffix_matcher(d_vocab: int, current: float, previous: float) -> Weights:
    """Return an induction head that matches the current token by ``current`` nats and the previous token by
    ``previous`` nats.

    In the first layer, head 0 moves the token one position on (to room 1), head 1 two positions (to room 2), and head 2
    writes nothing. In the second layer, head 0 compares room 0 of the query with room 1 of the key and room 1 with room
    2, and copies room 0. With ``previous`` = 0 it matches one token.
    """
    here, before, two_back = _rooms(d_vocab, 3)
    nothing = torch.zeros(2 * d_vocab, 3 * d_vocab, dtype=DTYPE)
    moved = torch.cat([here, 0 * here])
    read = torch.cat([current * here, previous * before]) * math.sqrt(2 * d_vocab)
    first = tuple(Head(nothing, nothing, moved, torch.cat([room, 0 * room]).mT) for room in (before, two_back))
    silent = Head(*[nothing] * 3, nothing.mT)
    induction = Head(read, torch.cat([before, two_back]), moved, moved.mT)
    return Weights(here.mT, here, ((*first, silent), (induction, silent, silent)))


def self_attending_pair(d_vocab: int, strength: float = 30.0) -> Weights:
    """Return an induction circuit whose query reads the current token through a head that attends to its own position.

    Head 0 of layer 0 is the previous-token head (room 1), head 1 attends to its own position (room 2), and the late
    head does not read the embedding. By heads, both query and key are composed. By content, this is ``induction_pair``.
    """
    here, before, carried = _rooms(d_vocab, 3)
    nothing = 0 * here
    first = (Head(nothing, nothing, here, before.mT), Head(nothing, nothing, here, carried.mT))
    induction = Head(strength * math.sqrt(d_vocab) * carried, before, carried, here.mT)
    return Weights(here.mT, here, (first, (induction, Head(nothing, nothing, nothing, nothing.mT))))


def pointer_pair(d_vocab: int, strength: float = 30.0) -> tuple[Weights, Tensor]:
    """Return induction by Q-composition ("pointer arithmetic").

    The first head has ``same_token_pattern`` and reads the position of the token's earlier occurrence. The second head
    attends to the position after it by ``strength`` nats and copies. Room 0 holds the token, room 1 its position and
    room 2 the position found. Also returns what each of d_vocab positions adds to the residual stream (pos × d_model;
    position 0 adds nothing), because weights do not include positions.
    """
    here, position, found = _rooms(d_vocab, 3)
    nothing = 0 * here
    same = Head(nothing, nothing, position, found.mT)
    induction = Head(strength * math.sqrt(d_vocab) * found.roll(1, 0), position, here, here.mT)
    added = position.clone()
    added[0] = 0
    return Weights(here.mT, here, ((same,), (induction,))), added


def virtual_head(d_vocab: int) -> Weights:
    """Return two heads that V-compose into a copying head: room 0 → room 1 → room 2, and only room 2 is unembedded.

    Neither head has an effect alone, and in the reverse order their product is zero.
    """
    first, second, third = _rooms(d_vocab, 3)
    nothing = 0 * first
    early, late = Head(nothing, nothing, first, second.mT), Head(nothing, nothing, second, third.mT)
    return Weights(first.mT, third, ((early,), (late,)))


def previous_token_pattern(pos: int) -> Tensor:
    """Return the pattern (query × key) in which every query attends to the previous position, and position 0 to
    itself."""
    pattern = torch.diag(torch.ones(pos - 1, dtype=DTYPE), -1)
    pattern[0, 0] = 1
    return pattern


def back_pattern(pos: int, distance: int) -> Tensor:
    """Return the pattern (query × key) in which every query attends ``distance`` back, and the first ones to
    themselves."""
    return torch.diag(torch.ones(pos - distance, dtype=DTYPE), -distance) + torch.diag(
        (torch.arange(pos) < distance).to(DTYPE)
    )


def same_token_pattern(block: int) -> Tensor:
    """Return the pattern (query × key) in which the second copy attends to the same token in the first, and all else to
    BOS.

    The tokens are those of ``repeated_tokens``.
    """
    pattern = torch.zeros(1 + 2 * block, 1 + 2 * block, dtype=DTYPE)
    pattern[: block + 1, 0] = 1
    pattern.diagonal(-block)[1:] = 1
    return pattern


def uniform_pattern(pos: int) -> Tensor:
    """Return uniform causal attention (query × key)."""
    causal = torch.ones(pos, pos, dtype=DTYPE).tril()
    return causal / causal.sum(-1, keepdim=True)


def content_pattern(head: Head, x: Tensor) -> Tensor:
    """Return the pattern of a head without positions on the residual stream ``x`` (batch, pos, d_model)."""
    scores = x @ head.W_QK.dense() @ x.mT
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(-1)


def repeated_tokens(seed: int, batch: int, d_vocab: int, block: int) -> Tensor:
    """Return windows of BOS (token 0) and a block given twice. No token occurs twice in a block."""
    g = torch.Generator().manual_seed(seed)
    blocks = torch.stack([1 + torch.randperm(d_vocab - 1, generator=g)[:block] for _ in range(batch)])
    return torch.cat([torch.zeros(batch, 1, dtype=torch.int64), blocks, blocks], -1)


def _rooms(d_vocab: int, n: int) -> list[Tensor]:
    """Return ``n`` matrices (d_vocab × n·d_vocab), each of which reads one room."""
    return list(torch.eye(n * d_vocab, dtype=DTYPE).split(d_vocab))
