"""Weights & Biases mirrors what is on disk: an offline run is written and read back."""

import base64
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pathsum.config import TrackingConfig
from pathsum.training.tracker import POINTS, Mirror, Run, metrics, mirror, mirror_tables, result, run_id, tags
from tests.training.small import CELL
from tests.training.tracking.found import FOUND, Recorded

CONFIG = TrackingConfig(mode="offline", project="p", group="g", entity="")
RUN = Run("a", "a", "train")

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the only offline run, read with the service's own tool."""
    return [json.loads(line) for line in inspected(folder, "--json").splitlines()]


def summary(folder: Path) -> dict[str, Any]:
    """Return name, tags, configuration and summary of the only offline run."""
    found: dict[str, Any] = json.loads(inspected(folder, "--json", "--summary"))
    return found


def inspected(folder: Path, *options: str) -> str:
    (log,) = folder.glob("wandb/offline-run-*/*.wandb")
    command = [Path(sys.executable).parent / "wandb", "leet", "inspect", *options, log]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_metrics_hold_the_best_head_of_each_layer() -> None:
    flat = metrics(FOUND)
    assert flat["tokens"] == 91
    assert (flat["layer0/prefix_matching"], flat["layer1/prefix_matching"]) == (0.2, 0.6)
    assert (flat["layer0/previous_token"], flat["layer1/copying"]) == (0.9, 1)


def test_the_result_of_training_is_its_last_evaluation_and_its_onset() -> None:
    """Prefix matching rises from 0.1 to 0.6; it crosses 0.35 between 100 and 300 tokens, at 100 + 200 · 0.2 / 0.4."""
    log = [
        replace(FOUND, tokens_seen=tokens, prefix_matching=[[0.0], [score]], val_loss_nats=loss)
        for tokens, score, loss in ((0, 0.1, 7.0), (100, 0.15, 4.0), (300, 0.55, 3.0), (400, 0.6, 2.0))
    ]
    assert result(log) == {
        "tokens_seen": 400, "val_loss_nats": 2.0, "in_context_loss_drop_nats": 0.25, "prefix_matching": 0.6,
        "previous_token": 0.9, "onset_tokens": 200,
    }  # fmt: skip
    assert result(log[:2])["onset_tokens"] is None
    bare = [replace(entry, prefix_matching=[], previous_token=[]) for entry in log]
    assert {result(bare)[key] for key in ("prefix_matching", "previous_token", "onset_tokens")} == {None}


def test_tags_tell_layers_heads_and_controls() -> None:
    assert tags("L2H2S0", CELL.model) == ("2 layers", "2 heads")
    assert tags("smeared", CELL.model.model_copy(update={"n_layers": 1})) == ("1 layer", "2 heads", "control")
    assert tags("L0S0", CELL.model.model_copy(update={"n_layers": 0})) == ("0 layers",)


def test_an_id_keeps_its_hash_and_has_no_character_that_wandb_refuses() -> None:
    assert run_id("L2H2S0", "train.tokens=5", "abc") == "L2H2S0-train.tokens=5-abc"
    long = run_id("L2H2S0", *(f"train.betas=[0.{n}, 0.95]/?%:#" for n in range(9)), "abc")
    assert not set(long) & set("/?%:# []")
    assert long.endswith("-abc")
    assert len(long) < 128


