"""The roles of heads, chosen on the last evaluation of training, so that other windows judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathsum.probes.evaluation import Evaluation

Place = tuple[int, int]  # layer and head


@dataclass(frozen=True)
class HeadRoles:
    """The heads that claims speak of. Training evaluates on tuning documents and on random tokens of its own; what is
    extracted comes from verdict documents and from other random tokens."""

    previous: Place | None  # of the first layer, the head that attends most to the previous token
    induction: Place | None  # of all layers, the head with the highest prefix-matching score

    @staticmethod
    def of(log: Sequence[Evaluation]) -> HeadRoles:
        """Choose at the last evaluation of ``log``. None for both without heads, or without a log."""
        if not log:
            return HeadRoles(None, None)
        return HeadRoles(_best(log[-1].previous_token[:1]), _best(log[-1].prefix_matching))


def _best(scores: Sequence[Sequence[float]]) -> Place | None:
    places = [(layer, head) for layer, heads in enumerate(scores) for head in range(len(heads))]
    return max(places, key=lambda place: scores[place[0]][place[1]], default=None)
