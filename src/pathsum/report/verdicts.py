"""The verdicts as the report prints them, and the section on preregistration: the protocol, and later changes."""

from collections.abc import Mapping, Sequence

import pandas as pd

from pathsum.claims import registry
from pathsum.claims.formatting import number, plural, span
from pathsum.claims.judging import OWN, remarks
from pathsum.claims.preregistration import Change, Preregistration
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import told
from pathsum.report.page.document import ClaimCard, Section
from pathsum.report.told import Frames

PREREGISTRATION = "What was tuned, and on which data"
CHANGES = {"claim": "claim", "date": "date", "what": "what", "old": "before the change", "new": "after the change",
           "why": "why"}  # fmt: skip


def card(claim: ClaimResult, results: Results, sections: Mapping[str, str], registered: Preregistration) -> ClaimCard:
    """Return the verdict on ``claim`` and all that it rests on."""
    stated = registry.claims()[claim.id]
    known = results.cells | results.controls
    values = {name: number(value, stated.digits) for name, value in claim.values.items()}
    measured = [value for value in claim.values.values() if value is not None]
    spread = f" ({span(measured, stated.digits)})" if len(measured) > 1 else ""
    return ClaimCard(
        result=claim,
        value=number(claim.value, stated.digits) + spread,
        values=values,
        unit=stated.unit,
        passing=told.passing(claim),
        remark=", retrained after a first verdict" * any(c.what == "retrained" for c in registered.of(claim.id)),
        chance=stated.chance(results),
        sample=stated.sample(results, [known[name] for name in claim.values]),
        papers=stated.papers,
        note=" ".join(remarks(claim.unsure, len(claim.values), claim.absent)),
        changes=notes(registered, claim.id),
        evidence=sections[stated.theme],
    )


def tally(claims: Sequence[ClaimResult]) -> str:
    """Return a sentence that counts the verdicts on the claims of the papers, and one for the claims of this suite."""
    counts = []
    for source, own in (("the papers", False), ("our own", True)):
        if verdicts := [c.verdict for c in claims if (c.section == OWN) == own]:
            some = sorted(dict.fromkeys(verdicts), key=verdicts.count, reverse=True)
            counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in some)
            counts.append(f"Of {plural(len(verdicts), 'claim')} of {source}: {counted}.")
    return " ".join(counts)


# ---- preregistration ------------------------------------------------------------------------------------------------


def notes(registered: Preregistration, claim: str) -> tuple[str, ...]:
    """Return a sentence on each change of ``claim`` after freezing, except its removal. Equal sentences occur once."""
    changes = [_printed(change) for change in registered.of(claim) if change.what != "removed"]
    return tuple(dict.fromkeys(told.paragraphs("chapters/changes", {"changes": changes})))


def preregistration(registered: Preregistration, results: Results) -> Section:
    """Return the section with the protocol (what was tuned, on which data and seeds) and all changes after freezing."""
    cells = Frames(results.cells | results.controls).cells
    tuned = cells.loc[cells["seed"].isin(registered.protocol.tuning_seeds), "seed"]
    late = {"Judged on seeds that were tuned on": ", ".join(f"{name} (seed {seed})" for name, seed in tuned.items())}
    protocol = dict(registered.protocol.statements) | (late if len(tuned) else {})
    changes = pd.DataFrame(map(_printed, registered.changes), columns=list(CHANGES)).rename(columns=CHANGES)
    shown = {
        "protocol": (pd.DataFrame(protocol.items(), columns=["subject", "protocol"]), "The protocol."),
        "changes": (changes, "Changes of claims after freezing."),
    }
    tables = {
        name: told.table(rows, caption, texts=rows.columns, source="claims", fold=False)
        for name, (rows, caption) in shown.items()
    }
    return told.section(PREREGISTRATION, "chapters/preregistration", {"registered": registered}, tables)


def _printed(change: Change) -> dict[str, str]:
    values = {name: getattr(change, name) for name in CHANGES}
    return {name: number(v, 3) if isinstance(v, float) else str(v) or "–" for name, v in values.items()}
