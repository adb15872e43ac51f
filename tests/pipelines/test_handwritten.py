"""Files that are written by hand: read as they are, and every mistake in them is named."""

import datetime
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pathsum.claims.preregistration import Preregistration
from pathsum.config import ConfigError
from pathsum.report.answer import setup
from pipelines.handwritten import computed, fingerprint, read_preregistration
from tests.report.conftest import made_up_results

DAY = datetime.date(2025, 3, 7)
CHANGE = "{frozen: 2025-03-07, changes: [{claim: a, date: 2025-03-08, what: measure, why: x}]}"
WEIGHTS = {"L1H2S5": "aa", "L2H4S5": "bb"}
RUN = f"{{weights: '{fingerprint(WEIGHTS)}', date: 2026-02-03, minutes: 41, processor: two cores}}"


def test_without_a_file_nothing_is_frozen(tmp_path: Path) -> None:
    assert read_preregistration(tmp_path / "claims.yaml") == Preregistration()


def test_the_file_is_known_by_its_hash_and_all_its_mistakes_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    for day in (DAY, str(DAY)):
        path.write_text(yaml.safe_dump({"frozen": day, "claims": {"a": {"measure": "m", "threshold": "t"}}}))
        found = read_preregistration(path)
        assert (found.frozen, found.sha256) == (DAY, hashlib.sha256(path.read_bytes()).hexdigest()[:12])
        assert Preregistration.model_validate_json(found.model_dump_json()) == found
    path.write_text(CHANGE.replace("measure", "wording").replace("why", "wy"))
    with pytest.raises(ConfigError) as caught:
        read_preregistration(path)
    assert "claims.yaml.changes.0.what: expected 'threshold'" in str(caught.value)
    assert "claims.yaml.changes.0.why: is required and was not given" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "claims.yaml: expected the protocol and the frozen claims, got nothing; put them back, or"),
        ("frozen: 2025-02-30", "claims.yaml.frozen: expected a date from 2021-12-22 to 2100-01-01, as YYYY-MM-DD, got"),
        ("frozen: 1066-10-14", "claims.yaml.frozen: expected a date from 2021-12-22"),
        ("frozen: 2025-03-07\nfrozen: 2025-03-08", "claims.yaml: expected settings by name, got something else (while"),
        ("{sha256: abc, frozen: 2025-03-07}", "claims.yaml.sha256: is computed from the file; remove it"),
        ("claims: {a: {measure: m, threshold: t}}", "expected a date under `frozen`, because claims or changes are"),
        ("claims: {a: {measure: m, treshold: t}}", "claims.a.treshold: no such setting; did you"),
        (CHANGE.replace("03-08", "03-06"), "expected changes after the claims were frozen on 2025-03-07, got one of a"),
        (CHANGE.replace("why: x", "why: ''"), "claims.yaml.changes.0.why: "),
        ("protocol: {tuning_seeds: [7, 7]}", "claims.yaml.protocol.tuning_seeds: expected different numbers, got"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)):
        read_preregistration(path)


def clock(folder: Path, weights: dict[str, str], text: str = RUN) -> dict[str, str]:
    (folder / "run.yaml").write_text(text)
    return computed(folder / "run.yaml", weights)


def test_the_report_shows_when_results_with_these_weights_were_computed(tmp_path: Path) -> None:
    found = clock(tmp_path, dict(reversed(WEIGHTS.items())))
    assert found == {
        "weights_fingerprint": fingerprint(WEIGHTS),
        "computed": "on 2026-02-03 in 41 minutes on two cores",
    }
    results = made_up_results()
    shown = setup(replace(results, provenance=results.provenance | found))
    assert shown.endswith(" · computed on 2026-02-03 in 41 minutes on two cores.")
    assert clock(tmp_path, WEIGHTS, RUN.replace(", minutes: 41", ""))["computed"] == "on 2026-02-03 on two cores"


@pytest.mark.parametrize("other", [{}, {"L1H2S5": "aa"}, {"L1H2S5": "bb", "L2H4S5": "aa"}, WEIGHTS | {"L2H4S5": "bc"}])
def test_other_weights_have_no_clock(tmp_path: Path, other: dict[str, str]) -> None:
    assert clock(tmp_path, other) == {"weights_fingerprint": fingerprint(other)}
    assert fingerprint(other) != fingerprint(WEIGHTS)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("02-03", "02-30", "date: expected a date from 2021-12-22"),
        ("41", "0", "minutes: expected at least 1, got 0"),
        ("two cores", "''", "processor: expected a text that is not empty"),
        (fingerprint(WEIGHTS), "zz", "weights: String should match pattern"),
        (", processor: two cores", "", "processor: is required"),
        ("two cores", "two, cores: 2", "cores: no such setting"),
    ],
)
def test_a_mistake_in_the_reference_run_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"run.yaml.{said}"):
        clock(tmp_path, WEIGHTS, RUN.replace(old, new))
