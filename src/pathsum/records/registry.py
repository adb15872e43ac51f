"""The declared records, each with its contents, its equation and the code that computes it.

``tables()``, the report's table of origins and the files that a stage reads and writes follow from these declarations.
A new record is a class with ``@record`` in a file of this folder, and no other edit.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar, dataclass_transform

import pathsum.records

R = TypeVar("R")
MODEL = "CELL"  # placeholder for a model's name


@dataclass(frozen=True)
class Origin:
    """The contents of a record, its computation, and its file."""

    record: str
    holds: str
    equation: str
    code: str  # path under src/pathsum/
    stored: str
    stage: str
    printed: bool  # in full under reports/tables/; other records only feed figures and explorers


_KINDS: dict[type[Any], Origin] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    name: str,
    holds: str,
    equation: str,
    code: str,
    stored: str = "",
    stage: str = f"extract@{MODEL}",
    printed: bool = True,
) -> Callable[[type[R]], type[R]]:
    """Make a row type a frozen dataclass and declare it as the record ``name``, by default a table of each model."""

    def declare(kind: type[R]) -> type[R]:
        assert name not in {origin.record for origin in _KINDS.values()}, f"two records are called {name}"
        row = kind if is_dataclass(kind) else dataclass(frozen=True)(kind)
        _KINDS[row] = Origin(name, holds, equation, code, stored or f"{MODEL}/{name}.parquet", stage, printed)
        return row

    return declare


def origins() -> dict[str, Origin]:
    """Return every declared record, by name, in alphabetical order."""
    return dict(sorted((origin.record, origin) for origin in _kinds().values()))


def tables() -> dict[str, type[Any]]:
    """Return the row type of each table that a model's folder holds as ``<name>.parquet``, in alphabetical order."""
    found = _kinds().items()
    return dict(sorted((o.record, kind) for kind, o in found if o.stored == f"{MODEL}/{o.record}.parquet"))


def name_of(kind: type[Any]) -> str:
    """Return the name of the record that ``kind`` is a row of. KeyError for an undeclared type."""
    return _KINDS[kind].record


def _kinds() -> dict[type[Any], Origin]:
    for module in pkgutil.iter_modules(pathsum.records.__path__, "pathsum.records."):
        importlib.import_module(module.name)
    return _KINDS
