"""The verdicts as the report prints them, and the section on preregistration: the protocol, and later changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathsum.claims import registry
from pathsum.claims.formatting import number, plural, span
from pathsum.claims.judging import NO_MODEL, OWN, near_threshold, without_head
from pathsum.claims.preregistration import Change, Preregistration
from pathsum.page.document import ClaimCard, ModelValue, Section, Table, Text
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult

FILE = "conf/claims.yaml"
PREREGISTRATION = "What was tuned, and on which data"
AFTER = "after the claims were frozen"


def card(claim: ClaimResult, results: Results, sections: Mapping[str, str], registered: Preregistration) -> ClaimCard:
    """Return the verdict on ``claim`` and all that it rests on."""
    stated = registry.claims()[claim.id]
    passing, known = len(claim.values) - len(claim.short), results.cells | results.controls
    return ClaimCard(
        claim=claim.claim,
        verdict=claim.verdict,
        value=_ours(claim),
        unit=stated.unit,
        threshold=claim.threshold,
        passing=f"{passing} of {plural(len(claim.values), 'model')}",
        remark=", retrained after a first verdict" if retrained(registered, claim.id) else "",
        chance=stated.chance(results),
        sample=stated.sample(results, [known[name] for name in claim.values]),
        papers=stated.papers,
        section=claim.section,
        measure=claim.measure,
        models=tuple(
            ModelValue(name, number(value, stated.digits), name not in claim.short, claim.notes.get(name, ""))
            for name, value in claim.values.items()
        ),
        note=" ".join(filter(None, (near_threshold(claim.unsure, len(claim.values)), without_head(claim.absent))))
        or ("" if claim.values else NO_MODEL),
        changes=notes(registered, claim.id),
        evidence=sections[stated.theme],
    )


def retrained(registered: Preregistration, claim: str) -> bool:
    """Return whether a listed change says that models were trained again after the verdict on ``claim``, an id, had
    been seen."""
    return any(change.what == "retrained" for change in registered.of(claim))


def tally(claims: Sequence[ClaimResult]) -> str:
    """Return a sentence that counts the verdicts on the claims of the papers, and one for the claims of this suite."""
    counts = []
    for source, own in (("the papers", False), ("our own", True)):
        if verdicts := [c.verdict for c in claims if (c.section == OWN) == own]:
            some = sorted(dict.fromkeys(verdicts), key=verdicts.count, reverse=True)
            counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in some)
            counts.append(f"Of {plural(len(verdicts), 'claim')} of {source}: {counted}.")
    return " ".join(counts)


def _ours(claim: ClaimResult) -> str:
    digits = registry.claims()[claim.id].digits
    known = [v for v in claim.values.values() if v is not None]
    return f"{number(claim.value, digits)} ({span(known, digits)})" if len(known) > 1 else number(claim.value, digits)


# ---- preregistration ------------------------------------------------------------------------------------------------


def notes(registered: Preregistration, claim: str) -> tuple[str, ...]:
    """Return a sentence on each change of ``claim`` after freezing, except its removal. Equal sentences occur once."""
    return tuple(dict.fromkeys(_note(change) for change in registered.of(claim) if change.what != "removed"))


def _note(change: Change) -> str:
    values = f" (values before: {_text(change.old)}; after: {_text(change.new)})" if change.old != change.new else ""
    return {
        "threshold": f"The threshold was changed on {change.date}, {AFTER}; before: {_text(change.old)}.",
        "measure": f"The measure was changed on {change.date}, {AFTER}.",
        "computation": f"The computation was changed on {change.date}, {AFTER}{values}.",
        "retrained": f"The models were trained again on {change.date}, after their verdict had been seen{values}.",
        "added": f"The claim was added on {change.date}, after the others were frozen.",
    }[change.what]


def preregistration(registered: Preregistration, results: Results) -> Section:
    """Return the section with the protocol (what was tuned, on which data and seeds) and all changes after freezing."""
    since = f"{plural(len(registered.changes), 'change')} since" if registered.changes else "nothing has changed since"
    state = (
        "Not frozen: protocol, measures and thresholds may still change."
        if registered.frozen is None
        else f"Protocol, measures and thresholds were frozen on {registered.frozen}, before the grid ran; {since} "
        f"({FILE}, SHA-256 {registered.sha256}…)."
    )
    return Section.of(PREREGISTRATION, (state,), (_protocol(registered, results), _changes(registered)))


def _protocol(registered: Preregistration, results: Results) -> Table:
    rows = list(registered.protocol.statements.items())
    cells = [*results.cells.values(), *results.controls.values()]
    tuned = registered.tuned(c.summary.seed for c in cells)
    if names := [f"{c.name} (seed {c.summary.seed})" for c in cells if c.summary.seed in tuned]:
        rows.append(("Judged on seeds that were tuned on", ", ".join(names)))
    return Table.of(
        rows,
        Text("subject", lambda subject, _: subject),
        Text("protocol", lambda _, text: text),
        caption="The protocol.",
        source="claims",
        fold=False,
    )


def _changes(registered: Preregistration) -> Table:
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
