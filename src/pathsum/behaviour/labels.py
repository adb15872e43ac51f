"""Scores of head behaviors, one per window so that they can be bootstrapped.

An attention score is the share of a head's attention that goes to the keys in question. Its chance level is the score
of uniform causal attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.probes.positional import attention_by_distance
from pathsum.statistics.bootstrap import Interval

Pattern = Float[Tensor, "batch head query key"]

MOST = 0.5  # half of a head's attention
THRESHOLDS = {
    "previous token": MOST,
    "two tokens back": MOST,
    "offset": MOST,
    "duplicate token": MOST,
    "induction: uniform": 0.1,
    "induction: by frequency": 0.1,
    "induction: natural": 0.1,
    "copies the next token": 0.5,  # mean sign: the head raises three of four next tokens
    "attends to BOS (attention sink)": MOST,
}
TIMES_CHANCE = 3


@dataclass(frozen=True)
class Score:
    """A head's score for a behavior, and its chance level."""

    behaviour: str
    interval: Interval
    chance: float

    @property
    def threshold(self) -> float | None:
        """Return the threshold for the lower end of the interval; None for a score that gives no label."""
        least = THRESHOLDS.get(self.behaviour)
        return None if least is None else max(least, TIMES_CHANCE * self.chance)


def labels(scores: Sequence[Score]) -> tuple[str, ...]:
    """Return the behaviors of a head: those whose interval lies above the threshold, which is at least three times
    chance. If a behavior has several tests (after its colon), all of them must pass.

    Induction must pass on three kinds of repeats, because other heads pass one. A head that attends back by the length
    of a block matches on repeated random tokens; a head that attends to the previous token or to likely followers
    matches on natural text. Therefore a tenth of the attention is enough. A missing test is not passed; a score without
    a threshold gives no label.
    """
    tested: dict[str, bool] = {}
    for score in scores:
        if score.threshold is not None:
            name = behaviour_of(score.behaviour)
            tested[name] = score.interval.low > score.threshold and tested.get(name, True)
    given = {score.behaviour for score in scores}
    whole = {name for name in tested if all(test in given for test in THRESHOLDS if behaviour_of(test) == name)}
    return tuple(name for name, holds in tested.items() if holds and name in whole)


def behaviour_of(test: str) -> str:
    """Return the behavior that a score tests, without the kind of test after the colon."""
    return test.split(":")[0]


def by_window(score: Callable[..., Float[Tensor, "head"]], *tensors: Tensor) -> Float[Tensor, "head batch"]:
    """Apply ``score``, a mean over windows of equal weight, to each window. The mean of the result is the score on all
    windows."""
    return torch.stack([score(*(t[None] for t in window)) for window in zip(*tensors, strict=True)], -1)


def uniform_attention(pos: int) -> Pattern:
    """Return uniform causal attention of one window and head, the chance level: each query attends equally to all keys
    up to itself, including the beginning of the sequence."""
    past = torch.ones(pos, pos).tril()
    return (past / past.sum(-1, keepdim=True))[None, None]


def best_offset(pattern: Pattern) -> Int[Tensor, "head"]:
    """Return the distance with the largest mean of A[i, i − distance] for each head, docs/framework.md §3.13.

    Distances 0 … pos / 2, since few queries have longer ones. The maximum of many is biased upward, so take its score
    (``at_offset``) on other windows. Costs batch · head · pos². ValueError under three positions.
    """
    return attention_by_distance(pattern)[:, : pattern.shape[-1] // 2 + 1].argmax(-1)


def at_offset(pattern: Pattern, distances: Int[Tensor, "head"]) -> Float[Tensor, "head"]:
    """Average A[i, i − distance] for each head with its own distance, over queries from distance + 1, without key 0.
    0..1; a previous-token score where the distance is 1. Costs batch · head · pos."""
    tokens = pattern[..., 1:, 1:]
    at = [tokens[:, h].diagonal(-int(d), -2, -1).mean() for h, d in enumerate(distances)]
    return torch.stack(at) if at else pattern.new_zeros(0)


def two_back(pattern: Pattern) -> Float[Tensor, "head"]:
    """Average A[i, i − 2], each head's attention two tokens back, docs/framework.md §3.13. 0..1."""
    return at_offset(pattern, torch.full((pattern.shape[1],), 2))


def duplicate_token(pattern: Pattern, block: int) -> Float[Tensor, "head"]:
    """Average the attention to the earlier occurrence of the current token: A[p, p − block] over the second copy, p =
    block + 1 … 2·block, of a block given twice (Wang et al. 2022, "duplicate token heads").

    0..1. Costs batch · head · block. ValueError if the window is not 1 + 2·block long.
    """
    if pattern.shape[-1] != 1 + 2 * block:
        raise ValueError(
            f"expected BOS and a block twice, 1 + 2·block positions, got {pattern.shape[-1]} for block = {block}"
        )
    return pattern[..., 1:, 1:].diagonal(-block, -2, -1).mean((0, -1))


def followers(tokens: Int[Tensor, "batch pos"]) -> Bool[Tensor, "batch query key"]:
    """Mark the keys that followed an earlier occurrence of the query's token: key − 1 holds it, 1 ≤ key − 1, key <
    query.

    The beginning of the sequence is no occurrence. The query itself is no key: after "a a" it would be one, and heads
    that attend to their own position would appear to match. Costs batch · pos².
    """
    same = tokens[:, :, None] == tokens[:, None, :]
    found = torch.zeros_like(same)
    found[:, :, 2:] = same[:, :, 1:-1]
    return found.tril(-1)


def after_earlier(pattern: Pattern, keys: Bool[Tensor, "batch query key"]) -> Float[Tensor, "head n"]:
    """Sum a head's attention to the ``followers`` of earlier occurrences of the current token, and average over the
    queries that have any (ICL "prefix matching", for text in which a token occurs more than twice).

    0..1. Windows without such a query are left out. Costs batch · head · pos².
    """
    repeats = keys.any(-1).sum(-1)
    mass = torch.einsum("bhqk,bqk->hb", pattern, keys.to(pattern.dtype))
    return (mass / repeats)[:, repeats > 0]
