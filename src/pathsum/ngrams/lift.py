"""The lift of skip-trigrams in a text: whether an earlier token is informative about the next one
(docs/framework.md §3.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

FEW = 5  # hits, found or expected, under which a lift is noise


@dataclass(frozen=True)
class Counts:
    """The places of a triple source … destination → out. A source counts from position 1 to before the destination, in
    the same document."""

    places: int  # destination with the source before it
    hits: int  # of those, followed by out
    all_places: int  # destination with or without the source
    all_hits: int

    @property
    def expected(self) -> float:
        """Return the hits expected if out did not depend on the source."""
        return self.places * self.all_hits / max(1, self.all_places)

    @property
    def lift(self) -> float | None:
        """Return P(out | destination, source before it) / P(out | destination). Chance is 1; None under FEW hits."""
        return self.hits / self.expected if self.expected > 0 and max(self.hits, self.expected) >= FEW else None


@dataclass(frozen=True)
class Text:
    """The places of each token in windows without position 0 (BOS). A window may contain the end of a document; BOS
    begins the next one."""

    document: Int[Tensor, "n"]  # number, in all windows, of each place's document; places are sorted by token
    pos: Int[Tensor, "n"]
    nexts: Int[Tensor, "n"]  # what follows
    starts: Int[Tensor, "k"]  # where each token's places begin, and the last one's end
    documents: int

    @staticmethod
    def of(windows: Int[Tensor, "all window"]) -> Text:
        """Sort the places of ``windows`` by token."""
        tokens = windows[:, 1:-1]
        found, order = tokens.flatten().sort(stable=True)
        size = int(found[-1]) + 1 if len(found) else 0
        begins = tokens == windows[:, :1]
        begins[:, :1] = True
        document, pos = begins.flatten().cumsum(0) - 1, order % max(1, tokens.shape[1])
        starts = torch.searchsorted(found, torch.arange(size + 1))
        return Text(document[order], pos, windows[:, 2:].flatten()[order], starts, int(begins.sum()))

    def places(self, token: int) -> slice:
        """Return the slice of the places of ``token``."""
        if token + 1 >= len(self.starts):
            return slice(0, 0)
        return slice(int(self.starts[token]), int(self.starts[token + 1]))


def counts(text: Text, triples: Sequence[tuple[int, int, int]]) -> list[Counts]:
    """Count how often out follows the destination, in all and with the source before it in the document. Costs the
    places of each triple's destination."""
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
