"""Equal records give equal bytes on disk, and files that are not records are refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from pathsum.core.storage import json_lines, read_json, read_lines, read_rows, write_json, write_rows
from pathsum.records.evaluation import Evaluation
from pathsum.records.heads import HeadRow
from pathsum.records.paths import ExactnessRow

ROW = HeadRow(1, 3, 0.5, 0.25, -0.125, 0.0, 1.0, 0.75, 0.875, None, None)


def test_rows_survive_parquet_with_their_nones(tmp_path: Path) -> None:
    rows = [ROW, replace(ROW, head=4, qk_matching_positivity=0.5, previous_head=2)]
    write_rows(tmp_path / "a.parquet", rows, HeadRow)
    write_rows(tmp_path / "b.parquet", rows, HeadRow)
    assert read_rows(tmp_path / "a.parquet", HeadRow) == rows
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_an_empty_table_keeps_its_columns(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.parquet", [], HeadRow)
    assert read_rows(tmp_path / "a.parquet", HeadRow) == []
    with pytest.raises(FileNotFoundError):
        read_rows(tmp_path / "b.parquet", HeadRow)


def test_another_versions_record_is_refused_with_what_to_do(tmp_path: Path) -> None:
    found = {"step": 1, "tokens": 2, "max_relative_error": 0.0, "scores_max_relative_error": None}
    write_json(tmp_path / "a.json", found)
    with pytest.raises(ValueError, match=r"missing fields \['tokens_seen'\], unknown fields \['tokens'\].*`dvc repro`"):
        read_json(tmp_path / "a.json", ExactnessRow)


def test_json_refuses_what_other_readers_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "a.json", ExactnessRow(1, 2, float("nan"), None))
    assert not (tmp_path / "a.json").exists()


def test_log_lines_survive(tmp_path: Path) -> None:
    found = Evaluation(7, 91, 2.5, 0.25, 3.5, 1.5, [[0.5]], [[0.75]], [[0.0]], [2.5])
    (tmp_path / "log.jsonl").write_bytes(json_lines([found, found]))
    assert read_lines(tmp_path / "log.jsonl", Evaluation) == [found, found]
