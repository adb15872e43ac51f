"""Tests of the clock of the committed results: the report shows it on these results only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pathsum.report.answer import setup
from pipelines.reference_run import computed, fingerprint
from tests.report.conftest import made_up_results

WEIGHTS = {"L1H2S2": "aa", "L2H4S2": "bb"}
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


@pytest.mark.parametrize("other", [{}, {"L1H2S2": "aa"}, {"L1H2S2": "bb", "L2H4S2": "aa"}, WEIGHTS | {"L2H4S2": "bc"}])
def test_other_weights_have_no_clock(tmp_path: Path, other: dict[str, str]) -> None:
    found = clock(tmp_path, other)
    assert found == {"weights_fingerprint": fingerprint(other)}
    assert found["weights_fingerprint"] != fingerprint(WEIGHTS)
    assert "computed" not in setup(made_up_results())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{weights: a, date: 2026-02-30, minutes: 41, processor: two cores}", "day is out of range"),
        ("{weights: a, date: 2026-02-03, minutes: 0, processor: two cores}", "minutes"),
        ("{weights: a, date: 2026-02-03, minutes: 41}", "processor"),
        ("{weights: a, date: 2026-02-03, minutes: 41, processor: two, cores: 2}", "cores"),
        ("", "expected"),
        ("{", "expected YAML"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        clock(tmp_path, WEIGHTS, text)
    assert "reference_run.yaml" in str(caught.value)
