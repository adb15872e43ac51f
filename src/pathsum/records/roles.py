"""The choice of a model's previous-token head and induction head (docs/framework.md §5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathsum.records.evaluation import Evaluation

Place = tuple[int, int]  # layer and head
MATCHES = 0.1  # least prefix matching of an induction head at the last evaluation of training; chance is near 0.005


@dataclass(frozen=True)
class HeadRoles:
    """The previous-token head and the induction head of a model, chosen at the last evaluation of training
    (docs/framework.md §5.6), on tuning documents and random tokens that judge nothing."""

    previous: Place | None  # first-layer head with the highest previous-token score
    induction: Place | None  # head of any layer with the highest prefix matching

    @staticmethod
    def of(log: Sequence[Evaluation]) -> HeadRoles:
        """Choose both heads at the last evaluation of ``log``."""
        if not log:
            return HeadRoles(None, None)
        return HeadRoles(_best(log[-1].previous_token[:1]), _best(log[-1].prefix_matching))


def scored(scores: Sequence[Sequence[float]], first: int = 0) -> dict[Place, float]:
    """Return the scores by (layer, head). ``scores[i][head]`` is that of a head in layer ``first`` + i."""
    return {(layer, head): s for layer, heads in enumerate(scores, first) for head, s in enumerate(heads)}


def _best(scores: Sequence[Sequence[float]]) -> Place | None:
    places = scored(scores)
    return max(places, key=lambda place: places[place], default=None)
