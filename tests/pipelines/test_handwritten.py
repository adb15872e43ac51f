"""Files that are written by hand: read as they are, and every mistake in them is named."""

from __future__ import annotations

import datetime
import hashlib
import re
from pathlib import Path

import pytest
import yaml

from pathsum.claims.preregistration import Preregistration
from pathsum.config import ConfigError
from pipelines.handwritten import read_preregistration, read_settings

DAY = datetime.date(2025, 3, 7)


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


CLAIMS = "claims: {a: {measure: m, threshold: t}}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "claims.yaml: expected the protocol and the frozen claims, got nothing; put them back, or"),
        ("frozen: 2025-02-30", "claims.yaml.frozen: expected a date from 2021-12-22 to 2100-01-01, as YYYY-MM-DD, got"),
        ("frozen: 2026-W47", "claims.yaml.frozen: expected a date from 2021-12-22"),
        ("frozen: 20261122", "claims.yaml.frozen: expected a date from 2021-12-22"),
        ("frozen: 99", "claims.yaml.frozen: expected a date from 2021-12-22 to 2100-01-01, as YYYY-MM-DD, got 99"),
        ("frozen: 1066-10-14", "claims.yaml.frozen: expected a date from 2021-12-22"),
        ("frozen: 2999-01-01", "claims.yaml.frozen: expected a date from 2021-12-22"),
        ("frozen: 2025-03-07\nfrozen: 2025-03-08", "claims.yaml: expected settings by name, got something else (while"),
        ("{sha256: abc, frozen: 2025-03-07}", "claims.yaml.sha256: is computed from the file; remove it"),
        (CLAIMS, "expected a date under `frozen`, because claims or changes are listed"),
        ("frozen: 2025-03-07\n" + CLAIMS.replace("thresh", "tresh"), "claims.a.treshold: no such setting; did you"),
        (
            "{frozen: 2025-03-07, changes: [{claim: a, date: 2025-03-06, what: measure, why: x}]}",
            "expected changes after the claims were frozen on 2025-03-07, got one of a on 2025-03-06",
        ),
        (
            "{frozen: 2025-03-07, changes: [{claim: a, date: 2025-03-08, what: measure, why: ''}]}",
            "claims.yaml.changes.0.why: ",
        ),
        ("{frozen: 2025-03-07, changes: [{claim: a, date: 2025-03-08, what: measure, why: x, old: .nan}]}", ".old"),
        ("protocol: {tuning_seeds: [7, 7]}", "claims.yaml.protocol.tuning_seeds: expected different numbers, got"),
        ("protocol: {tuning_seeds: [-5]}", "claims.yaml.protocol.tuning_seeds.0: expected at least 0, got -5"),
        ("3", "claims.yaml: expected"),
        ("a: [", "claims.yaml: expected settings by name, got something else"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)):
        read_preregistration(path)


def test_a_date_is_one_whether_it_is_quoted_or_not(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    for text in ("frozen: 2025-03-07", "frozen: '2025-03-07'"):
        path.write_text(text)
        assert read_preregistration(path).frozen == DAY
    assert read_settings(path) == {"frozen": "2025-03-07"}
