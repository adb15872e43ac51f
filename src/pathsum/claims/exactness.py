"""The path expansion is exact."""

from __future__ import annotations

from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.results import Cell


def _exact(cell: Cell) -> Finding:
    return Finding(cell.summary.exactness, cell.summary.exactness < 1e-10)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "path_expansion_exact",
        "The logits are exactly the sum over paths, attention patterns and norm scales fixed.",
        "AMF, The Path Expansion Trick",
        "largest relative error of the path sum over all checkpoints, float64",
        "< 1e-10",
        each(None, _exact),
    ),
)
