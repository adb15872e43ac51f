"""The lift of skip-trigrams: how informative an earlier token is about the next one (docs/framework.md §3.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

FEW = 5  # a lift is noise if hits and expected hits are both below this


@dataclass(frozen=True)
class Counts:
    """The places (of the destination) and hits (places that out follows) of a triple in a text. The source must stand
    before the destination in the same window and document, and not at position 0 of the window."""

    places: int  # with the source before
    hits: int  # hits among these places
    all_places: int  # with or without the source before
    all_hits: int  # hits among these places

    @property
    def expected(self) -> float:
        """Return the expected number of hits if out depends on the destination alone."""
        return self.places * self.all_hits / max(1, self.all_places)

    @property
    def lift(self) -> float | None:
        """Return hits / expected hits, P(out | destination, source before it) / P(out | destination). Chance is 1."""
        return self.hits / self.expected if self.expected > 0 and max(self.hits, self.expected) >= FEW else None


@dataclass(frozen=True)
class Text:
    """The positions of each token in some windows but their first and last. Parts of a document count as documents."""

    document: Int[Tensor, "n"]  # document number of each position; positions are sorted by token
    pos: Int[Tensor, "n"]  # position in the window − 1
    nexts: Int[Tensor, "n"]  # next token
    starts: Int[Tensor, "k"]  # index of each token's first entry, then the total number of entries
    documents: int

    @staticmethod
    def of(windows: Int[Tensor, "all window"]) -> Text:
        """Collect the positions of ``windows``, sorted by token."""
        tokens = windows[:, 1:-1]
        found, order = tokens.flatten().sort(stable=True)
        size = int(found[-1]) + 1 if len(found) else 0
        begins = tokens == windows[:, :1]
        begins[:, :1] = True
        document, pos = begins.flatten().cumsum(0) - 1, order % max(1, tokens.shape[1])
        starts = torch.searchsorted(found, torch.arange(size + 1))
        return Text(document[order], pos, windows[:, 2:].flatten()[order], starts, int(begins.sum()))

    def places(self, token: int) -> slice:
        """Return the slice of ``document``, ``pos`` and ``nexts`` where ``token`` stands; empty if there is none."""
        if token + 1 >= len(self.starts):
            return slice(0, 0)
        return slice(int(self.starts[token]), int(self.starts[token + 1]))


def counts(text: Text, triples: Sequence[tuple[int, int, int]]) -> list[Counts]:
    """Count the places and hits of each of ``triples``, given as the ids (source, destination, out)."""
    first = {}
    for s in {s for s, _, _ in triples}:
        here = text.places(s)
        nowhere = text.pos.new_full((text.documents,), torch.iinfo(text.pos.dtype).max)
        first[s] = nowhere.scatter_reduce_(0, text.document[here], text.pos[here], "amin")
    result = []
    for s, d, o in triples:
        here = text.places(d)
        before, hit = text.pos[here] > first[s][text.document[here]], text.nexts[here] == o
        result.append(Counts(int(before.sum()), int((before & hit).sum()), len(hit), int(hit.sum())))
    return result
