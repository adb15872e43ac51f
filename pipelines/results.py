"""Read all records for the stages `verify` and `report`, with their provenance."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pathsum.core.manifest import require_whole
from pathsum.core.storage import read_json, read_rows
from pathsum.records.calibration import CalibrationRow
from pathsum.records.corpus import CorpusSummary, NGramRow
from pathsum.records.results import Cell, Results, read_cell
from pipelines.paths import CALIBRATION, CIRCUITS, STATISTICS, params, section

LIBRARIES = ("torch", "tokenizers", "numpy", "pandas", "seaborn")


def read_results(folder: Path = Path()) -> Results:
    """Read all records of the project in ``folder``. Models without records are listed in ``Results.missing``.

    Raises ValueError for damaged records.
    """
    values, circuits, statistics = params(folder), folder / CIRCUITS, folder / STATISTICS
    cells, declared = section(values, "cells"), section(values, "sweep", "controls")
    made = [name for name in cells if (circuits / name / "summary.json").exists()]
    missing = tuple(name for name in cells if name not in made)
    found = {name: _records_of(name, circuits / name) for name in made}
    controls = {name: found.pop(name) for name in declared if name in found}
    require_whole(statistics)
    corpus = read_json(statistics / "summary.json", CorpusSummary)
    ngrams = read_rows(statistics / "ngrams.parquet", NGramRow)
    calibrated = folder / CALIBRATION
    calibration = read_rows(calibrated, CalibrationRow) if calibrated.exists() else []
    positions = {name: section(cells, name, "model", "positions") for name in made}
    sources = section(values, "corpus").get("distributions", ())
    about = provenance(corpus, found | controls, positions, sources)
    about["extract"] = {name: section(values, "extract", name) for name in ("windows", "repeated_windows")}  # n
    return Results(found, controls, corpus, ngrams, about, missing, calibration)


def _records_of(name: str, folder: Path) -> Cell:
    cell = read_cell(folder)
    if cell.name != name:
        raise ValueError(
            f"{folder}: expected the records of {name}, got those of {cell.name}, so its entry in dvc.lock is wrong; "
            f"run `dvc repro --force --single-item extract@{name}`, and then the same command again"
        )
    return cell


def provenance(
    corpus: CorpusSummary, cells: dict[str, Cell], positions: dict[str, str], sources: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what the numbers depend on: software, processor, corpus and weights. It is equal for two runs on one
    machine.

    ``positions`` is the position scheme of each model. ``sources`` are the public distributions whose source code is
    the corpus.
    """
    import torch

    return {
        "command": "make repro",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "trained_on": ", ".join(sorted({cell.summary.device for cell in cells.values()})),
        "positions": ", ".join(sorted(set(positions.values()))),
        "libraries": {name: version(name) for name in LIBRARIES},
        "corpus_sources": ", ".join(sources),
        "corpus_hash": corpus.corpus_hash,
        "tokenizer_hash": corpus.tokenizer_hash,
        "weights": {name: cell.summary.weights_hash for name, cell in cells.items()},
    }
