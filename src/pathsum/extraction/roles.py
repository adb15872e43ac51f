"""Choose the heads of the induction circuit. All tables that intervene on the circuit share this choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pathsum.behavior.labels import MOST, two_back
from pathsum.extraction.inputs import TrainedModel
from pathsum.records.roles import MATCHES, Place, scored


@dataclass(frozen=True)
class Roles:
    """The heads of the circuit. They are chosen on other data than they are judged on."""

    induction: Place  # past the first layer: the head with the highest prefix matching
    previous: tuple[Place, ...]  # first layer: the best previous-token head, and all with a score of at least MOST
    two_back: tuple[Place, ...]  # other heads of that layer: the best at two tokens back, and all with at least MOST
    inductions: tuple[
        Place, ...
    ]  # past the first layer: ``induction``, and all with prefix matching of at least MATCHES

    @staticmethod
    def of(trained: TrainedModel) -> Roles | None:
        """Choose the heads. None if there is no evaluation, or no layer after the first."""
        if not trained.log or len(trained.weights.layers) < 2:
            return None
        last = trained.log[-1]
        matching, previous = scored(last.prefix_matching[1:], 1), _leading(scored(last.previous_token[:1]))
        back = scored([two_back(trained.natural.patterns[0]).tolist()])
        return Roles(
            induction=max(matching, key=lambda place: (matching[place], place)),
            previous=previous,
            two_back=_leading({place: score for place, score in back.items() if place not in previous}),
            inductions=_leading(matching, MATCHES),
        )


def _leading(scores: Mapping[Place, float], least: float = MOST) -> tuple[Place, ...]:
    """Return the best head and all with a score of at least ``least``."""
    best = max(((score, place) for place, score in scores.items()), default=None)
    return tuple(place for place, score in scores.items() if score >= least or (score, place) == best)
