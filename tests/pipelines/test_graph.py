"""The whole graph on the smoke profile, in a scratch copy: it runs, and afterwards reruns exactly what changed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.paths import ROOT

CELLS = ["L0S0", "L1H2S0", "L1H4S0", "L2H2S0", "L2H4S0"]


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "src"), str(folder)])
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if k not in ("DVC_EXP_NAME", "WANDB_MODE")}
    return {**kept, "PYTHONPATH": path, "PATH": tools, "PYTHONDONTWRITEBYTECODE": "1"}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def sh(folder: Path, *command: str) -> str:
    """The command's output; its failure is the test's."""
    done = run(folder, *command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def commit(folder: Path) -> None:
    sh(folder, "git", "add", "--all")
    sh(folder, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "scratch")


def locked(folder: Path) -> Any:
    """Every stage's command, dependencies, parameters and outputs, by hash."""
    return yaml.safe_load((folder / "dvc.lock").read_text())["stages"]


def would_run(folder: Path) -> set[str]:
    """The stages that `dvc repro` would run now."""
    return started(sh(folder, "dvc", "repro", "--dry"))


def started(output: str) -> set[str]:
    """The stages that this output of `dvc repro` says it ran."""
    return {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smoke")
    sh(ROOT, "env", "JOBS=1", "bash", "pipelines/smoke.sh", str(folder))
    return folder


def test_two_models_at_a_time_give_the_same_bytes_as_one_after_another(graph: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(graph, again, symlinks=True)
    shutil.rmtree(again / "runs")
    shutil.rmtree(again / ".dvc" / "cache" / "runs")  # what DVC would take the outputs from
    lock = locked(again)
    for name in ("L2H2S0", "L2H4S0"):
        shutil.rmtree(again / "models" / name)
        shutil.rmtree(again / "circuits" / name)
        del lock[f"train@{name}"], lock[f"extract@{name}"]
    (again / "dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": lock}))
    sh(again, sys.executable, "-m", "pipelines.repro", "2")
    assert sum((run / "log.jsonl").exists() for run in (again / "runs").iterdir()) == 2  # both were trained again
    assert locked(graph) == locked(again)  # no entry is lost, and each weight and record is the same
    for name in ("models", "circuits"):
        for made in sorted((graph / name).rglob("*")):
            assert made.is_dir() or made.read_bytes() == (again / made.relative_to(graph)).read_bytes(), made


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
    assert {
        "name",
        "train_tokens",
        "tuning_tokens",
        "verdict_tokens",
        "judged_documents",
        "judged_windows",
        "bigram_loss_nats",
        "unigram_loss_nats",
    } <= set(metrics["corpus"])
    assert metrics["corpus"]["bigram_loss_nats"] < metrics["corpus"]["unigram_loss_nats"]
    for claim in metrics["claims"].values():
        assert set(claim) == {"value", "threshold", "verdict"}
        assert claim["verdict"] in ("reproduced", "partly", "not", "not testable here")
    assert metrics["claims"]["two_layer_induction"]["verdict"] == "not"
    assert (graph / "reports" / "metrics.json").read_text() == json.dumps(
        metrics, sort_keys=True, indent=2, ensure_ascii=False
    ) + "\n"
    assert metrics["provenance"]["trained_on"].startswith(metrics["provenance"]["machine"])


def test_the_report_is_one_file_that_asks_for_nothing(graph: Path) -> None:
    page = (graph / "reports" / "index.html").read_text()
    assert "default-src 'none'" in page
    assert 'src="http' not in page
    assert (graph / "reports" / "README.md").read_text().splitlines()[1].startswith("# ")


def test_nothing_reruns_when_nothing_changed(graph: Path) -> None:
    assert would_run(graph) == set()


def test_a_comment_in_conf_retrains_nothing(graph: Path) -> None:
    edit(graph / "conf" / "train" / "muon.yaml", "momentum: ", "# a remark\nmomentum: ")
    assert would_run(graph) == {"check"}
    sh(graph, "dvc", "repro")
    assert would_run(graph) == set()


def test_a_stale_params_file_stops_the_graph_before_any_work(graph: Path) -> None:
    edit(graph / "conf" / "sweep" / "grid.yaml", "overrides: {} #", "overrides: {L1H2S0: {train: {tokens: 30000}}} #")
    done = run(graph, sys.executable, "-m", "pipelines.repro", "2")
    assert done.returncode != 0
    assert "Running stage 'train" not in done.stdout
    assert "params.yaml is stale against conf/" in done.stderr
    assert "cells.L1H2S0.train.tokens: params.yaml has 40000, conf/ has 30000" in done.stderr


def test_one_changed_value_retrains_its_cell_alone(graph: Path) -> None:
    sh(graph, sys.executable, "-m", "pipelines.compose")
    stages = started(sh(graph, "dvc", "repro"))
    assert {s for s in stages if s.startswith(("train@", "extract@", "tokenize"))} == {"train@L1H2S0", "extract@L1H2S0"}
    metrics = json.loads((graph / "reports" / "metrics.json").read_text())
    assert {n for n, c in metrics["cells"].items() if c["tokens_seen"] != 40448} == {"L1H2S0"}


