"""What a text itself says of skip-trigrams: does a token tell what follows another?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

FEW = 5  # hits, found or expected, under which a lift is noise


@dataclass(frozen=True)
class Counts:
    """Of a triple source … destination → out. A source counts from position 1 to before the destination."""

    places: int  # destination with the source before it
    hits: int  # of those, followed by out
    all_places: int  # destination, whatever stands before it
    all_hits: int

    @property
    def expected(self) -> float:
        """Hits if the source told nothing."""
        return self.places * self.all_hits / max(1, self.all_places)

    @property
    def lift(self) -> float | None:
        """P(out | destination, source before it) / P(out | destination); 1 is chance, None where there are too few."""
        return self.hits / self.expected if self.expected > 0 and max(self.hits, self.expected) >= FEW else None


def counts(windows: Int[Tensor, "all window"], triples: Sequence[tuple[int, int, int]]) -> list[Counts]:
    """How often does out follow the destination, with the source before it in the window and in all? In the order of
    ``triples``. Costs a pass over the tokens for each distinct source and destination."""
    tokens, nexts = windows[:, :-1], windows[:, 1:].contiguous()
    pos = tokens.shape[1]
    first, places = {}, {}
    for s in {s for s, _, _ in triples}:
        found = (tokens[:, 1:] == s).to(torch.uint8).max(-1)
        first[s] = torch.where(found.values > 0, found.indices + 1, pos)
    for d in {d for _, d, _ in triples}:
        window, query = (tokens[:, 1:] == d).nonzero(as_tuple=True)
        places[d] = (window, query + 1, nexts[window, query + 1])
    result = []
    for s, d, o in triples:
        window, query, following = places[d]
        before, hit = query > first[s][window], following == o
        result.append(Counts(int(before.sum()), int((before & hit).sum()), len(query), int(hit.sum())))
    return result
