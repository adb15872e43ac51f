"""The benchmark page names what was measured, what is a bound, and what was not measured or not run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench import exponents, table
from bench.ratios import STAGES, draw_ratios, installing, named, ratios
from bench.table import by_hand, on_a_gpu
from experiments import summary
from pipelines.paths import ROOT

BOUND = {
    "ours": 61.5, "theirs": 369.0, "ratio": 6.0, "ratio_range": [5.5, 6.2], "lower_bound": True, "seeds": 3, "unit": "s"
}  # fmt: skip


def test_a_lower_bound_is_written_as_one() -> None:
    for bound, written in ((True, "| 61.5 | > 369.0 | > 6.0 | s |"), (False, "| 61.5 | 369.0 | 6.0 | s |")):
        rows = {"phase_change_seconds.paper_recipe": BOUND | {"lower_bound": bound}}
        assert written in ratios(rows, "phase_change", "")
    said = summary.phase_change({"phase_change_seconds.plain_loop": BOUND})
    assert "was stopped after 6.0 times our seconds, when at least one of its 3 seeds had no phase change" in said
    changed = summary.phase_change({"phase_change_seconds.plain_loop": BOUND | {"lower_bound": False}})
    assert "takes 6.0 times our seconds (over 3 seeds 5.5 to 6.2)" in changed


def test_what_is_not_measured_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (table, exponents, summary):
        monkeypatch.setattr(module, "HERE", tmp_path)
    assert summary.phase_change({}) == "Not measured yet: `python -m experiments.phase_change`."
    assert "bench.growth" in exponents.growth()
    assert "bench.step_profile" in table.step_profile()
    assert ratios({}, "extract.", "python -m bench.circuits") == "Not measured yet: `python -m bench.circuits`."
    assert "pip install 'transformer_lens<4'" in installing({"gpu_step.gpu.matmul_peak": {}})
    assert installing({"gpu_step.gpu.transformerlens_float32": {}}) == ""
    assert "was not measured" in by_hand({})
    assert "make onset-law" in summary.onset_law()
    assert "experiments.dilution" in summary.dilution()
    assert on_a_gpu({}) == "Not measured yet: `python -m bench.train_step --only cuda`."


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
            "The law of mixtures held on repetitive prose: of 1 models, 0 had their phase change later than predicted, "
            "0 of them later than the 95 % interval.\n\n",
        ),
        (
            {"law": law, "chosen": {"0.05": law}},
            "5% of prose windows that repeat most: predicted 9.0 M (4.0 M to 20.0 M), found 3.00 M.",
        ),
        (
            {"law": law, "chosen": {"0.05": law | {"tokens": 2.5e6}}},
            "The law of mixtures did not hold on repetitive prose: of 1 models, 1 had their phase change later than "
            "predicted, 0 of them later",
        ),
        (
            {"law": law, "chosen": {"0.05": law | {"tokens": 2e6, "tokens_high": 2.5e6}}},
            "1 had their phase change later than predicted, 1 of them later",
        ),
    ):
        (tmp_path / "dilution.json").write_text(json.dumps({"saving": {"other": 0.1}, "cells": cells} | found))
        assert said in summary.dilution()
        assert "| 0.5 source code, 0.5 prose | 0.5 | none within 2.0 M |" in summary.dilution()
        assert "| source code alone | 0.5 | 1.50 M |" in summary.dilution()
        assert "| prose alone | 0.5 | none within 2.0 M |" in summary.dilution()
        assert "| prose alone, the 5% that repeat most | 0.5 | 3.00 M |" in summary.dilution()


def test_what_did_not_hold_stands_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "HERE", tmp_path)
    fits = {
        name: {"exponent": at, "low": at - 0.1, "high": at + 0.1} for name, at in (("batch", 0.4), ("context", 0.8))
    }
    found = {"law": 0.5, "batch_times_context": fits["batch"], "points": 12, "unchanged": 0} | fits
    (tmp_path / "onset_law.json").write_text(json.dumps(found))
    assert summary.onset_law().startswith("The law tokens ∝ √(batch · context) did not hold: batch and context do not")
    found |= {"context": {"exponent": 0.5, "low": 0.45, "high": 0.9}}
    (tmp_path / "onset_law.json").write_text(json.dumps(found))
    assert summary.onset_law().startswith("Batch and context may share an exponent")


def test_exponents_that_say_nothing_are_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponents, "HERE", tmp_path)
    monkeypatch.setattr(exponents, "draw_growth", lambda: None)
    fit = {"what": "step", "axis": "n_ctx", "of": "seconds", "exponent": 1.0, "counted": None, "limit": 2}
    fits = [fit | {"low": 0.6, "high": 1.4}, fit | {"what": "extract", "low": 0.4, "high": 1.6}]
    (tmp_path / "growth.json").write_text(json.dumps(fits))
    page = exponents.growth()
    assert "| training step, time | n_ctx | 1.0 (0.6 to 1.4) |" in page
    assert "wider than 1: extraction, time in n_ctx." in page
    assert page.count("extraction") == 1


def test_rows_have_readable_names() -> None:
    assert named("train_step.L2H4_batch16.plain_loop") == "training step, 2 layers, 4 heads, batch 16"
    assert named("train_step.L1H4_batch8.compiled") == "training step, 1 layer, 4 heads, batch 8"
    assert named("train_step.L0_batch8.matmul_peak") == "training step, 0 layers, batch 8"
    assert named("gpu_step.gpu.matmul_peak") == "training step, profile `gpu`, on a GPU"
    assert named("phase_change_seconds.paper_recipe") == "time to the phase change"


def test_every_row_that_is_kept_can_be_written(tmp_path: Path) -> None:
    results = json.loads((ROOT / "bench" / "results.json").read_text())
    tables = [ratios(results, stage, "") for stage in ("train_step.", "gpu_step.", "extract.", "phase_change")]
    assert sum(len(rows.splitlines()) - 2 for rows in tables) == len(results)
    assert {name.split(".")[0] for name in results} == set(STAGES)
    assert all("learning rates tried" in row for row in tables[3].splitlines()[2:])
    draw_ratios(dict(list(results.items())[:1]), tmp_path / "ratios.png")
    assert (tmp_path / "ratios.png").stat().st_size > 0


def test_every_place_of_the_template_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is written with what is stored, and its first paragraph has four sentences of result."""
    for name in ("results.json", "growth.json", "growth.csv", "README.template.md"):
        (tmp_path / name).write_bytes((ROOT / "bench" / name).read_bytes())
    for module in (table, exponents):
        monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(table, "needs", lambda: "")
    monkeypatch.setattr(exponents, "draw_growth", lambda: None)
    monkeypatch.setattr(table, "draw_ratios", lambda results, path: None)
    table.main()
    first = (tmp_path / "README.md").read_text().split("\n\n")[1]
    assert len(re.split(r"(?<=[a-z)])\. (?=[A-Z])", first)) == 4
    assert "Not measured" not in first
