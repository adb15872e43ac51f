"""Tests of the clock of the committed results: the report shows it on these results only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pathsum.report.answer import setup
from pipelines.reference_run import computed, fingerprint
from tests.pipelines.configured import check, copy
from tests.report.conftest import made_up_results

WEIGHTS = {"L1H2S5": "aa", "L2H4S5": "bb"}
VALUES = "{weights: '%s', date: 2026-02-03, minutes: 41, processor: two cores}"


def clock(folder: Path, weights: dict[str, str], text: str = VALUES) -> dict[str, str]:
    path = folder / "reference_run.yaml"
    path.write_text(text % fingerprint(WEIGHTS) if "%s" in text else text)
    return computed(path, weights)


def test_the_clock_is_shown_on_results_with_its_weights(tmp_path: Path) -> None:
    found = clock(tmp_path, dict(reversed(WEIGHTS.items())))
    assert found == {
        "weights_fingerprint": fingerprint(WEIGHTS),
        "computed": "on 2026-02-03 in 41 minutes on two cores",
    }
    results = made_up_results()
    shown = setup(replace(results, provenance=results.provenance | found))
    assert shown.endswith(" · computed on 2026-02-03 in 41 minutes on two cores.")


def test_minutes_that_were_not_measured_are_left_out(tmp_path: Path) -> None:
    found = clock(tmp_path, WEIGHTS, VALUES.replace(", minutes: 41", ""))
    assert found["computed"] == "on 2026-02-03 on two cores"


@pytest.mark.parametrize("other", [{}, {"L1H2S5": "aa"}, {"L1H2S5": "bb", "L2H4S5": "aa"}, WEIGHTS | {"L2H4S5": "bc"}])
def test_other_weights_have_no_clock(tmp_path: Path, other: dict[str, str]) -> None:
    found = clock(tmp_path, other)
    assert found == {"weights_fingerprint": fingerprint(other)}
    assert found["weights_fingerprint"] != fingerprint(WEIGHTS)
    assert "computed" not in setup(made_up_results())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (VALUES.replace("02-03", "02-30"), "date: expected a date from 2021-12-22"),
        (VALUES.replace("2026-02-03", "0"), "date: expected a date from 2021-12-22"),
        (VALUES.replace("41", "0"), "minutes: expected at least 1, got 0"),
        (VALUES.replace("two cores", "''"), "processor: expected a text that is not empty"),
        (VALUES.replace("%s", "zz"), "weights: expected 16 digits of 0 to 9 and a to f, got 'zz'"),
        (VALUES.replace(", processor: two cores", ""), "processor: is required"),
        (VALUES.replace("two cores", "two, cores: 2"), "cores: no such setting"),
        ("", "weights: is required"),
        ("{", "expected settings by name"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        clock(tmp_path, WEIGHTS, text)
    assert "reference_run.yaml" in str(caught.value)


def test_the_check_finds_a_mistake_in_it_before_any_work(tmp_path: Path) -> None:
    (copy(tmp_path) / "conf" / "reference_run.yaml").write_text(VALUES.replace("41", "0") % fingerprint(WEIGHTS))
    found = check(tmp_path)
    assert found.returncode == 1
    assert "conf/reference_run.yaml.minutes: expected at least 1, got 0" in found.stderr
