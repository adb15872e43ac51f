"""The declared records, each with its contents, its equation and the code that computes it.

``tables()``, the report's table of origins and the files that a stage reads and writes all follow from that. A new
record is a class with ``@record`` in a file of this folder, and no other edit.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pathsum.records

R = TypeVar("R")
MODEL = "CELL"  # stands for a model's name


@dataclass(frozen=True)
class Origin:
    """The contents of a record, its computation, and its file. ``code`` is a path under src/pathsum/."""

    record: str
    holds: str
    equation: str
    code: str
    stored: str
    stage: str
    printed: bool  # in full under reports/tables/; else it is for figures to reduce and for explorers


_KINDS: dict[type[Any], Origin] = {}


def record(
    name: str,
    holds: str,
    equation: str,
    code: str,
    stored: str = "",
    stage: str = f"extract@{MODEL}",
    printed: bool = True,
) -> Callable[[type[R]], type[R]]:
    """Declare a row type as the record ``name``; a table of each model where ``stored`` names no other file."""

    def declare(kind: type[R]) -> type[R]:
        assert name not in {origin.record for origin in _KINDS.values()}, f"two records are called {name}"
        where = stored or f"{MODEL}/{name}.parquet"
        _KINDS[kind] = Origin(name, holds, equation, code, where, stage, printed)
        return kind

    return declare


def origins() -> dict[str, Origin]:
    """Every declared record, by name, in alphabetical order."""
    return dict(sorted((origin.record, origin) for origin in _kinds().values()))


def tables() -> dict[str, type[Any]]:
    """The row type of each table that a model's folder holds as ``<name>.parquet``, in alphabetical order."""
    found = _kinds().items()
    return dict(sorted((o.record, kind) for kind, o in found if o.stored == f"{MODEL}/{o.record}.parquet"))


def name_of(kind: type[Any]) -> str:
    """The name of the record that ``kind`` is a row of. KeyError where it was not declared."""
    return _KINDS[kind].record


def _kinds() -> dict[type[Any], Origin]:
    for module in pkgutil.iter_modules(pathsum.records.__path__, "pathsum.records."):
        importlib.import_module(module.name)
    return _KINDS
