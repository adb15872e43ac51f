"""The opening tables of the report: verdicts, measures, the protocol of tuning, and changes after freezing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathsum.claims import registry
from pathsum.claims.formatting import number, plural, span
from pathsum.claims.judging import OWN
from pathsum.claims.preregistration import Change, Preregistration
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.document import Column, Entry, Table, Text

FILE = "conf/claims.yaml"


def table(
    claims: Sequence[ClaimResult], results: Results, sections: Mapping[str, str], registered: Preregistration
) -> Table:
    """Return the table of verdicts: one row per claim, linked to its section by ``sections`` (title by theme)."""
    stated = registry.claims()
    return Table.of(
        claims,
        Text("claim", lambda c: Entry(c.claim, target=sections[stated[c.id].theme])),
        Text("verdict", "verdict", kind="verdict"),
        Column("ours", _ours),
        Text("reproduced if", lambda c: threshold(registered, c.id, c.threshold)),
        Column("chance", lambda c: stated[c.id].chance(results)),
        Text("papers", lambda c: stated[c.id].papers),
        Text("section of the paper", "section"),
        caption=f"{tally(claims)} A claim is judged on every model that it concerns. It is reproduced if all of these "
        "models pass, and partly reproduced if some do. Ours: the median over these models, with the range over models "
        "in brackets (not a confidence interval). Chance: the value without the effect that the claim is about. Each "
        "claim links to the section with its evidence. The table of measures below states how it is measured.",
        csv="claims.csv",
        fold=False,
    )


def measures(claims: Sequence[ClaimResult]) -> Table:
    """Return the table of measures: how each claim is measured, and its result for each model."""
    return Table.of(
        claims,
        Text("claim", "claim"),
        Text("measure", "measure"),
        Text("models", "detail"),
        caption="How each claim is measured, and the result for its models.",
        csv="claims.csv",
    )


def tally(claims: Sequence[ClaimResult]) -> str:
    """Return a sentence that counts the verdicts on the claims of the papers, and one for the claims of this suite."""
    counts = []
    for source, own in (("the papers", False), ("this suite", True)):
        if verdicts := [c.verdict for c in claims if (c.section == OWN) == own]:
            some = sorted(dict.fromkeys(verdicts), key=verdicts.count, reverse=True)
            counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in some)
            counts.append(f"Of {plural(len(verdicts), 'claim')} of {source}: {counted}.")
    return " ".join(counts)


def _ours(claim: ClaimResult) -> str:
    digits = registry.claims()[claim.id].digits
    known = [v for v in claim.values.values() if v is not None]
    return f"{number(claim.value, digits)} ({span(known, digits) if len(known) > 1 else 'one model'})"


# ---- preregistration ------------------------------------------------------------------------------------------------


def threshold(registered: Preregistration, claim: str, now: str) -> str:
    """Return the threshold of ``claim``, with a note on each change after freezing."""
    return "; ".join([now, *(_note(change) for change in registered.of(claim))])


def _note(change: Change) -> str:
    values = f": {_text(change.old)} before, {_text(change.new)} after" if change.old != change.new else ""
    return {
        "threshold": f"since {change.date}; before: {_text(change.old)}",
        "measure": f"measure changed on {change.date}",
        "computation": f"computation changed on {change.date}{values}",
        "added": f"added after freezing, {change.date}",
        "removed": "",
    }[change.what]


def protocol(registered: Preregistration, results: Results) -> Table:
    """Return the table of the protocol: what was tuned, and on which data and seeds."""
    rows = list(registered.protocol.statements.items())
    cells = [*results.cells.values(), *results.controls.values()]
    tuned = registered.tuned(c.summary.seed for c in cells)
    if names := [f"{c.name} (seed {c.summary.seed})" for c in cells if c.summary.seed in tuned]:
        rows.append(("Judged on seeds that were tuned on", ", ".join(names)))
    since = f"{plural(len(registered.changes), 'change')} since" if registered.changes else "nothing has changed since"
    state = (
        "Not frozen: protocol, measures and thresholds may still change."
        if registered.frozen is None
        else f"Protocol, measures and thresholds were frozen on {registered.frozen}, before the grid ran; {since} "
        f"({FILE}, SHA-256 {registered.sha256}…)."
    )
    return Table.of(
        rows,
        Text("subject", lambda subject, _: subject),
        Text("protocol", lambda _, text: text),
        caption=f"What was tuned, and on which data. {state}",
        source="claims",
        fold=False,
    )


def changes(registered: Preregistration) -> Table:
    """Return the table of changes after freezing."""
    return Table.of(
        registered.changes,
        Text("claim", "claim"),
        Text("date", lambda c: str(c.date)),
        Text("what", "what"),
        Text("before the change", lambda c: _text(c.old)),
        Text("after the change", lambda c: _text(c.new)),
        Text("why", "why"),
        caption="Changes of claims after freezing.",
        source="claims",
        fold=False,
    )


def _text(value: str | float) -> str:
    return value or "–" if isinstance(value, str) else number(value, 3)
