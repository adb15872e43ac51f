"""The whole graph on the smoke profile: it runs, and then reruns exactly what has changed."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from pathsum.core.manifest import read_manifest
from pathsum.core.storage import read_lines
from pathsum.records.evaluation import Evaluation
from pathsum.training.tracker import result
from pipelines.results import read_results
from tests.pipelines.workspace import (
    CELLS,
    CONTROLS,
    ON_DOCSTRINGS,
    TOKENS,
    edit,
    locked,
    sh,
    stale,
    started,
    with_what_follows,
)


def test_the_metrics_have_what_a_script_needs(graph: Path) -> None:
    metrics = json.loads((graph / "reports" / "metrics.json").read_text())
    assert list(metrics["cells"]) == CELLS
    for cell in metrics["cells"].values():
        assert cell["exactness"] < 1e-10
        assert cell["onset_tokens"] is None  # twenty thousand tokens: the report must not claim a phase change
    assert metrics["missing_cells"] == []
    other = metrics["texts"]["docstrings"]
    assert {name: cell["tokens_seen"] for name, cell in other["cells"].items()} == dict.fromkeys(ON_DOCSTRINGS, TOKENS)
    assert list(other["claims"]) == list(metrics["claims"])
    assert other["corpus"]["name"] == "docstrings"
    assert other["corpus"]["bigram_loss_nats"] != metrics["corpus"]["bigram_loss_nats"]
    assert metrics["cells"]["L0S0"]["prefix_matching"] is None
    assert metrics["corpus"]["bigram_loss_nats"] < metrics["corpus"]["unigram_loss_nats"]
    assert metrics["claims"]["two_layer_induction"]["verdict"] == "not"
    assert metrics["provenance"]["trained_on"].startswith(metrics["provenance"]["machine"])


def test_the_headline_is_the_metric_and_all_numbers_are_an_output(graph: Path) -> None:
    shown = json.loads(sh(graph, "dvc", "metrics", "show", "--json"))[""]["data"]
    assert list(shown) == ["reports/headline.json"]
    headline = shown["reports/headline.json"]["data"]
    metrics = json.loads((graph / "reports" / "metrics.json").read_text())
    assert headline["loss_2_layers_nats_per_token"] == metrics["cells"]["L2H2S0"]["val_loss_nats"]
    verdicts = [claim["verdict"] for claim in metrics["claims"].values()]
    assert headline["claims_not_reproduced"] == verdicts.count("not")
    assert len(headline) <= 14
    verify = locked(graph)["verify"]
    assert {"reports/metrics.json", "reports/headline.json"} <= {out["path"] for out in verify["outs"]}


def test_wandb_has_one_folder_of_runs_that_tell_themselves_apart(graph: Path) -> None:
    folders = list((graph / "runs" / "wandb").glob("offline-run-*"))
    found = [json.loads(sh(graph, "wandb", "leet", "inspect", "--summary", "--json", str(f))) for f in folders]
    runs = {run["name"]: run for run in found}
    corpora = {**dict.fromkeys((*CELLS, *CONTROLS), "python"), **dict.fromkeys(ON_DOCSTRINGS, "docstrings")}
    verdicts = json.loads((graph / "reports" / "metrics.json").read_text())
    claims = json.loads((graph / "data" / "claims.json").read_text())
    reproduced = [claim["verdict"] for claim in verdicts["claims"].values()].count("reproduced")
    said = f"{reproduced} of {len(verdicts['claims'])} claims reproduced"
    names = [f"{name}{of} {corpus} smoke" for name, corpus in corpora.items() for of in ("", " circuits")]
    names += [f"{name}: {said} python smoke" for name in ("report", "tables")]
    assert sorted(run["name"] for run in found) == sorted(names)
    assert set(runs["smeared python smoke"]["tags"]) == {"1 layer", "2 heads", "control", "python", "smoke"}
    assert set(runs["docstrings-L2H2S1 docstrings smoke"]["tags"]) == {"2 layers", "2 heads", "docstrings", "smoke"}
    for name in CELLS:
        log = read_lines(graph / "models" / name / "log.jsonl", Evaluation)
        training, records = (runs[f"{title} python smoke"] for title in (name, f"{name} circuits"))
        last = {key: value for key, value in result(log).items() if value is not None}
        assert last.items() <= training["summary"].items()
        met = sum(name in c["values"] and name not in c["short"] for c in claims.values())
        assert records["summary"]["judged/met_claims"] == met
        loss = verdicts["cells"][name]["val_loss_nats"]
        assert records["summary"]["judged/val_loss_nats"] == pytest.approx(loss, rel=1e-5)
        assert (training["config"]["model"], training["tags"]) == (records["config"]["model"], records["tags"])
    headline = json.loads((graph / "reports" / "headline.json").read_text())
    assert headline.items() <= runs[f"report: {said} python smoke"]["summary"].items()


def test_a_calibration_of_this_code_and_these_settings_is_not_computed_again(workspace: Path) -> None:
    record = workspace / "reports" / "calibration"
    name = read_manifest(record)[1]
    assert [entry.name for entry in (workspace / "runs" / "calibration").iterdir()] == [name]
    shutil.rmtree(workspace / "runs" / "calibration")
    before = {path.name: path.read_bytes() for path in record.iterdir()}
    sh(workspace, sys.executable, "-m", "pipelines.calibrate")
    assert not (workspace / "runs" / "calibration").exists()
    (record / "coverage.jsonl").write_text("")
    sh(workspace, sys.executable, "-m", "pipelines.calibrate")
    assert {path.name: path.read_bytes() for path in record.iterdir()} == before


def test_nothing_reruns_when_nothing_changed(workspace: Path) -> None:
    assert stale(workspace) == set()


def test_a_model_is_one_file_on_disk_in_store_output_and_cache(graph: Path) -> None:
    model = max((graph / "models" / "L2H2S0" / "checkpoints").iterdir())
    (stored,) = (path for path in (graph / "runs").glob(f"*/checkpoints/{model.name}") if path.samefile(model))
    hashed = hashlib.md5(model.read_bytes(), usedforsecurity=False).hexdigest()
    assert (graph / ".dvc" / "cache" / "files" / "md5" / hashed[:2] / hashed[2:]).samefile(stored)
    assert model.stat().st_mode & 0o222 == 0  # a file that is changed in place would change all three


def test_the_lock_does_not_grow_with_the_models(graph: Path) -> None:
    assert not [name for name in CELLS if name in (graph / "dvc.lock").read_text()]


def test_the_folder_of_a_model_has_its_tokenizer_and_names_its_text(graph: Path) -> None:
    for name, text in (("L2H2S0", ""), ("docstrings-L2H2S1", "docstrings")):
        folder = graph / "models" / name
        tokens = graph / "data" / "tokens" / text
        assert (folder / "tokenizer.json").read_bytes() == (tokens / "tokenizer.json").read_bytes()
        about = json.loads((folder / "text.json").read_text())
        header = json.loads((tokens / "train.json").read_text())
        assert about == {"name": text or "python", "hash": header["corpus_hash"]}


def test_a_report_before_all_models_are_made_names_those_that_are_missing(graph: Path, tmp_path: Path) -> None:
    for name in ("params.yaml", "data"):
        (tmp_path / name).symlink_to(graph / name)
    shutil.copytree(graph / "circuits", tmp_path / "circuits")
    shutil.rmtree(tmp_path / "circuits" / "L2H2S0")
    found = read_results(tmp_path)
    assert found.missing == ("L2H2S0",)
    (tmp_path / "circuits" / "L1H2S0" / "heads.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"got no heads\.parquet"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("file", "directly", "then"),
    [
        ("report/figures/learning.py", {"report"}, set()),
        ("circuits/atlas.py", {"extract", "calibrate"}, {"verify", "report"}),
        ("training/loop.py", {"train", "extract", "calibrate"}, {"verify", "report"}),
    ],
    ids=["a caption", "a circuit", "training"],
)
def test_an_edit_makes_stale_what_depends_on_it_alone(
    workspace: Path, file: str, directly: set[str], then: set[str]
) -> None:
    path = workspace / "src" / "pathsum" / file
    text = path.read_text()
    path.write_text(text + "# a remark\n")
    found = stale(workspace)
    path.write_text(text)
    assert found == directly
    assert with_what_follows(found, locked(workspace)) == directly | then


def test_a_comment_in_conf_or_code_computes_no_model(workspace: Path) -> None:
    stored = sorted(path.name for path in (workspace / "runs").rglob("manifest.json"))
    edit(workspace / "conf" / "train" / "muon.yaml", "momentum: ", "# a remark\nmomentum: ")
    assert started(sh(workspace, "dvc", "repro")) == {"check"}
    edit(workspace / "src" / "pathsum" / "training" / "loop.py", "import math", "# a remark\nimport math")
    said = sh(workspace, "dvc", "repro")
    assert started(said) == {"train", "extract", "calibrate"}  # which find everything in the store
    assert "tokens, loss" not in said
    assert sorted(path.name for path in (workspace / "runs").rglob("manifest.json")) == stored
    assert stale(workspace) == set()
