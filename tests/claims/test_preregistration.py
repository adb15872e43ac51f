"""Claims are judged as they were frozen, or every later change is listed. Tuning seeds and verdict seeds are
disjoint."""

import datetime

import pytest

from pathsum.claims.preregistration import (
    Change,
    FrozenClaim,
    Preregistration,
    Protocol,
    require_as_frozen,
)

DAY = datetime.date(2025, 3, 7)
CLAIM = FrozenClaim(measure="prefix matching", threshold="≥ 0.4")
FROZEN = Preregistration(frozen=DAY, protocol=Protocol(tuning_seeds=(100, 101)), claims={"a": CLAIM, "b": CLAIM})


def changed(*changes: tuple[str, str, str, str]) -> Preregistration:
    """Return FROZEN with these changes listed, each as (claim, what, old, new)."""
    listed = tuple(Change(claim=c, date=DAY, what=w, why="why", old=o, new=n) for c, w, o, n in changes)  # type: ignore[arg-type]
    return FROZEN.model_copy(update={"changes": listed})


LOWER = FrozenClaim(measure="prefix matching", threshold="≥ 0.3")


def test_claims_as_they_were_frozen_pass() -> None:
    require_as_frozen(FROZEN, {"a": CLAIM, "b": CLAIM})


@pytest.mark.parametrize(
    ("now", "complaint"),
    [
        ({"a": LOWER, "b": CLAIM}, "a.threshold: frozen as '≥ 0.4', now '≥ 0.3'"),
        (
            {"a": CLAIM, "b": FrozenClaim(measure="loss", threshold="≥ 0.4")},
            "b.measure: frozen as 'prefix matching', now 'loss'",
        ),
        ({"a": CLAIM}, "b: frozen, but no longer judged"),
        ({"a": CLAIM, "b": CLAIM, "c": CLAIM}, "c: judged, but not frozen"),
    ],
)
def test_a_change_that_is_not_listed_is_an_error_that_says_what_to_do(
    now: dict[str, FrozenClaim], complaint: str
) -> None:
    with pytest.raises(ValueError, match="differ from those frozen on 2025-03-07") as caught:
        require_as_frozen(FROZEN, now)
    assert complaint in str(caught.value)
    assert "Undo the change, or list it under `changes` in conf/claims.yaml" in str(caught.value)
    require_as_frozen(FROZEN.model_copy(update={"frozen": None}), now)  # before freezing anything may change


def test_listed_changes_pass_one_after_another() -> None:
    now = {"a": LOWER, "c": CLAIM}
    steps = [("a", "threshold", "≥ 0.4", "≥ 0.5"), ("a", "threshold", "≥ 0.5", "≥ 0.3")]
    listed = [
        *steps,
        ("a", "computation", "0.61", "0.58"),
        ("a", "retrained", "0.06", "0.04"),
        ("b", "removed", "", ""),
        ("c", "added", "", "≥ 0.4"),
    ]
    require_as_frozen(changed(*listed), now)


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        (("a", "threshold", "≥ 0.5", "≥ 0.3"), r"changes.0 \(a\): old threshold expected '≥ 0.4', got '≥ 0.5'"),
        (("a", "threshold", "≥ 0.4", "≥ 0.2"), "a.threshold: frozen as '≥ 0.2', now '≥ 0.3'"),
        (("x", "measure", "", ""), r"changes.0 \(x\): no such claim"),
        (("a", "added", "", "≥ 0.3"), r"changes.0 \(a\): added, but already frozen"),
    ],
)
def test_a_change_listed_otherwise_than_it_was_made_is_an_error(
    listed: tuple[str, str, str, str], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        require_as_frozen(changed(listed), {"a": LOWER, "b": CLAIM})


def test_seeds_that_were_tuned_on_are_found() -> None:
    assert FROZEN.tuned([2, 101, 3, 101]) == [101]
    assert FROZEN.tuned([2, 3]) == []
