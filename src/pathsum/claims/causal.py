"""The claim that induction depends on the K-edge from the previous-token head to the induction head."""

from __future__ import annotations

from pathsum.claims import samples
from pathsum.claims.chance import always
from pathsum.claims.formatting import head_label, interval
from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.ablations import AblationRow, EdgeContrastRow
from pathsum.records.results import Cell

METHODS = ("zero", "resample")  # ablation methods; a claim must hold with both


def _key_edge(cell: Cell) -> Finding:
    found = {c.method: c for c in cell.rows(EdgeContrastRow)}
    zero, resample = (found.get(method) for method in METHODS)
    if zero is None or resample is None:
        return Finding(None, False, "no key edge, or no other edge, was ablated")
    differences = ", ".join(
        f"{c.method} ablation {interval(c.difference_nats, c.low, c.high)}" for c in (zero, resample)
    )
    rivals = " and ".join(dict.fromkeys(_rival(c) for c in (zero, resample)))
    return Finding(
        resample.difference_nats, min(zero.low, resample.low) > 0, f"{differences}; strongest other edge: {rivals}"
    )


def _rival(contrast: EdgeContrastRow) -> str:
    early = contrast.other_early_layer, contrast.other_early_head
    return _label(early, (contrast.other_layer, contrast.other_head), contrast.other_kind)


def edge_label(edge: AblationRow) -> str:
    """Format an edge as "early head → late head (kind)", where the kind is Q, K or V."""
    return _label((edge.early_layer or 0, edge.early_head or 0), (edge.layer, edge.head), edge.kind)


def _label(early: tuple[int, int], late: tuple[int, int], kind: str | None) -> str:
    return f"{head_label(*early)} → {head_label(*late)} ({kind})"


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "induction_key_edge",
        "Induction depends on a head that reads the previous-token head through its keys.",
        "AMF, How Induction Heads Work",
        "rise of the loss on repeated tokens without the K-edge from the previous-token head to the induction head, "
        "minus that without the strongest other edge, paired by window (nats)",
        "its 95 % interval is above 0, with zero and with resample ablation",
        each(2, _key_edge),
        needs_induction_head=True,
        chance=always("0"),
        sample=samples.over(
            lambda cell: [r.windows for r in cell.rows(EdgeContrastRow)], "windows of repeated random tokens"
        ),
        unit="nats per token more than the strongest other edge (resample ablation)",
    ),
)
