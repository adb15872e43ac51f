"""Differences between two metrics.json are reported in units of the spread over seeds. Equal files give no
differences."""

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pathsum.claims.metrics import metrics
from pathsum.claims.registry import judge_all
from pathsum.report.compare import check, compare, moves
from pipelines.compare import metrics as metrics_of
from pipelines.compare import since_commit, text_of
from tests.commands import command
from tests.report import synthetic

RESULTS = synthetic.results()


@pytest.fixture
def base() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(metrics(RESULTS, judge_all(RESULTS))))
    found["cells"]["L1H2S0"]["val_loss_nats"] = 2.0
    found["cells"]["L1H2S1"]["val_loss_nats"] = 2.2  # a standard deviation of 0.1 √2
    return found


@pytest.fixture
def now(base: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(base)


def test_what_is_equal_has_not_moved(base: dict[str, Any], now: dict[str, Any]) -> None:
    assert compare(base, now, "main") == "### Changes since `main`\n\nNo changes."


def test_a_change_is_measured_in_spreads_over_the_seeds_of_the_base(base: dict[str, Any], now: dict[str, Any]) -> None:
    base["cells"]["L1H4S0"]["val_loss_nats"] = now["cells"]["L1H4S0"]["val_loss_nats"] = 9.0  # is no other seed
    now["cells"]["L1H2S0"]["val_loss_nats"] = 1.7
    (move,) = moves(base, now).itertuples()
    assert (move.cell, move.metric, move.seeds) == ("L1H2S0", "val_loss_nats", 2)
    assert move.spread == pytest.approx(0.02**0.5)
    assert move.spreads == pytest.approx(0.3 / 0.02**0.5)
    assert "| `L1H2S0` | `val_loss_nats` | 2 | 1.7 | −0.3 | 0.1414 (2) | 2.1 |" in compare(base, now, "main")
    for values in (base, now):
        del values["cells"]["L1H2S1"]
    assert "| one seed | – |" in compare(base, now, "main")


def test_what_moved_most_comes_first_and_a_spread_of_nought_last(base: dict[str, Any], now: dict[str, Any]) -> None:
    now["cells"]["L1H2S0"]["val_loss_nats"] = 2.1
    now["cells"]["L1H2S1"]["val_loss_nats"] = 1.0
    now["cells"]["L1H4S0"]["direct_path_kl_nats"] = 0.9
    assert moves(base, now)["cell"].tolist() == ["L1H2S1", "L1H2S0", "L1H4S0"]
    assert compare(base, now, "main").splitlines()[-1].endswith("| 0 (2) | ∞ |")


def test_rounding_of_another_machine_is_no_move(base: dict[str, Any], now: dict[str, Any]) -> None:
    now["cells"]["L1H2S0"]["val_loss_nats"] = 2.0 + 1e-9
    now["cells"]["L1H2S0"]["exactness"] *= 2
    assert moves(base, now).empty


def test_verdicts_models_onsets_detectors_and_the_corpus_are_stated(base: dict[str, Any], now: dict[str, Any]) -> None:
    now["claims"]["k_composition"]["verdict"] = "partly"
    now["claims"]["one_layer_skip_trigrams"] |= {"value": 0.5, "threshold": "6"}
    now["cells"]["L2H9S0"] = now["cells"].pop("L2H4S0")
    now["cells"]["L2H2S1"]["onset_tokens"] = None
    now["calibration"]["induction"]["recall"] = 0.5
    now["corpus"]["train_tokens"] += 1
    told = compare(base, now, "main")
    for said in (
        "`k_composition`: `verdict` reproduced → partly",
        "`one_layer_skip_trigrams`: `value` 1 → 0.5, `threshold` ",
        "new models: `L2H9S0`",
        "removed models: `L2H4S0`",
        "`L2H2S1`: `onset_tokens` 4,200,000 → none",
        "`induction`: `recall` 1 → 0.5",
        "`corpus`: `train_tokens` 9,000,000 → 9,000,001",
    ):
        assert f"- {said}" in told


def test_a_hostile_name_stays_text(base: dict[str, Any], now: dict[str, Any]) -> None:
    now["cells"]["`|<b>"] = now["cells"]["L2H4S0"]
    assert "new models: &#96;&#124;&#60;b&#62;" in compare(base, now, "`")


@pytest.mark.parametrize(
    "found",
    [
        [],
        {},
        {"cells": {}, "claims": {}, "corpus": {}, "calibration": {"induction": 5}},
        {"cells": {}, "claims": {"a": {"value": 1, "threshold": "≥ 1"}}, "corpus": {}},
    ],
)
def test_what_is_no_metrics_file_is_refused(found: Any) -> None:
    with pytest.raises(ValueError, match=r"x\.json: expected the metrics\.json of a report, got another .*; give a"):
        check(found, "x.json")


@pytest.fixture
def folder(tmp_path: Path, base: dict[str, Any]) -> Path:
    """Return a repository whose first revision has no metrics.json and whose second revision has one."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "metrics.json").write_text(json.dumps(base))
    who = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "none"], ["add", "reports"]):
        subprocess.run([*who, *words], cwd=tmp_path, check=True)
    subprocess.run([*who, "commit", "-q", "-m", "metrics"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("main~1", "BASE=main~1: expected a revision with reports/metrics.json, or the path of a"),
        ("bytes", "bytes: expected the metrics.json of a report, got text that is not JSON"),
        ("", "BASE: expected a git revision or the path of a metrics.json, got nothing"),
    ],
)
def test_the_base_is_a_revision_or_a_file_or_refused_by_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    monkeypatch.chdir(folder)
    (folder / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=re.escape(told)):
        metrics_of(text_of(name), name)
    assert text_of("main") == text_of("reports/metrics.json")


def test_a_run_says_which_committed_verdicts_it_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert since_commit() == ""
    path = folder / "reports" / "metrics.json"
    now = json.loads(path.read_text())
    (name, *_), of = now["claims"], len(now["claims"])
    was, now["claims"][name]["verdict"] = now["claims"][name]["verdict"], "partly"
    path.write_text(json.dumps(now))
    assert since_commit().startswith(f"1 committed files differ, and 1 of {of} verdicts: {name} {was} → partly. ")
    now["claims"][name]["verdict"] = was
    path.write_text(json.dumps(now, indent=1))
    assert since_commit().startswith(f"1 committed files differ, and 0 of {of} verdicts. ")


def test_the_command_prints_changes_and_broken_metrics_of_this_folder_are_made_again(folder: Path) -> None:
    assert "No changes." in command(folder, "pipelines.compare", "main").stdout
    (folder / "reports" / "metrics.json").write_bytes(b"\xff")
    done = command(folder, "pipelines.compare", "main")
    said = "reports/metrics.json: expected the metrics.json of a report, got "
    assert (done.returncode, said in done.stderr) == (1, True)
