"""The declaration of records: what each contains, its equation, and the code that computes it."""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar, dataclass_transform

import pathsum.records

R = TypeVar("R")
MODEL = "CELL"  # placeholder for a model's name


@dataclass(frozen=True)
class Origin:
    """The declaration of one record."""

    record: str
    holds: str
    equation: str
    code: str  # path under src/pathsum/
    stored: str  # path of the file; MODEL stands for the model's name
    stage: str  # stage of dvc.yaml that writes the file
    printed: bool  # whether reports/tables/ has it in full; other records only feed figures and explorers


@dataclass(frozen=True)
class OfHead:
    """A row about one head, by layer and number in the layer, both from 0."""

    layer: int
    head: int

    @property
    def place(self) -> tuple[int, int]:
        """Return the layer and the head."""
        return self.layer, self.head


_KINDS: dict[type[Any], Origin] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    name: str, equation: str, code: str, stored: str = "", stage: str = "extract", printed: bool = True
) -> Callable[[type[R]], type[R]]:
    """Declare a class in any file of this folder as the row type of the record ``name``. Its file, its column names and
    its entry in the report's list of records follow; the first sentence of its docstring says what the record holds."""

    def declare(kind: type[R]) -> type[R]:
        assert name not in {origin.record for origin in _KINDS.values()}, f"two records are called {name}"
        row = kind if is_dataclass(kind) and "__dataclass_fields__" in vars(kind) else dataclass(frozen=True)(kind)
        first = " ".join((kind.__doc__ or "").split()).split(". ")[0].removesuffix(".")
        holds = first if first[1:2] == "-" else first[:1].lower() + first[1:]  # "Q-, K- and V-composition"
        _KINDS[row] = Origin(name, holds, equation, code, stored or f"{MODEL}/{name}.parquet", stage, printed)
        return row

    return declare


def origins() -> dict[str, Origin]:
    """Return the declaration of every record, by name, in alphabetical order."""
    return dict(sorted((origin.record, origin) for origin in _kinds().values()))


def tables() -> dict[str, type[Any]]:
    """Return the row type of every record that is stored as one ``<name>.parquet`` per model, by name."""
    found = _kinds().items()
    return dict(sorted((o.record, kind) for kind, o in found if o.stored == f"{MODEL}/{o.record}.parquet"))


def name_of(kind: type[Any]) -> str:
    """Return the name of the record with row type ``kind``. Raises KeyError for an undeclared type."""
    return _KINDS[kind].record


def intervals(prefix: str | None = None, /, **found: Sequence[float | None]) -> dict[str, Any]:
    """Return the columns of intervals (mean, low, high): ``loss_nats`` becomes loss_nats, loss_low and loss_high, and
    ``gain_share`` becomes gain_share, gain_low and gain_high. ``prefix`` replaces "loss_" or "gain_"."""
    columns: dict[str, Any] = {}
    for name, interval in found.items():
        ends = f"{name.removesuffix('_nats').removesuffix('_share')}_" if prefix is None else prefix
        columns |= zip((name, f"{ends}low", f"{ends}high"), interval, strict=True)
    return columns


def _kinds() -> dict[type[Any], Origin]:
    for module in pkgutil.iter_modules(pathsum.records.__path__, "pathsum.records."):
        importlib.import_module(module.name)
    return _KINDS
