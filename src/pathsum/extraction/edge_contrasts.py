"""Is the edge that induction is said to need worth more than any other? Paired by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.records.ablations import EdgeContrastRow
from pathsum.records.roles import HeadRoles, Place
from pathsum.statistics.bootstrap import independent, mean_intervals


@dataclass(frozen=True)
class Cut:
    """An edge without which the second copy was predicted."""

    method: str
    kind: str
    early: Place
    late: Place


def edge_contrasts(
    cuts: Sequence[Cut], rise: Float[Tensor, "cut batch"], roles: HeadRoles, generator: torch.Generator
) -> list[EdgeContrastRow]:
    """Subtract the rise of the second copy's loss without the strongest other edge from that without the K-edge from
    the previous-token head to the induction head, window by window, for each method.

    Both heads are chosen on other data (``roles``). Other edges are all but the K-edges of the previous-token head; the
    strongest is chosen on these windows, which can only make the difference smaller. Nats; 95 % bootstrap over windows,
    which are random tokens and share nothing. None where either head is missing or does not precede the other.
    """
    rows = []
    for method in dict.fromkeys(cut.method for cut in cuts):
        at = [i for i, cut in enumerate(cuts) if cut.method == method]
        ours = [i for i in at if (cuts[i].kind, cuts[i].early, cuts[i].late) == ("K", roles.previous, roles.induction)]
        others = [i for i in at if (cuts[i].kind, cuts[i].early) != ("K", roles.previous)]
        if not ours or not others:
            continue
        rival = max(others, key=lambda i: rise[i].mean().item())
        difference = (rise[ours[0]] - rise[rival])[None]
        (found,) = mean_intervals(difference, independent(difference), generator)
        edge, other, ends = cuts[ours[0]], cuts[rival], (found.mean, found.low, found.high)
        places = (*edge.early, *edge.late, other.kind, *other.early, *other.late)
        rows.append(EdgeContrastRow(method, *places, *ends, windows=rise.shape[1]))
    return rows
