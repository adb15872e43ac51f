"""The claims at a glance: verdict, value, threshold, chance level, and the value in the papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathsum.claims import registry
from pathsum.claims.formatting import number, plural, span
from pathsum.claims.judging import OWN
from pathsum.claims.preregistration import Preregistration
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.document import Column, Entry, Table, Text
from pathsum.report.preregistration import beside


def table(
    claims: Sequence[ClaimResult], results: Results, sections: Mapping[str, str], registered: Preregistration
) -> Table:
    """One row per claim, linked to the section of the theme that states it."""
    stated = registry.claims()
    return Table.of(
        claims,
        Text("claim", lambda c: Entry(c.claim, target=sections[stated[c.id].theme])),
        Text("verdict", "verdict", kind="verdict"),
        Column("ours", lambda c: f"{number(c.value, stated[c.id].digits)} {_range(c)}"),
        Text("reproduced if", lambda c: beside(registered, c.id, c.threshold)),
        Column("chance", lambda c: stated[c.id].chance(results)),
        Text("papers", lambda c: stated[c.id].papers),
        Text("section of the paper", "section"),
        caption=f"{tally(claims)} A claim is judged on every model that it concerns: reproduced if all of them pass, "
        "partly if some do. Ours: the median over those models, with the range over models in brackets (not a "
        "confidence interval). Chance: the value without the effect that the claim is about. Each claim links to its "
        "evidence; the table below says how it is measured.",
        csv="claims.csv",
        fold=False,
    )


def measures(claims: Sequence[ClaimResult]) -> Table:
    """How each claim was measured, and the result for each model."""
    return Table.of(
        claims,
        Text("claim", "claim"),
        Text("measure", "measure"),
        Text("models", "detail"),
        caption="How each claim is measured, and the result for its models.",
        csv="claims.csv",
    )


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
    return f"({span(known, registry.claims()[claim.id].digits)})" if len(known) > 1 else "(one model)"
