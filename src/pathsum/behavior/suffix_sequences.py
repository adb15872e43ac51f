"""Build sequences in which matches of one, two and three tokens compete for the attention of one query.

A sequence is BOS followed by tokens that all differ. It contains two places for a match, called occurrences: each is a
context of ``LONGEST`` tokens and the token after it, the follower. The query is the last position. A match is made by
copying the last tokens of the sequence into the context of an occurrence (docs/framework.md §5.12).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from pathsum.text.bos import BOS

LONGEST = 3
SHORTEST_WINDOW = 4 * LONGEST  # BOS, two contexts with their followers, and the last tokens of the sequence
MATCHES = {  # tokens that are copied into a context, counted from the end: 1 is the current token
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
        """Return the windows with a match of kind ``first`` at the first occurrence and one of kind ``second`` at the
        second occurrence. The kinds are "none", "one", "two", "three" and "previous only" (``MATCHES``); KeyError for
        another."""
        tokens, rows = self.tokens.clone(), torch.arange(len(self.tokens))
        for at, kind in enumerate((first, second)):
            for back in MATCHES[kind]:
                tokens[rows, self.followers[:, at] - back] = self.tokens[:, -back]
        return tokens

    def followed(self) -> Int64[Tensor, "n k"]:
        """Return the token at each follower's position."""
        return self.tokens.gather(1, self.followers)


def draw_trials(n: int, pos: int, probabilities: Float[Tensor, "vocab"], generator: torch.Generator) -> Trials:
    """Sample ``n`` windows of BOS and ``pos`` − 1 different tokens, and two occurrences in each.

    ``probabilities`` are weights of the tokens; that of BOS is ignored. Use both ``matched(a, b)`` and
    ``matched(b, a)``, so that neither distance nor the follower favors a match. ValueError if ``pos`` is below
    SHORTEST_WINDOW (12), which two occurrences need, or if fewer than ``pos`` − 1 tokens have a positive weight."""
    weights = probabilities.double().clone()
    weights[BOS] = 0
    present = int((weights > 0).sum())
    if pos < SHORTEST_WINDOW or present < pos - 1:
        raise ValueError(
            f"expected windows of at least {SHORTEST_WINDOW} positions and a token for each after BOS, got "
            f"{pos} positions and {present} tokens; {'shorten the windows' if present < pos - 1 else 'raise n_ctx'}"
        )
    drawn = torch.multinomial(weights.expand(n, -1), pos - 1, generator=generator)
    tokens = torch.cat([torch.full((n, 1), BOS), drawn], 1)
    # Two different starts are sampled, and the second is moved by LONGEST, so that the occurrences do not overlap.
    room = pos - 2 * (LONGEST + 1) - LONGEST + 1
    two = torch.rand(n, room, generator=generator).argsort(-1)[:, :2].sort(-1).values
    return Trials(tokens, two + torch.tensor([LONGEST + 1, 2 * LONGEST + 1]))
