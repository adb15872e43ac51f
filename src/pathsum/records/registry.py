"""The declaration of records: what each contains, its equation, and the code that computes it.

``tables()``, the report's list of records, and the files that stages read and write follow from these declarations. To
add a record, decorate a row class in any file of this folder with ``@record``. Nothing else needs an edit.
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
    """The declaration of one record: what it contains, how it is computed, and where it is stored."""

    record: str  # name
    holds: str  # contents, in words
    equation: str
    code: str  # path under src/pathsum/
    stored: str  # path of the file; MODEL stands for the model's name
    stage: str  # stage of dvc.yaml that writes the file
    printed: bool  # whether reports/tables/ has it in full; other records only feed figures and explorers


_KINDS: dict[type[Any], Origin] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    name: str,
    holds: str,
    equation: str,
    code: str,
    stored: str = "",
    stage: str = "extract",
    printed: bool = True,
) -> Callable[[type[R]], type[R]]:
    """Return a decorator that declares a class as the row type of the record ``name``."""

    def declare(kind: type[R]) -> type[R]:
        assert name not in {origin.record for origin in _KINDS.values()}, f"two records are called {name}"
        row = kind if is_dataclass(kind) else dataclass(frozen=True)(kind)
        _KINDS[row] = Origin(name, holds, equation, code, stored or f"{MODEL}/{name}.parquet", stage, printed)
        return row

    return declare


def origins() -> dict[str, Origin]:
    """Return the declaration of every record, by name, in alphabetical order."""
    return dict(sorted((origin.record, origin) for origin in _kinds().values()))


def tables() -> dict[str, type[Any]]:
    """Return the row type of every record that is stored as one ``<name>.parquet`` per model, by name, in alphabetical
    order."""
    found = _kinds().items()
    return dict(sorted((o.record, kind) for kind, o in found if o.stored == f"{MODEL}/{o.record}.parquet"))


def name_of(kind: type[Any]) -> str:
    """Return the name of the record with row type ``kind``. Raises KeyError for an undeclared type."""
    return _KINDS[kind].record


def _kinds() -> dict[type[Any], Origin]:
    for module in pkgutil.iter_modules(pathsum.records.__path__, "pathsum.records."):
        importlib.import_module(module.name)
    return _KINDS
