"""The claim that induction depends on the K-edges from previous-token heads to induction heads."""

from pathsum.claims import samples
from pathsum.claims.formatting import interval
from pathsum.claims.judging import Claim, Finding, each, within
from pathsum.records.ablations import EdgeContrastRow
from pathsum.records.results import Cell


def _key_edge(cell: Cell) -> Finding:
    rows = cell.rows(EdgeContrastRow)
    resampled = [c.difference_nats for c in rows if c.method == "resample"]
    if not resampled:
        return Finding(None, False, "the edges were not ablated")
    differences = ", ".join(
        f"{c.method} ablation {interval(c.difference_nats, c.low, c.high)} (rivals: {c.rivals})" for c in rows
    )
    unsure = any(within(0.0, c.low, c.high) for c in rows)
    return Finding(min(resampled), all(c.low > 0 for c in rows), differences, unsure)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "induction_key_edge",
        "Induction depends on a head that reads the previous-token head through its keys.",
        "AMF, How Induction Heads Work",
        "rise of the loss on repeated tokens without the K-edges from all previous-token heads to all induction heads, "
        "minus that without as many rivals, paired by window (nats). Rivals are (a) the strongest set of as many edges "
        "outside the circuit, chosen on other windows, if there is one, (b) the Q-edges of the same pairs of heads, "
        "(c) their V-edges; the value is the smallest difference",
        "its 95 % interval is above 0 for each kind of rivals, with zero and with resample ablation",
        each(2, _key_edge),
        needs_induction_head=True,
        chance=lambda _: "0",
        sample=samples.over(
            lambda cell: [r.windows for r in cell.rows(EdgeContrastRow)], "windows of repeated random tokens"
        ),
        unit="nats per token more than the strongest rivals (resample ablation)",
    ),
)
