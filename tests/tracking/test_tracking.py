"""Weights & Biases mirrors what is on disk: an offline run is written and read back."""

from __future__ import annotations

import base64
import errno
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pathsum.config import TrackingConfig
from pathsum.tracking.tracker import metrics, mirror, mirror_tables
from tests.tracking.found import FOUND

CONFIG = TrackingConfig(mode="offline", project="p", group="g", entity="")


PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of an offline run, read with the service's own tool."""
    (log,) = folder.glob("wandb/offline-run-*/*.wandb")
    command = [Path(sys.executable).parent / "wandb", "leet", "inspect", "--json", log]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def test_metrics_hold_the_best_head_of_each_layer() -> None:
    flat = metrics(FOUND)
    assert flat["tokens"] == 91
    assert (flat["layer0/best_prefix_matching"], flat["layer1/best_prefix_matching"]) == (0.2, 0.6)
    assert (flat["layer0/best_previous_token"], flat["layer1/best_copying"]) == (0.9, 1)


def test_a_run_that_cannot_be_opened_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "onlin")
    with pytest.raises(ValueError, match="WANDB_MODE: expected one of online, offline, .*, got 'onlin'"):
        mirror(CONFIG, "a", "a", "train", {}, tmp_path).__enter__()
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "too-short")
    with pytest.raises(ValueError, match="Weights & Biases, mode online: .* set WANDB_MODE=offline"):
        mirror(CONFIG, "a", "a", "train", {}, tmp_path).__enter__()
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(ValueError, match="Weights & Biases, mode offline: .*'a/b'.* Correct or unset WANDB_…"):
        mirror(CONFIG.model_copy(update={"project": "a/b"}), "a", "a", "train", {}, tmp_path).__enter__()


def test_an_offline_run_has_its_name_group_config_axis_and_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    with mirror(CONFIG, "L2H2S0", "L2H2S0-abc", "train", {"seed": 3}, tmp_path) as wandb:
        wandb.log(FOUND)
        wandb.table("tables/heads", pd.DataFrame({"head": [1, None], "onset": [None, 3]}).convert_dtypes())
    found = records(tmp_path)
    (run,) = [r["run"] for r in found if r["type"] == "run"]
    assert (run["display_name"], run["run_group"], run["run_id"], run["project"]) == ("L2H2S0", "g", "L2H2S0-abc", "p")
    assert run["config"]["update"]["seed"] == 3
    written = json.dumps([r for r in found if r["type"] == "history"])
    for name, value in metrics(FOUND).items():
        assert name.split("/")[-1] in written, name
        assert f"{value:g}" in written
    assert "tokens" in json.dumps([r for r in found if r["type"] == "metric"])
    assert list(tmp_path.rglob("*.table.json"))


def test_a_full_disk_makes_wandbs_own_log_print_no_tracebacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full:
        def write(self, _: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("WANDB_MODE", "disabled")
    monkeypatch.setattr(logging, "raiseExceptions", True)
    handler, line = logging.StreamHandler(Full()), logging.makeLogRecord({"msg": "restore done"})
    with mirror(CONFIG, "a", "a", "train", {}, tmp_path):
        handler.handle(line)
    assert "Traceback" not in capsys.readouterr().err
    handler.handle(line)
    assert "Traceback" in capsys.readouterr().err  # afterwards, and in every other log


def test_figures_and_the_page_are_logged_under_their_names_and_with_their_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    (tmp_path / "index.html").write_text("<p>the page</p>", encoding="utf-8")
    (tmp_path / "a.png").write_bytes(PIXEL)
    with mirror(CONFIG, "report", "report-abc", "report", {}, tmp_path) as wandb:
        wandb.image("figures/a", tmp_path / "a.png", "What to see.")
        wandb.page("report", tmp_path / "index.html")
    written = json.dumps([r for r in records(tmp_path) if r["type"] == "history"])
    assert "figures/a" in written
    assert "What to see." in written
    (page,) = tmp_path.rglob("files/media/html/report_*.html")
    assert page.read_text(encoding="utf-8") == "<p>the page</p>"


def test_tables_are_logged_again_only_if_something_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    rows, made = tmp_path / "rows", list[str]()
    rows.write_text("1")

    def tables() -> dict[str, pd.DataFrame]:
        made.append("tables")
        return {"heads": pd.DataFrame({"score": [0.25]})}

    def log(config: TrackingConfig = CONFIG) -> int:
        mirror_tables(config, "L2H2S0", "L2H2S0-abc", "circuits", {}, tmp_path, [rows], tables)
        return len(made)

    assert log() == 1
    assert "tables/heads" in json.dumps([r for r in records(tmp_path) if r["type"] == "history"])
    assert log() == 1
    rows.write_text("2")
    assert log() == 2
    assert log(CONFIG.model_copy(update={"group": "another"})) == 3
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert log() == 4
    (tmp_path / "mirrored" / "L2H2S0-abc").write_bytes(b"")  # of a process that was killed
    assert log() == 5
    assert log(CONFIG.model_copy(update={"mode": "off"})) == 5


def test_the_environment_chooses_the_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    with mirror(CONFIG, "a", "a", "train", {}, tmp_path) as wandb:
        wandb.log(FOUND)
    assert not list(tmp_path.glob("wandb/offline-run-*"))


def test_tracking_off_touches_nothing(tmp_path: Path) -> None:
    off = TrackingConfig(mode="off", project="p", group="g", entity="")
    with mirror(off, "a", "a", "train", {}, tmp_path / "absent") as wandb:
        wandb.log(FOUND)
        wandb.checkpoint("a", tmp_path)
    assert not (tmp_path / "absent").exists()
