"""Sequences in which matches of one, two and three tokens compete for the same query (docs/framework.md §5.12).

A sequence is BOS and tokens that all differ. It has two occurrences, each a context of ``LONGEST`` tokens and its
follower. The query is the last position. Copying the query's last tokens into an occurrence's context makes a match.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from pathsum.data.bos import BOS

LONGEST = 3
SHORTEST_WINDOW = 4 * LONGEST  # BOS, two occurrences with their followers, the query's own context
MATCHES = {  # offsets of the query's last tokens that a context repeats: 1 is the current token, 2 the previous one
    "none": (),
    "one": (1,),
    "two": (1, 2),
    "three": (1, 2, 3),
    "previous only": (2,),
}


@dataclass(frozen=True)
class Trials:
    """Windows without matches, and the positions of the two followers in each."""

    tokens: Int64[Tensor, "n pos"]
    followers: Int64[Tensor, "n k"]

    def matched(self, first: str, second: str) -> Int64[Tensor, "n pos"]:
        """Return the windows with occurrences that match as ``first`` and ``second`` say (keys of ``MATCHES``)."""
        tokens, rows = self.tokens.clone(), torch.arange(len(self.tokens))
        for at, kind in enumerate((first, second)):
            for back in MATCHES[kind]:
                tokens[rows, self.followers[:, at] - back] = self.tokens[:, -back]
        return tokens

    def followed(self) -> Int64[Tensor, "n k"]:
        """Return the token that follows each occurrence."""
        return self.tokens.gather(1, self.followers)


def draw_trials(n: int, pos: int, probabilities: Float[Tensor, "vocab"], generator: torch.Generator) -> Trials:
    """Sample ``n`` windows of ``pos`` tokens without repetition, by ``probabilities`` (without BOS), and two places.

    Both orders of the two kinds, ``matched(a, b)`` and ``matched(b, a)``, balance distance and follower. ValueError if
    there is no room for two occurrences or there are too few tokens.
    """
    weights = probabilities.double().clone()
    weights[BOS] = 0
    present = int((weights > 0).sum())
    if pos < SHORTEST_WINDOW or present < pos - 1:
        raise ValueError(
            f"expected windows of at least {SHORTEST_WINDOW} positions and as many tokens but one to draw from, got "
            f"{pos} positions and {present} tokens; {'shorten the windows' if present < pos - 1 else 'raise n_ctx'}"
        )
    drawn = torch.multinomial(weights.expand(n, -1), pos - 1, generator=generator)
    tokens = torch.cat([torch.full((n, 1), BOS), drawn], 1)
    room = pos - 2 * (LONGEST + 1) - LONGEST + 1  # places for both, with the first one's length subtracted
    two = torch.rand(n, room, generator=generator).argsort(-1)[:, :2].sort(-1).values
    return Trials(tokens, two + torch.tensor([LONGEST + 1, 2 * LONGEST + 1]))
