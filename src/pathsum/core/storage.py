"""Read and write records on disk: JSON with sorted keys, JSON lines and parquet. Identical records give identical
bytes."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

R = TypeVar("R")


def write_json(path: Path, record: Any) -> None:
    """Write a record or a mapping to ``path`` as JSON with sorted keys, atomically. Raises ValueError for NaN and
    infinity."""
    data = dataclasses.asdict(record) if dataclasses.is_dataclass(record) and not isinstance(record, type) else record
    text = json.dumps(data, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    write_whole(path, text.encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically: all of it or nothing.

    A killed process leaves a file ``<name>.draft``, which the next call overwrites.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(content)
    draft.replace(path)


def read_json(path: Path, kind: type[R]) -> R:
    """Read the record of type ``kind`` at ``path``. Raises ValueError unless its fields are those of ``kind``."""
    return _record(kind, json.loads(path.read_text(encoding="utf-8")), path)


def append_line(path: Path, record: Any) -> None:
    """Append a record to ``path`` as one JSON line, and flush it to disk."""
    with path.open("a", encoding="utf-8") as f:
        f.write(json.dumps(dataclasses.asdict(record), sort_keys=True, allow_nan=False) + "\n")
        f.flush()
        os.fsync(f.fileno())


def read_lines(path: Path, kind: type[R]) -> list[R]:
    """Read the records of type ``kind`` from a file of JSON lines. Raises ValueError as ``read_json`` does."""
    return [_record(kind, json.loads(line), path) for line in path.read_text(encoding="utf-8").splitlines() if line]


def write_rows(path: Path, rows: Sequence[Any], kind: type[Any]) -> None:
    """Write records of type ``kind`` as a parquet table. An empty table keeps its columns."""
    names = [f.name for f in dataclasses.fields(kind)]
    table = pa.Table.from_pydict({name: [getattr(r, name) for r in rows] for name in names})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def read_rows(path: Path, kind: type[R]) -> list[R]:
    """Read the records of type ``kind`` from a parquet table. Raises ValueError as ``read_json`` does."""
    return [_record(kind, row, path) for row in pq.read_table(path).to_pylist()]


def frame(rows: Iterable[Any], kind: type[Any]) -> pd.DataFrame:
    """Return records of type ``kind`` as a pandas table with one column per field."""
    return pd.DataFrame([dataclasses.asdict(r) for r in rows], columns=[f.name for f in dataclasses.fields(kind)])


def _record(kind: type[R], values: Mapping[str, Any], path: Path) -> R:
    names = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if names != set(values):
        missing, unknown = sorted(names - set(values)), sorted(set(values) - names)
        raise ValueError(
            f"{path}: expected a {kind.__name__}; missing fields {missing}, unknown fields {unknown}. "
            "It was written by another version: run `dvc repro` to write it again."
        )
    return kind(**values)
