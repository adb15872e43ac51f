"""The whole graph on the smoke profile in a scratch copy: it runs, and then reruns exactly what has changed.

One graph is made, and each test continues where the previous one ended. The test that trains models again works on a
copy.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipelines.paths import ROOT
from tests.pipelines.workspace import commit, edit, locked, run, sh, stale, started, with_what_follows, would_run

CELLS = ["L0S0", "L1H2S0", "L2H2S0"]
CONTROLS = ["smeared", "untrained"]
TOKENS = 20480  # that each model sees: forty whole batches


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smoke")
    sh(ROOT, "env", "JOBS=1", "bash", "pipelines/smoke.sh", str(folder))
    return folder


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
        assert cell["onset_tokens"] is None  # twenty thousand tokens: the report must not claim a phase change
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


EXTRACTS = {f"extract@{name}" for name in (*CELLS, *CONTROLS)}
TRAINS = {f"train@{name}" for name in (*CELLS, *CONTROLS)}


@pytest.mark.parametrize(
    ("file", "directly", "in_the_end"),
    [
        ("report/figures/heads.py", {"report"}, {"report"}),
        (
            "circuits/atlas.py",
            EXTRACTS | {"calibrate"},
            EXTRACTS | {"calibrate", "verify", "report"},
        ),
        (
            "training/loop.py",
            TRAINS | EXTRACTS | {"calibrate"},
            TRAINS | EXTRACTS | {"calibrate", "verify", "report"},
        ),
    ],
    ids=["a caption", "a circuit", "training"],
)
def test_an_edit_makes_stale_what_depends_on_it_alone(
    graph: Path, file: str, directly: set[str], in_the_end: set[str]
) -> None:
    """A changed caption reruns the report alone. A changed circuit reruns extraction and calibration as well.

    A change in training reruns everything from training on.
    """
    path = graph / "src" / "pathsum" / file
    text = path.read_text()
    path.write_text(text + "# a remark\n")
    found = stale(graph)
    path.write_text(text)
    assert found == directly
    assert with_what_follows(found, locked(graph)) == in_the_end


def test_a_comment_in_conf_retrains_nothing(graph: Path) -> None:
    edit(graph / "conf" / "train" / "muon.yaml", "momentum: ", "# a remark\nmomentum: ")
    assert would_run(graph) == {"check"}
    sh(graph, "dvc", "repro")
    assert would_run(graph) == set()


BROKEN = "{train: {lr_embedding: 1.0e+38, lr_attention: 1.0e+38}}"
AGAIN = ("L2H2S0", "untrained")


def runs_like(folder: Path, name: str) -> list[Path]:
    """Return the stored runs with this model's loss curve."""
    curve = (folder / "models" / name / "log.jsonl").read_bytes()
    return [p.parent for p in (folder / "runs").glob("*/log.jsonl") if p.read_bytes() == curve]


