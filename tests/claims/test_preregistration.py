"""Claims are judged as they were frozen, or every later change is listed. Tuning seeds and verdict seeds are
disjoint."""

from __future__ import annotations

import datetime
import hashlib
from pathlib import Path

import pytest
import yaml

from pathsum.claims.preregistration import (
    Change,
    FrozenClaim,
    Preregistration,
    Protocol,
    read_preregistration,
    require_as_frozen,
)
from pathsum.config import ConfigError

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


def test_without_a_file_nothing_is_frozen(tmp_path: Path) -> None:
    assert read_preregistration(tmp_path / "claims.yaml") == Preregistration()


def test_the_file_is_known_by_its_hash_and_its_mistakes_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"frozen": DAY, "claims": {"a": {"measure": "m", "threshold": "t"}}}))
    found = read_preregistration(path)
    assert (found.frozen, found.sha256) == (DAY, hashlib.sha256(path.read_bytes()).hexdigest()[:12])
    assert Preregistration.model_validate_json(found.model_dump_json()) == found
    path.write_text("{frozen: 2025-03-07, changes: [{claim: a, date: 2025-03-08, what: wording, wy: x}]}")
    with pytest.raises(ConfigError) as caught:
        read_preregistration(path)
    assert "claims.yaml.changes.0.what: expected 'threshold'" in str(caught.value)
    assert "claims.yaml.changes.0.why: is required and was not given" in str(caught.value)
    path.write_text("frozen: 2025-02-30")
    with pytest.raises(ValueError, match=r"claims.yaml: expected YAML, got something else \(day is out of range"):
        read_preregistration(path)
