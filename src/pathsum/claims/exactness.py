"""The claim that the logits are exactly the sum over all paths, judged by all exactness checks (docs/framework.md
§2.2)."""

from __future__ import annotations

from pathsum.claims import samples
from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.paths import ExactnessRow
from pathsum.records.results import Cell

LIMIT = 1e-10  # of the relative error; sums in float64 have errors of about 1e-15


def _exact(cell: Cell) -> Finding:
    return Finding(cell.summary.exactness, cell.summary.exactness < LIMIT)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "path_expansion_exact",
        "The logits are exactly the sum over paths, attention patterns and norm scales fixed.",
        "AMF, The Path Expansion Trick",
        "largest relative error of the path sum over all checkpoints, float64",
        f"< {LIMIT}",
        each(None, _exact),
        sample=samples.over(lambda cell: [len(cell.rows(ExactnessRow))], "checkpoints"),
        unit="relative error (logits and attention scores)",
    ),
)
