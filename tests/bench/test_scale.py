"""The benchmark of many models: its grid has as many models as asked for, and its exponents are slopes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bench import scale
from pipelines.handwritten import read_preregistration
from pipelines.paths import PREREGISTERED, ROOT


def test_an_exponent_is_the_slope_between_the_two_largest_measured_numbers() -> None:
    rows = [
        {"models": 10, "check": 5.0, "repro": 1.0},
        {"models": 100, "check": 20.0, "repro": 2.0},
        {"models": 1000, "check": 2000.0, "repro": None},
    ]
    found = scale.exponents(rows)
    assert found["check"] == pytest.approx(2)
    assert found["repro"] == pytest.approx(0.30103)


def test_the_grid_has_as_many_models_as_asked_for_and_trains_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    scale.prepare(tmp_path, 120)
    profile = yaml.safe_load((tmp_path / "conf" / "profile" / "smoke.yaml").read_text())
    seeds = profile["sweep"]["seeds"]
    assert len(set(seeds)) == 120 - scale.CONTROLS
    assert not set(seeds) & set(read_preregistration(ROOT / PREREGISTERED).protocol.tuning_seeds)
    commands = [
        stage["do"]["cmd"]
        for stage in yaml.safe_load((tmp_path / "dvc.yaml").read_text())["stages"].values()
        if "do" in stage
    ]
    assert commands
    assert not any("python" in command for command in commands)


@pytest.mark.parametrize("name", scale.CORPUS)
def test_each_part_of_the_work_on_a_corpus_runs(name: str) -> None:
    assert scale.corpus(name, 100_000)["tokens"] == 100_000
