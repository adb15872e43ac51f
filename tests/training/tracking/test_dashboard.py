"""The dashboard shows only keys that are logged. Without an account it says so in one line."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pathsum.claims.registry import judge_all
from pathsum.report.build import tables, tables_of
from pathsum.report.figures.base import Figure
from pathsum.report.story import contents, draw_all, story
from pathsum.training.tracker import Mirror
from pipelines.paths import ROOT
from tests.report import synthetic
from tests.training.small import CELL
from tests.training.tracking.found import FOUND, Recorded

pytest.importorskip("wandb_workspaces", reason="pip install 'pathsum[dashboard]'")
dashboard = pytest.importorskip("pathsum.report.dashboard")


def test_every_line_is_a_logged_number_against_tokens() -> None:
    shown = [panel for section in dashboard.lines(2).values() for panel in section]
    assert {panel.x for panel in shown} == {"tokens"}
    drawn = {key for panel in shown for key in panel.y}
    mirror = Mirror(run := Recorded())
    mirror.log(FOUND)
    for share in (0.25, 0.5, 1):
        mirror.step(CELL, round(share * CELL.train.tokens), 2.5, share)
    assert drawn <= {key for values in run.logged for key in values}
    assert {"in_context_loss_drop_nats", "layer0/previous_token", "layer1/prefix_matching"} <= drawn


def test_the_report_is_shown_whole_in_its_order_and_under_its_names() -> None:
    results = synthetic.results(heads=(2,), seeds=(0,))
    narrow = synthetic.with_width(
        results.cells["L2H2S0"], "narrow", 4, n_heads=4
    )  # only then is there a figure of widths
    results = replace(results, cells={**results.cells, "narrow": narrow})
    found, drawn = contents(), draw_all(results)
    told = story(results, judge_all(results), drawn)
    titles = [section.title for section in told.sections]
    assert [title for title in found if title != "Claims"] == [title for title in titles if title in found]
    for section in told.sections:
        figures = {block.name for block in section.blocks if isinstance(block, Figure)}
        assert figures == set(found.get(section.title, ([], []))[0]), section.title
    shown = [panel for section in dashboard.findings(found).values() for panel in section]
    keys = [key for panel in shown for key in getattr(panel, "media_keys", None) or [panel.table_name]]
    assert {"report", *(f"figures/{name}" for name in drawn)} <= set(keys)
    others = {"report", *(f"tables/{name}" for name in tables(results, []))}
    assert set(keys) - {f"figures/{name}" for name in drawn} <= others
    assert len(keys) == len(set(keys))


def test_a_models_own_tables_have_the_reports_names() -> None:
    results = synthetic.results(heads=(2,), seeds=(0,))
    for cell in results.cells.values():
        assert set(tables_of(cell)) <= set(tables(results, []))
    assert {"heads", "composition", "ablations"} <= set(tables_of(results.cells["L2H2S0"]))


def test_workspace_and_report_are_built_without_a_network() -> None:
    made = (make("someone", "pathsum", 2, contents()) for make in (dashboard.workspace, dashboard.report))
    for spec in (json.dumps(m._to_model().spec.model_dump(by_alias=True, mode="json")) for m in made):
        for part, *key in (k.split(".") for k in dashboard.GROUPS):
            assert f'"name": "{".".join([part, "value", *key])}"' in spec
        assert "in_context_loss_drop_nats" in spec
        assert "tables/claims" in spec


def test_without_an_account_it_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WANDB")}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.dashboard"],
        cwd=tmp_path, env={**kept, "PYTHONPATH": path, "HOME": str(tmp_path), "WANDB_SILENT": "true"},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip().startswith("error: expected a W&B account, got: No API key configured.")
    assert len(done.stderr.strip().splitlines()) == 1
