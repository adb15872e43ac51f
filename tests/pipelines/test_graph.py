"""The whole graph on the smoke profile, in a scratch copy: it runs, and afterwards reruns exactly what changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.paths import ROOT

CELLS = ["L0S0", "L1H2S0", "L1H4S0", "L2H2S0", "L2H4S0"]


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "src"), str(folder)])
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if k not in ("DVC_EXP_NAME", "WANDB_MODE")}
    return {**kept, "PYTHONPATH": path, "PATH": tools, "PYTHONDONTWRITEBYTECODE": "1"}


def sh(folder: Path, *command: str) -> str:
    """The command's output; its failure is the test's."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def would_run(folder: Path) -> set[str]:
    """The stages that `dvc repro` would run now."""
    return started(sh(folder, "dvc", "repro", "--dry"))


def started(output: str) -> set[str]:
    """The stages that this output of `dvc repro` says it ran."""
    return {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smoke")
    sh(ROOT, "bash", "pipelines/smoke.sh", str(folder))
    return folder


def test_the_same_command_from_scratch_gives_the_same_bytes(graph: Path, tmp_path: Path) -> None:
    sh(ROOT, "bash", "pipelines/smoke.sh", str(tmp_path))
    drawn = sorted(p.name for p in (graph / "reports" / "figures").iterdir())
    compared = ["metrics.json", "index.html", "README.md", *(f"figures/{name}" for name in drawn)]
    for name in compared:
        assert (graph / "reports" / name).read_bytes() == (tmp_path / "reports" / name).read_bytes(), name


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_metrics_have_what_a_script_needs(graph: Path) -> None:
    metrics = json.loads((graph / "reports" / "metrics.json").read_text())
    assert list(metrics["cells"]) == CELLS
    keys = {
        "n_layers", "n_heads", "seed", "tokens_seen", "val_loss_nats", "in_context_loss_drop_nats", "prefix_matching",
        "previous_token", "copying_heads", "exactness", "onset_tokens",
    }  # fmt: skip
    for name, cell in metrics["cells"].items():
        assert keys <= set(cell), name
        assert cell["exactness"] < 1e-10
        assert cell["onset_tokens"] is None  # forty thousand tokens: the report must not claim a phase change
    assert metrics["cells"]["L0S0"]["prefix_matching"] is None
    assert {"name", "train_tokens", "val_tokens", "bigram_loss_nats", "unigram_loss_nats"} <= set(metrics["corpus"])
    assert metrics["corpus"]["bigram_loss_nats"] < metrics["corpus"]["unigram_loss_nats"]
    for claim in metrics["claims"].values():
        assert set(claim) == {"value", "threshold", "verdict"}
        assert claim["verdict"] in ("reproduced", "partly", "not", "not testable here")
    assert metrics["claims"]["two_layer_induction"]["verdict"] == "not"
    assert (graph / "reports" / "metrics.json").read_text() == json.dumps(
        metrics, sort_keys=True, indent=2, ensure_ascii=False
    ) + "\n"


def test_the_report_is_one_file_that_asks_for_nothing(graph: Path) -> None:
    page = (graph / "reports" / "index.html").read_text()
    assert "default-src 'none'" in page
    assert 'src="http' not in page
    assert (graph / "reports" / "README.md").read_text().splitlines()[1].startswith("# ")


def test_nothing_reruns_when_nothing_changed(graph: Path) -> None:
    assert would_run(graph) == set()


def test_a_comment_in_conf_retrains_nothing(graph: Path) -> None:
    edit(graph / "conf" / "train" / "muon.yaml", "tokens: ", "# a remark\ntokens: ")
    assert would_run(graph) == {"check"}
    sh(graph, "dvc", "repro")
    assert would_run(graph) == set()


def test_a_stale_params_file_stops_the_graph_before_any_work(graph: Path) -> None:
    edit(graph / "conf" / "sweep" / "grid.yaml", "overrides: {} #", "overrides: {L1H2S0: {train: {tokens: 30000}}} #")
    done = subprocess.run(
        ["dvc", "repro"], cwd=graph, env=environment(graph), capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "params.yaml is stale against conf/" in done.stderr
    assert "cells.L1H2S0.train.tokens: params.yaml has 40000, conf/ has 30000" in done.stderr


def test_one_changed_value_retrains_its_cell_alone(graph: Path) -> None:
    sh(graph, sys.executable, "-m", "pipelines.compose")
    stages = started(sh(graph, "dvc", "repro"))
    assert {s for s in stages if s.startswith(("train@", "extract@", "tokenize"))} == {"train@L1H2S0", "extract@L1H2S0"}
    metrics = json.loads((graph / "reports" / "metrics.json").read_text())
    assert {n for n, c in metrics["cells"].items() if c["tokens_seen"] != 40448} == {"L1H2S0"}


def test_an_ad_hoc_sweep_and_the_graph_share_their_runs(graph: Path) -> None:
    before = {p.name for p in (graph / "runs").iterdir()}
    sweep = ("model.n_layers=0,2", "model.n_heads=2,8", "tracking=off")
    out = sh(graph, sys.executable, "-m", "pipelines.train", "--multirun", *sweep)
    new = {p.name for p in (graph / "runs").iterdir() if (p / "log.jsonl").exists()} - before
    assert len(new) == 1, out  # L2H8: L0 and L2H2 were there
    sh(graph, "git", "add", "--all")
    sh(graph, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "scratch")
    out = sh(graph, "dvc", "exp", "run", "-S", "sweep.n_heads=[2,4,8]")
    assert (graph / "models" / "L2H8S0" / "log.jsonl").exists(), out
    assert "L1H8S0" in json.loads((graph / "reports" / "metrics.json").read_text())["cells"]


def test_the_joblib_launcher_runs_cells_side_by_side(graph: Path) -> None:
    launch = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "model.n_layers=0,1", "model.n_heads=2,4", "seed=7")
    sh(graph, sys.executable, "-m", "pipelines.train", "--multirun", *launch, "tracking=off")


def test_dvc_shows_metrics_params_and_plots(graph: Path) -> None:
    assert "L0S0" in sh(graph, "dvc", "metrics", "show", "--json")
    sh(graph, sys.executable, "-m", "pipelines.plots_template")
    sh(graph, "dvc", "plots", "show")
    page = (graph / "dvc_plots" / "index.html").read_text()
    assert "vegaEmbed" in page
    assert "<script src=" not in page
