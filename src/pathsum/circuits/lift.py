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


@dataclass(frozen=True)
class Text:
    """Where each token stands, in windows of which position 0, which begins every one, is left out."""

    nexts: Int[Tensor, "all pos"]  # what follows
    window: Int[Tensor, "n"]  # of each place, sorted by token, then as they stand
    pos: Int[Tensor, "n"]
    starts: Int[Tensor, "k"]  # where each token's places begin, and the last one's end

    @staticmethod
    def of(windows: Int[Tensor, "all window"]) -> Text:
        """Costs a sort of the text."""
        tokens = windows[:, 1:-1]
        found, order = tokens.flatten().sort(stable=True)
        size = int(found[-1]) + 1 if len(found) else 0
        pos = max(1, tokens.shape[1])
        return Text(windows[:, 2:], order // pos, order % pos, torch.searchsorted(found, torch.arange(size + 1)))

    def places(self, token: int) -> tuple[Int[Tensor, "k"], Int[Tensor, "k"]]:
        """Window and position of each place of ``token``."""
        if token + 1 >= len(self.starts):
            return self.window[:0], self.pos[:0]
        here = slice(int(self.starts[token]), int(self.starts[token + 1]))
        return self.window[here], self.pos[here]


def counts(text: Text, triples: Sequence[tuple[int, int, int]]) -> list[Counts]:
    """How often does out follow the destination, with the source before it in the window and in all? In the order of
    ``triples``. Costs the places of each triple's destination."""
    windows, pos = text.nexts.shape
    first, places = {}, {}
    for s in {s for s, _, _ in triples}:
        window, at = text.places(s)
        first[s] = at.new_full((windows,), pos).scatter_reduce_(0, window, at, "amin")
    for d in {d for _, d, _ in triples}:
        window, query = text.places(d)
        places[d] = (window, query, text.nexts[window, query])
    result = []
    for s, d, o in triples:
        window, query, following = places[d]
        before, hit = query > first[s][window], following == o
        result.append(Counts(int(before.sum()), int((before & hit).sum()), len(query), int(hit.sum())))
    return result
