"""The claims and the protocol that were frozen before the grid was trained, and all later changes
(conf/claims.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, model_validator

from pathsum.config import Day, Frozen, Seeds


class FrozenClaim(Frozen):
    """The measure and the threshold of a claim, as the report prints them."""

    measure: str
    threshold: str


class Change(Frozen):
    """One change after freezing. ``old`` and ``new`` quote the threshold or the measure, or state measured values."""

    claim: str
    date: Day
    what: Literal["threshold", "measure", "computation", "retrained", "added", "removed"]
    why: Annotated[str, Field(pattern=r"\S")]
    old: str | FiniteFloat = ""
    new: str | FiniteFloat = ""


class Protocol(Frozen):
    """The protocol: how models were tuned and how claims are judged."""

    tuning_seeds: Seeds = ()  # excluded from verdicts
    statements: Mapping[str, str] = Field(default_factory=dict)  # heading: sentences, as the report prints them


class Preregistration(Frozen):
    """The frozen claims and protocol. ``frozen`` is the date; None means that nothing is frozen."""

    frozen: Day | None = None
    protocol: Protocol = Protocol()
    claims: Mapping[str, FrozenClaim] = Field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    sha256: str = ""  # of the file, first 12 digits; not written in it

    @model_validator(mode="after")
    def _changes_follow_freezing(self) -> Preregistration:
        if self.frozen is None and (self.claims or self.changes):
            raise ValueError("expected a date under `frozen`, because claims or changes are listed, got none")
        if early := [change for change in self.changes if self.frozen and change.date < self.frozen]:
            raise ValueError(
                f"expected changes after the claims were frozen on {self.frozen}, got one of {early[0].claim} on "
                f"{early[0].date}"
            )
        return self

    def of(self, claim: str) -> list[Change]:
        """Return the changes of one claim, in the order of the file."""
        return [change for change in self.changes if change.claim == claim]

    def tuned(self, seeds: Iterable[int]) -> list[int]:
        """Return the ``seeds`` that were used for tuning, in ascending order."""
        return sorted(set(seeds) & set(self.protocol.tuning_seeds))


def require_as_frozen(registered: Preregistration, claims: Mapping[str, FrozenClaim]) -> None:
    """Raise ValueError if claims were frozen, and ``claims`` differ from them by more than the listed changes, or a
    listed change is wrong."""
    if registered.frozen is None or not (found := _departures(registered, claims)):
        return
    raise ValueError(
        "\n".join([f"the claims differ from those frozen on {registered.frozen} (conf/claims.yaml):", *found])
        + "\nUndo the change, or list it under `changes` in conf/claims.yaml: {claim, date, what: threshold, "
        "measure, computation, retrained, added or removed, why, old, new}; the "
        "report then shows it next to the verdict."
    )


def _departures(registered: Preregistration, claims: Mapping[str, FrozenClaim]) -> list[str]:
    """Return one line for each wrong change, and for each difference after all listed changes."""
    state, found = dict(registered.claims), []
    for number, change in enumerate(registered.changes):
        where, name = f"  changes.{number} ({change.claim})", change.claim
        if change.what == "added" and name in state:
            found.append(f"{where}: added, but already frozen; list a change of its threshold or measure")
        elif change.what == "added":
            measure = claims[name].measure if name in claims else ""
            state[name] = FrozenClaim(measure=measure, threshold=str(change.new))
        elif name not in state:
            found.append(f"{where}: no such claim")
        elif change.what == "removed":
            del state[name]
        elif change.what in ("threshold", "measure"):
            if (was := getattr(state[name], change.what)) != change.old:
                found.append(f"{where}: old {change.what} expected {was!r}, got {change.old!r}")
            state[name] = state[name].model_copy(update={change.what: str(change.new)})
    for name in [*state, *(n for n in claims if n not in state)]:
        if name not in claims:
            found.append(f"  {name}: frozen, but no longer judged")
        elif name not in state:
            found.append(f"  {name}: judged, but not frozen")
        else:
            found += [
                f"  {name}.{key}: frozen as {was!r}, now {now!r}"
                for key, was in state[name]
                if (now := getattr(claims[name], key)) != was
            ]
    return found
