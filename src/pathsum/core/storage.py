"""Read and write records: JSON with sorted keys, JSON lines and parquet. Identical records give identical bytes."""

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

R = TypeVar("R")
WRITE_AGAIN = "run `dvc repro` to write it again"


def write_json(path: Path, record: Any) -> None:
    """Write a record or a mapping to ``path`` as JSON with sorted keys, atomically."""
    data = dataclasses.asdict(record) if dataclasses.is_dataclass(record) and not isinstance(record, type) else record
    text = json.dumps(data, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    write_whole(path, text.encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically: all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(content)
    draft.replace(path)


def read_json(path: Path, kind: type[R]) -> R:
    """Read the record of type ``kind`` at ``path``."""
    return _typed(kind, read_value(path), path)


def read_value(path: Path) -> Any:
    """Read the JSON value at ``path``. Raises ValueError if it is not JSON. NaN and Infinity are not JSON."""
    return parse_json(_text(path), str(path))


def read_records(path: Path, kind: type[R]) -> dict[str, R]:
    """Read a mapping from names to records of type ``kind``. Raises ValueError if the file holds anything else."""
    found = read_value(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected records of {kind.__name__} by name, got another JSON value; {WRITE_AGAIN}")
    return {name: _typed(kind, values, path) for name, values in found.items()}


def parse_json(text: str, where: str) -> Any:
    """Parse ``text`` as JSON and return its value."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: expected JSON, got other text ({error}); make it again") from error


def json_lines(records: Iterable[Any]) -> bytes:
    """Return the records as bytes, one JSON line with sorted keys each. Raises ValueError for NaN and infinity."""
    lines = (json.dumps(dataclasses.asdict(r), sort_keys=True, allow_nan=False) + "\n" for r in records)
    return "".join(lines).encode()


def read_lines(path: Path, kind: type[R]) -> list[R]:
    """Read the records of type ``kind`` from a file of JSON lines."""
    lines = enumerate(_text(path).split("\n"), start=1)
    return [_typed(kind, parse_json(line, f"{path}, line {number}"), path) for number, line in lines if line]


def write_rows(path: Path, rows: Sequence[Any], kind: type[Any]) -> None:
    """Write records of type ``kind`` as a parquet table, not atomically."""
    names = [f.name for f in dataclasses.fields(kind)]
    table = pa.Table.from_pydict({name: [getattr(r, name) for r in rows] for name in names})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def read_rows(path: Path, kind: type[R]) -> list[R]:
    """Read the records of type ``kind`` from a parquet table."""
    try:
        with pq.ParquetFile(path) as file:
            rows = file.read(use_threads=False).to_pylist()
    except pa.ArrowException as error:
        raise ValueError(f"{path}: expected a parquet table, got another file ({error}); {WRITE_AGAIN}") from error
    for row in rows:
        _require_fields(kind, row, path)
    return [kind(**row) for row in rows]


def frame(rows: Iterable[Any], kind: type[Any]) -> pd.DataFrame:
    """Return records of type ``kind`` as a pandas table with one row per record and one column per field."""
    rows = list(rows)
    columns = {f.name: [getattr(r, f.name) for r in rows] for f in dataclasses.fields(kind)}
    return pd.DataFrame(columns, dtype=None if rows else object)


def _text(path: Path) -> str:
    """Read a file as UTF-8. Raises ValueError, which names the file, if its bytes are not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8 text, got other bytes ({error}); {WRITE_AGAIN}") from error


def _typed(kind: type[R], values: Any, path: Path) -> R:
    """Build a record of type ``kind`` from parsed JSON."""
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected the fields of a {kind.__name__}, got another JSON value; {WRITE_AGAIN}")
    _require_fields(kind, values, path)
    try:
        _validator(kind).validate_json(json.dumps(values), strict=True)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        place, expected = ".".join(map(str, first["loc"])), first["msg"].replace("Input should be", "expected")
        raise ValueError(
            f"{path}: {place} of a {kind.__name__}: {expected}, got {first['input']!r}; {WRITE_AGAIN}"
        ) from error
    return kind(**values)


@functools.cache
def _validator(kind: Any) -> Any:
    return TypeAdapter(kind)


def _require_fields(kind: type[Any], values: Mapping[str, Any], path: Path) -> None:
    names = {f.name for f in dataclasses.fields(kind)}
    if names != set(values):
        missing, unknown = sorted(names - set(values)), sorted(set(values) - names)
        raise ValueError(
            f"{path}: expected a {kind.__name__}; missing fields {missing}, unknown fields {unknown}. "
            f"It was written by another version: {WRITE_AGAIN}."
        )