def test_curves_are_means_of_the_loss_and_the_speed_without_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four steps make a point. A step takes half a second; an evaluation takes a hundred, which no speed contains."""
    now, run = [0.0], Recorded()
    monkeypatch.setattr("pathsum.training.tracker.time.monotonic", lambda: now[0])
    mirror, cell = Mirror(run), CELL.model_copy(update={"train": CELL.train.model_copy(update={"tokens": 40 * POINTS})})
    mirror.log(FOUND)
    for step in range(1, 4 * POINTS + 1):
        now[0] += 0.5
        mirror.step(cell, 10 * step, float(step), 0.25)
        if step == 6:
            now[0] += 100
            mirror.log(FOUND)
    curves = [values for values in run.logged if "train_loss_nats" in values]
    assert [values["tokens"] for values in curves] == [40 * point for point in range(1, POINTS + 1)]
    assert [values["train_loss_nats"] for values in curves[:2]] == [2.5, 6.5]
    assert {values["tokens_per_second"] for values in curves} == {20.0}
    rates = {"lr_embedding": 0.25 * cell.train.lr_embedding, "lr_attention": 0.25 * cell.train.lr_attention}
    assert all(rates.items() <= values.items() for values in curves)


def test_an_offline_run_replaces_only_the_earlier_ones_with_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    for name in ("20260101_000000-L2H2S0-abc", "20260101_000000-other-L2H2S0-abc", "20260101_000000-L2H2S0-abcd"):
        (tmp_path / "wandb" / f"offline-run-{name}").mkdir(parents=True)
    with mirror(CONFIG, Run("L2H2S0", "L2H2S0-abc", "train"), tmp_path):
        pass
    made = sorted(path.name.partition("-L2H2S0")[2] or path.name for path in tmp_path.glob("wandb/offline-run-*"))
    assert len(made) == 3
    assert not (tmp_path / "wandb" / "offline-run-20260101_000000-L2H2S0-abc").exists()
    assert not any(path.is_symlink() for path in (tmp_path / "wandb").iterdir())


def test_a_run_that_cannot_be_opened_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "onlin")
    with pytest.raises(ValueError, match="WANDB_MODE.mode: expected 'offline', 'online', .*, got 'onlin'"):
        mirror(CONFIG, RUN, tmp_path).__enter__()
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "too-short")
    with pytest.raises(ValueError, match="Weights & Biases, mode online: .* set WANDB_MODE=offline"):
        mirror(CONFIG, RUN, tmp_path).__enter__()
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(ValueError, match="Weights & Biases, mode offline: .*'a/b'.* Correct or unset WANDB_…"):
        mirror(CONFIG.model_copy(update={"project": "a/b"}), RUN, tmp_path).__enter__()


def test_a_mistake_in_the_block_is_raised_without_a_traceback_of_wandb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    with pytest.raises(ValueError, match="the loss is nan"), mirror(CONFIG, RUN, tmp_path):
        raise ValueError("the loss is nan")
    assert "Traceback" not in "".join(capfd.readouterr())


def test_the_environment_can_switch_the_mirror_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "off")
    with mirror(CONFIG, RUN, tmp_path) as nothing:
        nothing.summary({"a": 1})
    assert not list(tmp_path.iterdir())


def test_an_offline_run_has_its_name_group_config_axis_and_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    config = CONFIG.model_copy(update={"corpus": "essays", "profile": "prose"})
    (tmp_path / "index.html").write_text("<p>the page</p>", encoding="utf-8")
    (tmp_path / "a.png").write_bytes(PIXEL)
    with mirror(config, Run("L2H2S0", "L2H2S0-abc", "train", {"seed": 3}, ("2 layers", "2 heads")), tmp_path) as wandb:
        wandb.image("figures/a", tmp_path / "a.png", "What to see.")
        wandb.page("report", tmp_path / "index.html")
        wandb.log(FOUND)
        wandb.summary({"onset_tokens": 700_000})
        wandb.table("tables/heads", pd.DataFrame({"head": [1, None], "onset": [None, 3]}).convert_dtypes())
    found = records(tmp_path)
    (run,) = [r["run"] for r in found if r["type"] == "run"]
    assert (run["display_name"], run["run_group"]) == ("L2H2S0 essays prose", "g")
    assert (run["run_id"], run["project"]) == ("L2H2S0-abc", "p")
    assert {"seed": 3, "corpus": "essays", "profile": "prose"}.items() <= run["config"]["update"].items()
    assert summary(tmp_path)["tags"] == ["2 layers", "2 heads", "essays", "prose"]
    assert summary(tmp_path)["summary"]["onset_tokens"] == 700_000
    written = json.dumps([r for r in found if r["type"] == "history"])
    assert "figures/a" in written
    assert "What to see." in written
    for name, value in metrics(FOUND).items():
        assert name.split("/")[-1] in written, name
        assert f"{value:g}" in written
    assert "tokens" in json.dumps([r for r in found if r["type"] == "metric"])
    assert list(tmp_path.rglob("*.table.json"))
    (page,) = tmp_path.rglob("files/media/html/report_*.html")
    assert page.read_text(encoding="utf-8") == "<p>the page</p>"


def test_tables_are_logged_again_only_if_something_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    rows, made, about = tmp_path / "rows", list[str](), Run("L2H2S0 circuits", "L2H2S0-circuits-abc", "circuits")
    rows.write_text("1")

    def tables() -> dict[str, pd.DataFrame]:
        made.append("tables")
        return {"heads": pd.DataFrame({"score": [0.25]})}

    def log(config: TrackingConfig = CONFIG) -> int:
        mirror_tables(config, about, tmp_path, [rows], tables, {"judged/val_loss_nats": 2.5})
        return len(made)

    assert log() == 1
    assert "tables/heads" in json.dumps([r for r in records(tmp_path) if r["type"] == "history"])
    assert summary(tmp_path)["summary"]["judged/val_loss_nats"] == 2.5
    assert log() == 1
    rows.write_text("2")
    assert log() == 2
    assert log(CONFIG.model_copy(update={"group": "another"})) == 3
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert log() == 4
    (tmp_path / "wandb" / "mirrored" / "L2H2S0-circuits-abc").write_bytes(b"")  # of a process that was killed
    assert log() == 5
    assert log(CONFIG.model_copy(update={"mode": "off"})) == 5


def test_tracking_off_touches_nothing(tmp_path: Path) -> None:
    off = TrackingConfig(mode="off", project="p", group="g", entity="")
    with mirror(off, RUN, tmp_path / "absent") as wandb:
        wandb.log(FOUND)
        wandb.checkpoint("a", tmp_path)
    assert not (tmp_path / "absent").exists()
