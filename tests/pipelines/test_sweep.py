"""Hydra's sweeps, its launchers and DVC's own commands on a graph whose results are up to date.

Each test continues where the previous one ended.
"""

import importlib.util
import json
import shlex
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.pipelines.workspace import TOKENS, commit, edit, run, sh, started
from tests.report.page.browser import CHROMIUM, Browser


def stored(folder: Path) -> set[str]:
    return {p.parent.name for p in (folder / "runs").glob("*/log.jsonl")}


def test_a_fresh_clone_pulls_every_result_and_has_nothing_to_do(workspace: Path, tmp_path: Path) -> None:
    sh(workspace, "dvc", "remote", "add", "--default", "store", str(tmp_path / "store"))
    sh(workspace, "dvc", "push")
    commit(workspace)
    sh(tmp_path, "git", "clone", "--quiet", str(workspace), "clone")
    clone = tmp_path / "clone"
    sh(clone, "dvc", "pull")
    out = sh(clone, sys.executable, "-m", "pipelines.repro")
    assert not started(out)
    assert "Data and pipelines are up to date." in out
    model = Path("models") / "L2H2S0" / "log.jsonl"
    assert (clone / model).read_bytes() == (workspace / model).read_bytes()
    sh(workspace, "dvc", "remote", "remove", "store")


def test_an_ad_hoc_sweep_and_the_graph_share_their_runs(workspace: Path) -> None:
    edit(workspace / "conf" / "config.yaml", "tracking: wandb #", "tracking: none #")
    before = stored(workspace)
    sweep = ("model.n_layers=0,2", "model.n_heads=2,1", "tracking=none")
    out = sh(workspace, sys.executable, "-m", "pipelines.train", "--multirun", *sweep)
    after = stored(workspace)
    assert len(after - before) == 1, out  # L2H1: L0 and L2H2 were there
    _, *table, advice, command = out[out.index("overrides  ") :].splitlines()[:7]
    assert [line.split()[:2] for line in table] == [
        [f"model.n_layers={n}", f"model.n_heads={h}"] for n in (0, 2) for h in (2, 1)
    ]
    assert advice == "To analyze the model with the lowest loss, on any TEXT:"
    given = dict(word.split("=", 1) for word in shlex.split(command)[2:])
    arguments = [f"--{name}={given[name.upper()]}" for name in ("weights", "tokenizer", "text")]
    sh(workspace, sys.executable, "-m", "pipelines.opened", *arguments, "--name=best")
    assert (workspace / "reports" / "best" / "index.html").is_file()
    shutil.rmtree(workspace / "reports" / "best")
    commit(workspace)
    out = sh(workspace, "dvc", "exp", "run", "-S", "sweep.n_heads=[2,1]", "train")
    assert {line.split()[0] for line in out.splitlines() if "tokens, loss" in line} == {"L1H1S0"}
    assert len(stored(workspace) - after) == 1, out  # L1H1: the sweep has trained L2H1


@pytest.mark.parametrize(("launcher", "needs"), [("joblib", "joblib"), ("submitit_local", "submitit"), ("ray", "ray")])
def test_a_launcher_runs_models_side_by_side_and_a_failing_one_stops_no_other(
    workspace: Path, launcher: str, needs: str
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed: pip install 'pathsum[launchers]' or 'pathsum[ray]'")
    before = {p.name for p in (workspace / "runs").iterdir()}
    cells = (
        "model.n_layers=1",
        "model.n_heads=2",
        f"seed={len(launcher)}",
        "model.d_head=15,16",
        "model.positions=rotary",
    )
    launch = (sys.executable, "-m", "pipelines.train", "--multirun", f"hydra/launcher={launcher}", "tracking=none")
    done = run(workspace, *launch, "train.lr_attention=0.03", *cells)
    assert done.returncode == 1
    assert "model.d_head=15" in done.stderr, done.stderr[-2000:]
    assert "rotary positions need an even d_head, got 15" in done.stderr
    new = [p for p in (workspace / "runs").iterdir() if p.name not in before and p.name != "hydra"]
    table = done.stdout[done.stdout.index("overrides") :].splitlines()
    assert [line.split()[:2] for line in table[1:3]] == [["model.d_head=15", "failed"], ["model.d_head=16", "20,480"]]
    logs = [(p / "log.jsonl").read_text().splitlines()[-1] for p in new if (p / "log.jsonl").exists()]
    assert [seen for line in logs if (seen := json.loads(line)["tokens_seen"])] == [TOKENS]  # the other only began


def test_an_ad_hoc_run_is_named_by_its_overrides(workspace: Path) -> None:
    launch = (sys.executable, "-m", "pipelines.train", "tracking=wandb", "model.n_layers=1", "train.momentum=0.9")
    out = sh(workspace, *launch)
    (log,) = (workspace / "runs" / "wandb").glob("offline-run-*-L1H2S0-train.momentum=0.9-*")
    run = json.loads(sh(workspace, "wandb", "leet", "inspect", "--summary", "--json", str(log)))
    assert run["name"] == "L1H2S0 train.momentum=0.9 python smoke"
    assert run["config"]["overrides"] == "train.momentum=0.9"
    assert "L1H2S0 train.momentum=0.9  20,480 of 20,000 tokens" in out
    assert "L1H2S0 train.momentum=0.9: runs/" in out


@pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")
def test_dvc_draws_a_point_for_each_score_and_a_line_for_each_trained_model(workspace: Path, tmp_path: Path) -> None:
    sh(workspace, sys.executable, "-m", "pipelines.plots_template")
    sh(workspace, "dvc", "plots", "show")
    scores = pd.read_csv(workspace / "reports" / "tables" / "learning.csv").dropna(subset="best_prefix_matching")
    with Browser(tmp_path) as browser:
        browser.open(workspace / "dvc_plots" / "index.html")
        browser.until("document.querySelector('svg.marks')")
        points = browser.ask("document.querySelectorAll('.mark-symbol.role-mark path').length")
        lines = browser.ask("[...document.querySelectorAll('.mark-line path')].map((e) => e.getBBox().width)")
    assert browser.complaints == []
    assert browser.requests == [(workspace / "dvc_plots" / "index.html").as_uri()]
    assert points == len(scores) > 0
    assert sum(width > 100 for width in lines) == (scores["cell"].value_counts() > 1).sum() > 0
