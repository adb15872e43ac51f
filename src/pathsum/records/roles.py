"""The roles of heads, chosen at training's last evaluation, so that other windows judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathsum.probes.evaluation import Evaluation

Place = tuple[int, int]  # layer and head


@dataclass(frozen=True)
class HeadRoles:
    """The heads that claims concern. Training evaluates on tuning documents and on random tokens; records come from
    verdict documents and from other random tokens."""

    previous: Place | None  # of the first layer, the head that attends most to the previous token
    induction: Place | None  # of all layers, the head with the highest prefix-matching score

    @staticmethod
    def of(log: Sequence[Evaluation]) -> HeadRoles:
        """Choose at the last evaluation of ``log``. Both are None without heads or without a log."""
        if not log:
            return HeadRoles(None, None)
        return HeadRoles(_best(log[-1].previous_token[:1]), _best(log[-1].prefix_matching))


def scored(scores: Sequence[Sequence[float]], first: int = 0) -> dict[Place, float]:
    """Return the score of each head of ``scores[layer][head]``, which begin at layer ``first``."""
    return {(layer, head): s for layer, heads in enumerate(scores, first) for head, s in enumerate(heads)}


def _best(scores: Sequence[Sequence[float]]) -> Place | None:
    places = scored(scores)
    return max(places, key=lambda place: places[place], default=None)
