"""All records that the report uses: of models, corpus and calibration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pathsum.core.manifest import require_whole, write_manifest
from pathsum.core.storage import json_lines, read_json, read_lines, read_rows, write_json, write_rows, write_whole
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pathsum.records.corpus import CorpusSummary, NGramRow
from pathsum.records.doses import DoseRow
from pathsum.records.evaluation import Evaluation
from pathsum.records.heads import HeadRow
from pathsum.records.onsets import TextOnsets
from pathsum.records.registry import name_of, tables
from pathsum.records.roles import MATCHES, HeadRoles
from pathsum.records.summary import CellSummary

R = TypeVar("R")

FORMED = 0.3  # least prefix matching of a formed induction head; other heads score below 0.1


@dataclass(frozen=True)
class Cell:
    """All records of one trained model."""

    summary: CellSummary
    log: list[Evaluation]
    tables: Mapping[str, list[Any]] = field(default_factory=dict)  # by name of the record

    def rows(self, kind: type[R]) -> list[R]:
        """Return the rows of type ``kind``; an empty list if there are none."""
        return self.tables.get(name_of(kind), [])

    def of_induction_head(self, kind: type[R]) -> list[R]:
        """Return the rows of the induction head, of a ``kind`` with the fields ``layer`` and ``head``."""
        place = HeadRoles.of(self.log).induction
        return [row for row in self.rows(kind) if (row.layer, row.head) == place]  # type: ignore[attr-defined]

    def having(self, **tables: list[Any]) -> Cell:
        """Return a copy with ``tables`` (by name of the record) added or replaced."""
        return dataclasses.replace(self, tables={**self.tables, **tables})

    @property
    def name(self) -> str:
        return self.summary.cell

    def induction_head(self) -> HeadRow | None:
        """Return the scores of the induction head (``HeadRoles``); None without heads or evaluations."""
        return next(iter(self.of_induction_head(HeadRow)), None)

    def has_induction_head(self) -> bool:
        """Return whether some head had a prefix matching of at least MATCHES at the last evaluation of training."""
        scores = [score for layer in self.log[-1].prefix_matching for score in layer] if self.log else []
        return max(scores, default=0.0) >= MATCHES

    def has_curve(self) -> bool:
        """Return whether the model was evaluated at several steps of training."""
        return len(self.log) > 1

    def formed_induction_head(self) -> HeadRow | None:
        """Return ``induction_head()`` if its prefix matching is at least FORMED, otherwise None."""
        best = self.induction_head()
        return best if best and best.prefix_matching >= FORMED else None

    def previous_token_head(self) -> HeadRow | None:
        """Return the scores of the previous-token head (``HeadRoles``); None without heads or evaluations."""
        place = HeadRoles.of(self.log).previous
        return next((h for h in self.rows(HeadRow) if (h.layer, h.head) == place), None)


@dataclass(frozen=True)
class Results:
    """All records from which the report is made."""

    cells: dict[str, Cell]  # models of the grid, by name
    controls: dict[str, Cell]  # control models, by name; claims about the grid do not count them
    corpus: CorpusSummary
    ngrams: list[NGramRow]
    provenance: dict[str, Any]
    missing: tuple[str, ...]  # declared models without records
    calibration: list[CalibrationRow] = field(default_factory=list)
    coverage: list[CoverageRow] = field(default_factory=list)
    doses: list[DoseRow] = field(default_factory=list)  # led to induction by weights of repeats
    known: list[TextOnsets] = field(default_factory=list)  # onsets on the texts of corpora.csv
    texts: Mapping[str, Results] = field(default_factory=dict)  # of the grid's further texts, by name

    @property
    def has_curves(self) -> bool:
        """Return whether a model was evaluated at several steps of training."""
        return any(cell.has_curve() for cell in self.cells.values())

    def of_depth(self, depth: int) -> list[Cell]:
        """Return the models without layers (0), with one (1), or with two or more (2): what the papers say of two-layer
        models is asked of deeper ones too."""
        return [c for c in self.cells.values() if min(c.summary.n_layers, 2) == depth]

    def with_layers(self, n_layers: int) -> list[Cell]:
        return [c for c in self.cells.values() if c.summary.n_layers == n_layers]

    def layer_counts(self) -> list[int]:
        return sorted({c.summary.n_layers for c in self.cells.values()})


def write_cell(folder: Path, cell: Cell, name: str = "") -> None:
    """Write ``cell`` as summary.json, log.jsonl, one parquet file per table, and a manifest with ``name``."""
    write_json(folder / "summary.json", cell.summary)
    write_whole(folder / "log.jsonl", json_lines(cell.log))
    for table, kind in tables().items():
        write_rows(folder / f"{table}.parquet", cell.tables.get(table, []), kind)
    write_manifest(folder, name=name)


def read_cell(folder: Path) -> Cell:
    """Read the records of one model from ``folder``."""
    expected = ["summary.json", "log.jsonl", *(f"{name}.parquet" for name in tables())]
    absent = [name for name in expected if not (folder / name).is_file()]
    if absent:
        raise FileNotFoundError(f"{folder}: expected records of a model, got no {', '.join(absent)}; run `dvc repro`")
    require_whole(folder)
    return Cell(
        summary=read_json(folder / "summary.json", CellSummary),
        log=read_lines(folder / "log.jsonl", Evaluation),
        tables={name: read_rows(folder / f"{name}.parquet", kind) for name, kind in tables().items()},
    )