@pytest.fixture(scope="module")
def again(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run a copy of the graph, two models at a time, and return what it printed.

    Two models are missing, and the configuration of a third one makes training diverge.
    """
    folder = tmp_path_factory.mktemp("again") / "smoke"
    shutil.copytree(graph, folder, symlinks=True)
    shutil.rmtree(folder / ".dvc" / "cache" / "runs")  # what DVC would take the outputs from
    lock = locked(folder)
    for name in AGAIN:
        (stored,) = runs_like(folder, name)
        shutil.rmtree(stored)
        shutil.rmtree(folder / "models" / name)
        shutil.rmtree(folder / "circuits" / name)
        del lock[f"train@{name}"], lock[f"extract@{name}"]
    (folder / "dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": lock}))
    edit(folder / "conf" / "sweep" / "grid.yaml", "overrides: {} #", f"overrides: {{L1H2S0: {BROKEN}}} #")
    edit(folder / "conf" / "config.yaml", "tracking: wandb #", "tracking: none #")  # which retrains nothing
    sh(folder, sys.executable, "-m", "pipelines.compose")
    return folder, run(folder, sys.executable, "-m", "pipelines.repro", "2")


def test_two_models_at_a_time_give_the_same_bytes_as_one_after_another(
    graph: Path, again: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    """A third model fails at the same time and leaves nothing."""
    folder, _ = again
    assert all(len(runs_like(folder, name)) == 1 for name in AGAIN)  # both were trained again
    before, after = locked(graph), locked(folder)
    assert before.keys() == after.keys()  # no entry is lost
    for name in set(before) - {"check", "verify", "report", "train@L1H2S0", "extract@L1H2S0"}:
        assert before[name] == after[name], name  # each weight and record is the same
    for name in ("models", "circuits"):
        for made in sorted(p for p in (graph / name).rglob("*") if p.is_file()):
            if "L1H2S0" not in made.parts:
                assert made.read_bytes() == (folder / made.relative_to(graph)).read_bytes(), made


@pytest.mark.parametrize("jobs", ["2", "1"])
def test_a_failing_cell_stops_neither_the_others_nor_the_report(
    again: tuple[Path, subprocess.CompletedProcess[str]], jobs: str
) -> None:
    folder, done = again
    if jobs == "1":
        done = run(folder, sys.executable, "-m", "pipelines.repro", "1")
    assert done.returncode == 1
    assert "error: L1H2S0: the loss is nan" in done.stderr
    assert "expected 5 models, got all but L1H2S0, whose errors are above" in done.stderr
    metrics = json.loads((folder / "reports" / "metrics.json").read_text())
    assert metrics["missing_cells"] == ["L1H2S0"]
    assert metrics["cells"]["L2H2S0"]["tokens_seen"] == TOKENS  # made beside the one that failed
    assert list(metrics["cells"]) == [name for name in CELLS if name != "L1H2S0"]
    first_screen = (folder / "reports" / "README.md").read_text().split("![")[0]
    assert "1 declared model left no records and is not in this report: L1H2S0." in first_screen


def test_a_stale_params_file_stops_the_graph_before_any_work(
    again: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, _ = again
    edit(folder / "conf" / "sweep" / "grid.yaml", BROKEN, "{train: {tokens: 15000}}")
    done = run(folder, sys.executable, "-m", "pipelines.repro", "2")
    assert done.returncode != 0
    assert "Running stage 'train" not in done.stdout
    assert "params.yaml is stale against conf/" in done.stderr
    assert "cells.L1H2S0.train.tokens: params.yaml has 20000, conf/ has 15000" in done.stderr


def test_what_was_missing_or_has_another_value_is_made_and_nothing_else(
    again: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """The model that failed is trained with another number of tokens."""
    folder, _ = again
    sh(folder, sys.executable, "-m", "pipelines.compose")
    stages = started(sh(folder, sys.executable, "-m", "pipelines.repro", "1"))
    assert {s for s in stages if s.startswith(("train@", "extract@", "tokenize"))} == {"train@L1H2S0", "extract@L1H2S0"}
    metrics = json.loads((folder / "reports" / "metrics.json").read_text())
    assert metrics["missing_cells"] == []
    assert {n for n, c in metrics["cells"].items() if c["tokens_seen"] != TOKENS} == {"L1H2S0"}


@pytest.fixture(scope="module")
def workspace(again: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    """Return the workspace in which every model is trained."""
    return again[0]


def test_an_ad_hoc_sweep_and_the_graph_share_their_runs(workspace: Path) -> None:
    before = {p.name for p in (workspace / "runs").iterdir()}
    sweep = ("model.n_layers=0,2", "model.n_heads=2,1", "tracking=none")
    out = sh(workspace, sys.executable, "-m", "pipelines.train", "--multirun", *sweep)
    new = {p.name for p in (workspace / "runs").iterdir() if (p / "log.jsonl").exists()} - before
    assert len(new) == 1, out  # L2H1: L0 and L2H2 were there
    commit(workspace)
    out = sh(workspace, "dvc", "exp", "run", "-S", "sweep.n_heads=[2,1]")
    assert (workspace / "models" / "L2H1S0" / "log.jsonl").exists(), out
    assert "L1H1S0" in json.loads((workspace / "reports" / "metrics.json").read_text())["cells"]


@pytest.mark.parametrize(
    ("launcher", "needs"), [("joblib", "joblib"), ("submitit_local", "submitit"), ("ray_local", "ray")]
)
def test_a_launcher_runs_cells_side_by_side_and_a_failing_one_stops_no_other(
    workspace: Path, launcher: str, needs: str
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed: pip install 'pathsum[launchers]' or 'pathsum[ray]'")
    before = {p.name for p in (workspace / "runs").iterdir()}
    cells = ("model.n_layers=1", "model.n_heads=2", f"seed={len(launcher)}", "train.lr_unembedding=1e38,0.004")
    launch = (sys.executable, "-m", "pipelines.train", "--multirun", f"hydra/launcher={launcher}", "tracking=none")
    done = run(workspace, *launch, "train.lr_attention=0.03", *cells)
    assert done.returncode == 1
    assert "train.lr_unembedding=1e+38" in done.stderr, done.stderr[-2000:]
    new = [p for p in (workspace / "runs").iterdir() if p.name not in before and p.name != "hydra"]
    logs = [(p / "log.jsonl").read_text().splitlines()[-1] for p in new if (p / "log.jsonl").exists()]
    assert [seen for line in logs if (seen := json.loads(line)["tokens_seen"])] == [TOKENS]  # the other only began


def test_the_slurm_launcher_composes(workspace: Path) -> None:
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("submitit is not installed: pip install 'pathsum[launchers]'")
    shown = sh(workspace, sys.executable, "-m", "pipelines.train", "hydra/launcher=slurm", "--cfg", "hydra")
    launcher = yaml.safe_load(shown)["hydra"]["launcher"]
    assert launcher["_target_"].endswith("SlurmLauncher")
    assert (launcher["cpus_per_task"], launcher["max_num_timeout"]) == (2, 9)


def test_a_fresh_clone_pulls_every_result_and_has_nothing_to_do(workspace: Path, tmp_path: Path) -> None:
    sh(workspace, "dvc", "repro")
    sh(workspace, "dvc", "remote", "add", "--default", "store", str(tmp_path / "store"))
    sh(workspace, "dvc", "push")
    commit(workspace)
    sh(tmp_path, "git", "clone", "--quiet", str(workspace), "clone")
    clone = tmp_path / "clone"
    sh(clone, "dvc", "pull")
    out = sh(clone, sys.executable, "-m", "pipelines.repro", "1")
    assert not started(out)
    assert "Data and pipelines are up to date." in out
    model = Path("models") / "L2H2S0" / "log.jsonl"
    assert (clone / model).read_bytes() == (workspace / model).read_bytes()
    shutil.rmtree(tmp_path / "store")


def test_dvc_shows_metrics_params_and_plots(workspace: Path) -> None:
    assert "L0S0" in sh(workspace, "dvc", "metrics", "show", "--json")
    assert "best_prefix_matching" in sh(workspace, "dvc", "plots", "show", "--json")
    assert "train.tokens" in sh(workspace, "dvc", "exp", "show", "--csv")
    sh(workspace, sys.executable, "-m", "pipelines.plots_template")
    sh(workspace, "dvc", "plots", "show")
    page = (workspace / "dvc_plots" / "index.html").read_text()
    assert "vegaEmbed" in page
    assert "<script src=" not in page
