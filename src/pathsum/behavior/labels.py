"""Score what heads do in each window, and label heads by their scores (docs/framework.md §5.7)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pathsum.behavior.positional import attention_by_distance
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
    "copies the next token": 0.5,  # mean sign; at 0.5 the head raises three of four next tokens
    "attends to BOS (attention sink)": MOST,
}
TIMES_CHANCE = 3


@dataclass(frozen=True)
class Score:
    """A head's score for a behavior, with its bootstrap interval and its chance level."""

    behaviour: str
    interval: Interval
    chance: float

    @property
    def threshold(self) -> float | None:
        """Return the value that the lower end of the interval must exceed; None for a score that gives no label."""
        least = THRESHOLDS.get(self.behaviour)
        return None if least is None else max(least, TIMES_CHANCE * self.chance)


def labels(scores: Sequence[Score]) -> tuple[str, ...]:
    """Return the behaviors of a head: those whose interval lies above the threshold, which is at least three times
    chance.

    If a behavior has several tests, such as "induction: uniform", the head must pass all of them, and a missing test
    counts as failed. Induction has three tests, on different kinds of windows, because a head of another kind may pass
    one of them. For example, a head that always attends block − 1 tokens back passes on repeated random tokens. A score
    without a threshold gives no label.
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
    """Return the behavior that a test belongs to: the part of its name before the colon."""
    return test.split(":")[0]


def by_window(score: Callable[..., Float[Tensor, "head"]], *tensors: Tensor) -> Float[Tensor, "head batch"]:
    """Apply ``score`` to each window of ``tensors`` separately, as a batch of one.

    ``score`` must be a mean in which all windows have equal weight. The mean of the result is then the score of all
    windows together. ValueError if the tensors differ in their number of windows.
    """
    return torch.stack([score(*(t[None] for t in window)) for window in zip(*tensors, strict=True)], -1)


def uniform_attention(pos: int) -> Pattern:
    """Return uniform causal attention for one window and one head, the chance level: A[i, k] = 1/(i + 1) for all keys
    k ≤ i.
    """
    past = torch.ones(pos, pos).tril()
    return (past / past.sum(-1, keepdim=True))[None, None]


def best_offset(pattern: Pattern) -> Int[Tensor, "head"]:
    """Return, for each head, the distance d at which the mean of A[i, i − d] is largest (docs/framework.md §3.13).

    Distances are from 0 to pos / 2, since few queries have longer ones. The largest of many means is biased upward, so
    score the distance (``at_offset``) on other windows. ValueError with fewer than three positions.
    """
    return attention_by_distance(pattern)[:, : pattern.shape[-1] // 2 + 1].argmax(-1)


def at_offset(pattern: Pattern, distances: Int[Tensor, "head"]) -> Float[Tensor, "head"]:
    """Return the mean of A[i, i − d] over queries i > d, for each head at its own distance d. Key 0 is left out.

    0..1; NaN without such a query (d ≥ pos − 1). With d = 1 it is the previous-token score. See
    docs/framework.md §3.13.
    """
    tokens = pattern[..., 1:, 1:]
    at = [tokens[:, h].diagonal(-int(d), -2, -1).mean() for h, d in enumerate(distances)]
    return torch.stack(at) if at else pattern.new_zeros(0)


def two_back(pattern: Pattern) -> Float[Tensor, "head"]:
    """Return each head's attention two tokens back, the mean of A[i, i − 2] over i ≥ 3 (docs/framework.md §3.13).
    0..1; NaN with fewer than four positions."""
    return at_offset(pattern, torch.full((pattern.shape[1],), 2))


def duplicate_token(pattern: Pattern, block: int) -> Float[Tensor, "head"]:
    """Return each head's mean attention to the earlier occurrence of the current token, A[p, p − block] over
    p = block + 1 … 2·block.

    The window is BOS and a block given twice, and p runs over the second copy (Wang et al. 2022, "duplicate token
    heads"). 0..1. ValueError unless the window has 1 + 2·block positions.
    """
    if pattern.shape[-1] != 1 + 2 * block:
        raise ValueError(
            f"expected BOS and a block twice, 1 + 2·block positions, got {pattern.shape[-1]} for block = {block}"
        )
    return pattern[..., 1:, 1:].diagonal(-block, -2, -1).mean((0, -1))


def followers(tokens: Int[Tensor, "batch pos"]) -> Bool[Tensor, "batch query key"]:
    """Mark the keys that follow an earlier occurrence of the query's token: t[key − 1] = t[query] with 2 ≤ key < query.

    BOS at position 0 does not count as an occurrence. The query itself is never marked. Otherwise, after "a a", heads
    that attend to their own position would appear to match."""
    same = tokens[:, :, None] == tokens[:, None, :]
    found = torch.zeros_like(same)
    found[:, :, 2:] = same[:, :, 1:-1]
    return found.tril(-1)


def after_earlier(pattern: Pattern, keys: Bool[Tensor, "batch query key"]) -> Float[Tensor, "head n"]:
    """Return each head's attention to ``keys``, summed over the keys of a query and averaged over the queries that have
    any.

    With ``keys`` from ``followers``, this is ICL's prefix matching for text in which a token occurs more than twice.
    0..1, one value per window; windows without such a query are left out. See docs/framework.md §5.2.
    """
    repeats = keys.any(-1).sum(-1)
    mass = torch.einsum("bhqk,bqk->hb", pattern, keys.to(pattern.dtype))
    return (mass / repeats)[:, repeats > 0]
