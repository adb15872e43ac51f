"""The benchmark page names what was measured, what is a bound, and what was not measured or not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import table
from bench.table import ratios, untested
from experiments import summary
from pipelines.paths import ROOT

BOUND = {
    "ours": 61.5, "theirs": 369.0, "ratio": 6.0, "ratio_range": [5.5, 6.2], "lower_bound": True, "seeds": 3, "unit": "s"
}  # fmt: skip


def test_a_lower_bound_is_written_as_one() -> None:
    assert "| 61.5 | > 369.0 | > 6.0 | s |" in ratios({"phase_change_seconds.paper_recipe": BOUND})
    assert "| 61.5 | 369.0 | 6.0 | s |" in ratios({"phase_change_seconds.paper_recipe": BOUND | {"lower_bound": False}})
    said = summary.phase_change({"phase_change_seconds.plain_loop": BOUND})
    assert "was stopped after 6.0 times our seconds, when at least one of its 3 seeds had no phase change" in said
    changed = summary.phase_change({"phase_change_seconds.plain_loop": BOUND | {"lower_bound": False}})
    assert "takes 6.0 times our seconds (over 3 seeds 5.5 to 6.2)" in changed


def test_what_is_not_measured_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "HERE", tmp_path)
    monkeypatch.setattr(summary, "HERE", tmp_path)
    assert summary.phase_change({}) == "Not measured yet: `python -m experiments.phase_change`."
    assert "bench.growth" in table.growth()
    assert "make onset-law" in summary.onset_law()
    assert "experiments.dilution" in summary.dilution()
    assert "Untested on a GPU: `gpu` and `paper`." in untested({})
    assert "Untested on a GPU: `paper`." in untested({"train_step.gpu.matmul_peak": {}})


def test_a_model_that_has_not_changed_is_said_to_be_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "HERE", tmp_path)
    monkeypatch.setattr(summary, "HERE", tmp_path)
    seen = {"saving": 0.5, "tokens_seen": 2_000_000, "repetitive": 1.0}
    cells = [{"share": 1, "tokens": 1_500_000} | seen, {"share": 0.5, "tokens": None} | seen]
    cells += [{"share": 0, "tokens": None} | seen, {"share": 0, "tokens": 3_000_000} | seen | {"repetitive": 0.05}]
    law = {"exponent": -1.0, "exponent_low": -2.0, "exponent_high": -0.5}
    law |= {"tokens": 9e6, "tokens_low": 4e6, "tokens_high": 2e7}
    for found, said in (
        ({}, "Too few"),
        ({"law": law}, "9.0 M (4.0 M to 20.0 M); 95 % intervals, 2 models, of which 1"),
        ({"law": law}, "Models on prose alone had no phase change within 2.0 M tokens."),
        (
            {"law": law, "chosen": {"0.05": law}},
            "5% of prose windows that repeat most: predicted 9.0 M (4.0 M to 20.0 M), found 3.00 M. Models later than "
            "predicted: 0 of 1; later than the interval: 0.",
        ),
        (
            {"law": law, "chosen": {"0.05": law | {"tokens": 2.5e6}}},
            "Models later than predicted: 1 of 1; later than the interval: 0.",
        ),
        (
            {"law": law, "chosen": {"0.05": law | {"tokens": 2e6, "tokens_high": 2.5e6}}},
            "Models later than predicted: 1 of 1; later than the interval: 1.",
        ),
    ):
        (tmp_path / "dilution.json").write_text(json.dumps({"saving": {"other": 0.1}, "cells": cells} | found))
        assert said in summary.dilution()
        assert "| 0.5 source code, 0.5 prose | 0.5 | none within 2.0 M |" in summary.dilution()
        assert "| 1 source code | 0.5 | 1.50 M |" in summary.dilution()
        assert "| prose alone | 0.5 | none within 2.0 M |" in summary.dilution()
        assert "| prose alone, the 5% that repeat most | 0.5 | 3.00 M |" in summary.dilution()


def test_every_row_that_is_kept_can_be_written() -> None:
    results = table.json.loads((ROOT / "bench" / "results.json").read_text())
    assert len(ratios(results).splitlines()) == 2 + len(results)
