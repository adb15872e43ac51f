"""What was tuned, on what, and what has changed since the claims were frozen, as the report shows it."""

from __future__ import annotations

from collections.abc import Iterable

from pathsum.claims.formatting import number, plural
from pathsum.claims.preregistration import Change, Preregistration
from pathsum.records.results import Results
from pathsum.report.document import Table, Text

FILE = "conf/claims.yaml"


def tables(registered: Preregistration, results: Results) -> tuple[Table, ...]:
    """The protocol, and the changes after freezing where there are any."""
    return (_protocol(registered, results), *([_changes(registered.changes)] if registered.changes else []))


def beside(registered: Preregistration, claim: str, threshold: str) -> str:
    """``threshold``, and what was frozen where that has changed."""
    return "; ".join([threshold, *(_note(change) for change in registered.of(claim))])


def _note(change: Change) -> str:
    when = f"since {change.date}"
    return {
        "threshold": f"{when}; before: {_text(change.old)}",
        "measure": f"measure changed on {change.date}",
        "computation": f"computation changed on {change.date}{_values(change)}",
        "added": f"added after freezing, {change.date}",
        "removed": "",
    }[change.what]


def _values(change: Change) -> str:
    return f": {_text(change.old)} before, {_text(change.new)} after" if change.old != change.new else ""


def _protocol(registered: Preregistration, results: Results) -> Table:
    rows = list(registered.protocol.statements.items())
    if names := _tuned_on(registered, results):
        rows.append(("Judged on seeds that were tuned on", ", ".join(names)))
    return Table.of(
        rows,
        Text("subject", lambda subject, _: subject),
        Text("protocol", lambda _, text: text),
        caption=f"What was tuned, on what. {_state(registered)}",
        source="claims",
        fold=False,
    )


def _state(registered: Preregistration) -> str:
    if registered.frozen is None:
        return "Not frozen: protocol, measures and thresholds may still change."
    changes = (
        plural(len(registered.changes), "change") + " since" if registered.changes else "nothing has changed since"
    )
    return (
        f"Protocol, measures and thresholds were frozen on {registered.frozen}, before the grid ran; {changes} "
        f"({FILE}, SHA-256 {registered.sha256}…)."
    )


def _tuned_on(registered: Preregistration, results: Results) -> list[str]:
    cells = [*results.cells.values(), *results.controls.values()]
    tuned = registered.tuned(c.summary.seed for c in cells)
    return [f"{c.name} (seed {c.summary.seed})" for c in cells if c.summary.seed in tuned]


def _changes(changes: Iterable[Change]) -> Table:
    return Table.of(
        changes,
        Text("claim", "claim"),
        Text("date", lambda c: str(c.date)),
        Text("what", "what"),
        Text("frozen or before", lambda c: _text(c.old)),
        Text("now", lambda c: _text(c.new)),
        Text("why", "why"),
        caption="Changed after freezing.",
        source="claims",
        fold=False,
    )


def _text(value: str | float) -> str:
    return value or "–" if isinstance(value, str) else number(value, 3)