@pytest.mark.parametrize("jobs", ["2", "1"])
def test_a_failing_cell_stops_neither_the_others_nor_the_report(graph: Path, jobs: str) -> None:
    broken = "{train: {lr_embedding: 1.0e+38, lr_attention: 1.0e+38}}"
    conf = graph / "conf" / "sweep" / "grid.yaml"
    if jobs == "2":
        edit(conf, "{L1H2S0: {train: {tokens: 30000}}}", f"{{L1H2S0: {{train: {{tokens: 40000}}}}, L1H4S0: {broken}}}")
    sh(graph, sys.executable, "-m", "pipelines.compose")
    done = run(graph, sys.executable, "-m", "pipelines.repro", jobs)
    assert done.returncode == 1
    assert "error: L1H4S0: the loss is nan" in done.stderr
    assert "expected 11 cells, got all but L1H4S0, whose errors are above" in done.stderr
    metrics = json.loads((graph / "reports" / "metrics.json").read_text())
    assert metrics["missing_cells"] == ["L1H4S0"]
    assert metrics["cells"]["L1H2S0"]["tokens_seen"] == 40448  # made beside the one that failed
    assert list(metrics["cells"]) == [name for name in CELLS if name != "L1H4S0"]
    first_screen = (graph / "reports" / "README.md").read_text().split("![")[0]
    assert "1 declared model left no records and is not in this report: L1H4S0." in first_screen
    if jobs == "1":
        edit(conf, f", L1H4S0: {broken}", "")
        sh(graph, sys.executable, "-m", "pipelines.compose")
        out = sh(graph, sys.executable, "-m", "pipelines.repro", "1")
        assert not {s for s in started(out) if s.startswith(("train@", "extract@"))} - {
            "train@L1H4S0",
            "extract@L1H4S0",
        }
        assert json.loads((graph / "reports" / "metrics.json").read_text())["missing_cells"] == []


def test_an_ad_hoc_sweep_and_the_graph_share_their_runs(graph: Path) -> None:
    before = {p.name for p in (graph / "runs").iterdir()}
    sweep = ("model.n_layers=0,2", "model.n_heads=2,8", "tracking=none")
    out = sh(graph, sys.executable, "-m", "pipelines.train", "--multirun", *sweep)
    new = {p.name for p in (graph / "runs").iterdir() if (p / "log.jsonl").exists()} - before
    assert len(new) == 1, out  # L2H8: L0 and L2H2 were there
    commit(graph)
    out = sh(graph, "dvc", "exp", "run", "-S", "sweep.n_heads=[2,4,8]")
    assert (graph / "models" / "L2H8S0" / "log.jsonl").exists(), out
    assert "L1H8S0" in json.loads((graph / "reports" / "metrics.json").read_text())["cells"]


@pytest.mark.parametrize(
    ("launcher", "needs"), [("joblib", "joblib"), ("submitit_local", "submitit"), ("ray_local", "ray")]
)
def test_a_launcher_runs_cells_side_by_side_and_a_failing_one_stops_no_other(
    graph: Path, launcher: str, needs: str
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed: pip install 'pathsum[launchers]' or 'pathsum[ray]'")
    before = {p.name for p in (graph / "runs").iterdir()}
    cells = ("model.n_layers=1", "model.n_heads=2", f"seed={len(launcher)}", "train.lr_embedding=1e38,0.004")
    launch = (sys.executable, "-m", "pipelines.train", "--multirun", f"hydra/launcher={launcher}", "tracking=none")
    done = run(graph, *launch, "train.lr_attention=0.03", *cells)
    assert done.returncode == 1
    assert "train.lr_embedding=1e+38" in done.stderr, done.stderr[-2000:]
    new = [p for p in (graph / "runs").iterdir() if p.name not in before and p.name != "hydra"]
    logs = [(p / "log.jsonl").read_text().splitlines()[-1] for p in new if (p / "log.jsonl").exists()]
    assert [json.loads(line)["tokens_seen"] for line in logs if json.loads(line)["step"] == 79] == [40448]


def test_the_slurm_launcher_composes(graph: Path) -> None:
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("submitit is not installed: pip install 'pathsum[launchers]'")
    shown = sh(graph, sys.executable, "-m", "pipelines.train", "hydra/launcher=slurm", "--cfg", "hydra")
    launcher = yaml.safe_load(shown)["hydra"]["launcher"]
    assert launcher["_target_"].endswith("SlurmLauncher")
    assert (launcher["cpus_per_task"], launcher["max_num_timeout"]) == (2, 9)


def test_a_fresh_clone_pulls_every_result_and_has_nothing_to_do(graph: Path, tmp_path: Path) -> None:
    sh(graph, "dvc", "repro")
    sh(graph, "dvc", "remote", "add", "--default", "store", str(tmp_path / "store"))
    sh(graph, "dvc", "push")
    commit(graph)
    sh(tmp_path, "git", "clone", "--quiet", str(graph), "clone")
    clone = tmp_path / "clone"
    sh(clone, "dvc", "pull")
    out = sh(clone, sys.executable, "-m", "pipelines.repro", "1")
    assert not started(out)
    assert "Data and pipelines are up to date." in out
    model = Path("models") / "L2H2S0" / "log.jsonl"
    assert (clone / model).read_bytes() == (graph / model).read_bytes()
    shutil.rmtree(tmp_path / "store")


def test_dvc_shows_metrics_params_and_plots(graph: Path) -> None:
    assert "L0S0" in sh(graph, "dvc", "metrics", "show", "--json")
    assert "best_prefix_matching" in sh(graph, "dvc", "plots", "show", "--json")
    assert "train.tokens" in sh(graph, "dvc", "exp", "show", "--csv")
    sh(graph, sys.executable, "-m", "pipelines.plots_template")
    sh(graph, "dvc", "plots", "show")
    page = (graph / "dvc_plots" / "index.html").read_text()
    assert "vegaEmbed" in page
    assert "<script src=" not in page
