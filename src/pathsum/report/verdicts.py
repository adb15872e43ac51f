"""The claims at a glance: verdict, our value, what it must reach, what chance gives, what the papers have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pathsum.claims import CLAIMS
from pathsum.claims.formatting import number, plural, span
from pathsum.claims.judging import OWN
from pathsum.claims.preregistration import Preregistration
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.chance import chance
from pathsum.report.document import Entry, Table
from pathsum.report.preregistration import beside

PAPERS = {  # by claim, where the papers or their public checkpoints have a number
    "one_layer_copying_heads": "10 of 12 heads",
    "two_layer_induction": "0.68–0.75",
    "previous_token_head": "≈ 1.0",
    "phase_change_two_layer": "1–3 B, larger models",
    "phase_change_coincides": "< 0.15 to ≈ 0.4 at other positions",
    "virtual_heads_little": "virtual heads least",
}
DIGITS = {c.id: c.digits for c in CLAIMS}


def table(
    claims: Sequence[ClaimResult], results: Results, evidence: Callable[[str], str], registered: Preregistration
) -> Table:
    """A row a claim; ``evidence`` is the section that it leads to."""
    columns = ("claim", "verdict", "ours", "reproduced if", "chance", "papers", "where they say so")
    fields = tuple(
        (
            Entry(c.claim, target=evidence(c.id)),
            Entry(c.verdict, "verdict"),
            Entry(f"{number(c.value, DIGITS[c.id])} {_range(c)}", "number"),
            Entry(beside(registered, c.id, c.threshold)),
            Entry(chance(c.id, results), "number"),
            Entry(PAPERS.get(c.id, "–")),
            Entry(c.section),
        )
        for c in claims
    )
    caption = (
        f"{tally(claims)} A claim is judged on every model it speaks about: reproduced where all of them pass, partly "
        "where some do. Ours: the median over those models, in brackets their range, smallest to largest: a range over "
        "models, no confidence interval. Chance: the value without the effect that the claim is about. Each claim "
        "links to its evidence; the table below says how it is measured."
    )
    return Table(caption, columns, fields, "claims.csv", fold=False)


def measures(claims: Sequence[ClaimResult]) -> Table:
    """How each claim was measured, and what each model says."""
    fields = tuple((Entry(c.claim), Entry(c.measure), Entry(c.detail)) for c in claims)
    caption = "How each claim is measured, and how its models fare."
    return Table(caption, ("claim", "measure", "models"), fields, "claims.csv")


def tally(claims: Sequence[ClaimResult]) -> str:
    """Count the verdicts on the papers' claims, and on this suite's own."""
    own = [c for c in claims if c.section == OWN]
    papers = [c for c in claims if c.section != OWN]
    return " ".join(_counted(some, source) for some, source in ((papers, "the papers"), (own, "this suite")) if some)


def _counted(claims: Sequence[ClaimResult], source: str) -> str:
    counted = {v: sum(c.verdict == v for c in claims) for v in dict.fromkeys(c.verdict for c in claims)}
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counted.items(), key=lambda pair: -pair[1]))
    return f"Of {plural(len(claims), 'claim')} of {source}: {verdicts}."


def _range(claim: ClaimResult) -> str:
    known = [v for v in claim.values.values() if v is not None]
    return f"({span(known, DIGITS[claim.id])})" if len(known) > 1 else "(one model)"
