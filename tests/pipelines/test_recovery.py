"""A graph in which two models are missing and a third one fails: the others and the report are made all the same.

Each test continues where the previous one ended.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.pipelines.workspace import CELLS, TOKENS, edit, locked, run, sh, started

BROKEN = "{train: {lr_embedding: 100, decay_embedding: 100}}"  # weights grow ten thousandfold per step
AGAIN = ("L2H2S0", "untrained")


def runs_like(folder: Path, name: str) -> list[Path]:
    """Return the stored runs with this model's loss curve."""
    curve = (folder / "models" / name / "log.jsonl").read_bytes()
    return [p.parent for p in (folder / "runs").glob("*/log.jsonl") if p.read_bytes() == curve]


@pytest.fixture(scope="module")
def done(workspace: Path) -> subprocess.CompletedProcess[str]:
    """Delete two models, make the training of a third one diverge, run two at a time, and return what that printed."""
    shutil.rmtree(workspace / ".dvc" / "cache" / "runs")  # what DVC would take the outputs from
    lock = locked(workspace)
    for name in AGAIN:
        (stored,) = runs_like(workspace, name)
        shutil.rmtree(stored)
        shutil.rmtree(workspace / "models" / name)
        shutil.rmtree(workspace / "circuits" / name)
        del lock[f"train@{name}"], lock[f"extract@{name}"]
    (workspace / "dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": lock}))
    edit(workspace / "conf" / "sweep" / "grid.yaml", "overrides: {} #", f"overrides: {{L1H2S0: {BROKEN}}} #")
    edit(workspace / "conf" / "config.yaml", "tracking: wandb #", "tracking: none #")  # which retrains nothing
    sh(workspace, sys.executable, "-m", "pipelines.compose")
    return run(workspace, sys.executable, "-m", "pipelines.repro", "2")


def test_two_models_at_a_time_give_the_same_bytes_as_one_after_another(
    graph: Path, workspace: Path, done: subprocess.CompletedProcess[str]
) -> None:
    """A third model fails at the same time and leaves nothing."""
    assert all(len(runs_like(workspace, name)) == 1 for name in AGAIN)  # both were trained again
    before, after = locked(graph), locked(workspace)
    assert before.keys() == after.keys()  # no entry is lost
    for name in set(before) - {"check", "verify", "report", "train@L1H2S0", "extract@L1H2S0"}:
        assert before[name] == after[name], name  # each weight and record is the same
    for name in ("models", "circuits"):
        for made in sorted(p for p in (graph / name).rglob("*") if p.is_file()):
            if "L1H2S0" not in made.parts:
                assert made.read_bytes() == (workspace / made.relative_to(graph)).read_bytes(), made


def test_a_failing_model_stops_neither_the_others_nor_the_report(
    workspace: Path, done: subprocess.CompletedProcess[str]
) -> None:
    assert done.returncode == 1
    assert "error: L1H2S0: the loss is nan" in done.stderr
    assert "expected 5 models, got all but L1H2S0, whose errors are above" in done.stderr
    metrics = json.loads((workspace / "reports" / "metrics.json").read_text())
    assert metrics["missing_cells"] == ["L1H2S0"]
    assert metrics["cells"]["L2H2S0"]["tokens_seen"] == TOKENS  # made beside the one that failed
    assert list(metrics["cells"]) == [name for name in CELLS if name != "L1H2S0"]
    first_screen = (workspace / "reports" / "README.md").read_text().split("![")[0]
    assert "1 declared model left no records and is not in this report: 1 layer · 2 heads · seed 0." in first_screen


def test_a_stale_params_file_stops_the_graph_before_any_work(
    workspace: Path, done: subprocess.CompletedProcess[str]
) -> None:
    edit(workspace / "conf" / "sweep" / "grid.yaml", BROKEN, "{train: {tokens: 15000}}")
    refused = run(workspace, sys.executable, "-m", "pipelines.repro", "2")
    assert refused.returncode != 0
    assert "Running stage 'train" not in refused.stdout
    assert "params.yaml is stale against conf/" in refused.stderr
    assert "cells.L1H2S0.train.tokens: params.yaml has 20000, conf/ has 15000" in refused.stderr


def test_what_was_missing_or_has_another_value_is_made_and_nothing_else(
    workspace: Path, done: subprocess.CompletedProcess[str]
) -> None:
    """The model that failed is trained with another number of tokens."""
    sh(workspace, sys.executable, "-m", "pipelines.compose")
    stages = started(sh(workspace, sys.executable, "-m", "pipelines.repro", "--models", "1"))
    assert {s for s in stages if s.startswith(("train@", "extract@", "tokenize"))} == {"train@L1H2S0", "extract@L1H2S0"}
    seen = {n: json.loads((workspace / "circuits" / n / "summary.json").read_text())["tokens_seen"] for n in CELLS}
    assert {name for name, tokens in seen.items() if tokens != TOKENS} == {"L1H2S0"}
