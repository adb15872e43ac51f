"""A graph in which one model fails: the others and the report are made all the same, and nothing is made twice.

Each test continues where the previous one ended.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipelines.workspace import CELLS, TOKENS, edit, run, sh, started

BROKEN = "{train: {lr_embedding: 100, decay_embedding: 100}}"  # weights grow ten thousandfold per step


@pytest.fixture(scope="module")
def done(workspace: Path) -> subprocess.CompletedProcess[str]:
    """Make the training of one model diverge, and return what `make repro` printed."""
    edit(workspace / "conf" / "sweep" / "grid.yaml", "overrides: {} #", f"overrides: {{L1H2S0: {BROKEN}}} #")
    edit(workspace / "conf" / "config.yaml", "tracking: wandb #", "tracking: none #")  # which retrains nothing
    sh(workspace, sys.executable, "-m", "pipelines.compose")
    return run(workspace, sys.executable, "-m", "pipelines.repro", "--jobs=2")


def test_a_failing_model_stops_neither_the_others_nor_the_report(
    workspace: Path, done: subprocess.CompletedProcess[str]
) -> None:
    assert done.returncode != 0
    assert "L1H2S0: failed: L1H2S0: the loss is nan" in done.stderr
    assert "models: expected 8 models, got all but L1H2S0, whose errors are above" in done.stderr
    assert "the report was made without these models, and names them" in done.stderr
    metrics = json.loads((workspace / "reports" / "metrics.json").read_text())
    assert metrics["missing_cells"] == ["L1H2S0"]
    assert metrics["cells"]["L2H2S0"]["tokens_seen"] == TOKENS
    assert list(metrics["cells"]) == [name for name in CELLS if name != "L1H2S0"]
    first_screen = (workspace / "reports" / "README.md").read_text().split("![")[0]
    assert "Not in this report, without records: 1 layer · 2 heads · seed 0." in first_screen


def test_a_stale_params_file_stops_the_graph_before_any_work(
    workspace: Path, done: subprocess.CompletedProcess[str]
) -> None:
    edit(workspace / "conf" / "sweep" / "grid.yaml", BROKEN, "{train: {tokens: 15000}}")
    refused = run(workspace, sys.executable, "-m", "pipelines.repro")
    assert refused.returncode != 0
    assert "Running stage 'train" not in refused.stdout
    assert "params.yaml is stale against conf/" in refused.stderr
    assert "sweep.overrides.L1H2S0.train.tokens: params.yaml has '(absent)', conf/ has 15000" in refused.stderr


def test_what_was_missing_or_has_another_value_is_made_and_nothing_else(
    graph: Path, workspace: Path, done: subprocess.CompletedProcess[str]
) -> None:
    """The model that failed is trained with another number of tokens. All others keep their bytes."""
    sh(workspace, sys.executable, "-m", "pipelines.compose")
    said = sh(workspace, sys.executable, "-m", "pipelines.repro", "extract")
    assert {"train", "extract"} <= started(said)
    assert {line.split()[0] for line in said.splitlines() if "tokens, loss" in line} == {"L1H2S0"}
    seen = {n: json.loads((workspace / "circuits" / n / "summary.json").read_text())["tokens_seen"] for n in CELLS}
    assert {name for name, tokens in seen.items() if tokens != TOKENS} == {"L1H2S0"}
    for name in ("models", "circuits"):
        for made in sorted(p for p in (graph / name).rglob("*") if p.is_file()):
            if "L1H2S0" not in made.parts:
                assert made.read_bytes() == (workspace / made.relative_to(graph)).read_bytes(), made


def test_a_file_that_was_damaged_in_place_is_made_again_on_request(graph: Path, workspace: Path) -> None:
    """Store, output and cache are one file. DVC trusts what is read-only, so its objects go as well."""
    damaged = workspace / "circuits" / "L2H2S0" / "heads.parquet"
    name = json.loads(damaged.with_name("manifest.json").read_text())["name"]
    for path in (damaged, workspace / "runs" / "records" / name / "heads.parquet"):
        path.chmod(0o644)
        path.write_bytes(b"")
        path.chmod(0o444)
    shutil.rmtree(workspace / ".dvc" / "cache" / "files")
    said = sh(workspace, "dvc", "repro", "--force", "--single-item", "extract")
    assert [line.split()[0] for line in said.splitlines() if "20,480" in line] == ["L2H2S0"]
    assert damaged.read_bytes() == (graph / "circuits" / "L2H2S0" / "heads.parquet").read_bytes()
