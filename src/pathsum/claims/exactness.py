"""The claim that the logits are exactly the sum over all paths (docs/framework.md §2.2)."""

from pathsum.claims import samples
from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.paths import ExactnessRow

LIMIT = 1e-10  # of the relative error; sums in float64 have errors of about 1e-15


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "path_expansion_exact",
        "The logits are exactly the sum over paths, attention patterns and norm scales fixed.",
        "AMF, The Path Expansion Trick",
        "largest relative error of the path sum over all checkpoints, float64",
        f"< {LIMIT}",
        each(None, lambda cell: Finding(cell.summary.exactness, cell.summary.exactness < LIMIT)),
        sample=samples.over(lambda cell: [len(cell.rows(ExactnessRow))], "checkpoints"),
        unit="relative error (logits and attention scores)",
    ),
)
