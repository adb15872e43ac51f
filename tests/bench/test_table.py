"""The page says what was measured, what is a bound, and what was not measured or run at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import table
from bench.table import row, untested
from pipelines.paths import ROOT

BOUND = {
    "ours": 61.5, "theirs": 369.0, "ratio": 6.0, "ratio_range": [5.5, 6.2], "lower_bound": True, "seeds": 3, "unit": "s"
}  # fmt: skip


def test_a_lower_bound_is_written_as_one() -> None:
    assert "| 61.5 | > 369.0 | > 6.0 | s |" in row("phase_change_seconds.paper_recipe", BOUND)
    assert "| 61.5 | 369.0 | 6.0 | s |" in row("phase_change_seconds.paper_recipe", BOUND | {"lower_bound": False})
    said = table.phase_change({"phase_change_seconds.plain_loop": BOUND})
    assert "more than 6.0 times as many seconds (over 3 seeds 5.5 to 6.2)" in said


def test_what_is_not_measured_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "HERE", tmp_path)
    assert table.phase_change({}) == "Not measured yet: `python -m bench.phase_change`."
    assert "bench.growth" in table.growth()
    assert "make bench-law" in table.onset_law()
    assert "Untested on a GPU: `gpu` and `paper`." in untested({})
    assert "Untested on a GPU: `paper`." in untested({"train_step.gpu.matmul_peak": {}})


def test_every_row_that_is_kept_can_be_written() -> None:
    results = table.json.loads((ROOT / "bench" / "results.json").read_text())
    assert all(row(name, found).startswith("| ") for name, found in results.items())
