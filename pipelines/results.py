"""Read all records for the stages `verify` and `report`, with their provenance."""

import platform
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from pathsum.core.manifest import MANIFEST, require_whole
from pathsum.core.storage import read_json, read_lines, read_rows
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pathsum.records.corpus import CorpusSummary, NGramRow
from pathsum.records.doses import read_doses
from pathsum.records.results import Cell, Results, read_cell
from pipelines import grid
from pipelines.paths import CALIBRATION, CIRCUITS, COVERAGE, DETECTORS, STATISTICS, params, section

DOSES = Path("reports/dose_response.csv")
LIBRARIES = ("torch", "tokenizers", "numpy", "pandas", "seaborn")


def read_results(folder: Path = Path()) -> Results:
    """Read all records of the project in ``folder``."""
    texts = grid.texts(params(folder))
    main = _of_text("", texts.pop(""), folder)
    return replace(main, texts={name: _of_text(name, values, folder) for name, values in texts.items()})


def _of_text(text: str, values: dict[str, Any], folder: Path) -> Results:
    """Read the records of the models of one text."""
    circuits, statistics = folder / CIRCUITS, folder / STATISTICS / text
    cells = {grid.full_name(text, name): cell for name, cell in grid.cells(values).items()}
    found = {name: read_cell(circuits / name) for name in cells if (circuits / name / "summary.json").exists()}
    controls = {name: found[name] for name in section(values, "sweep", "controls") if name in found}
    models = by_size({name: cell for name, cell in found.items() if name not in controls})
    require_whole(statistics)
    corpus = read_json(statistics / "summary.json", CorpusSummary)
    return Results(
        cells=models,
        controls=controls,
        corpus=corpus,
        ngrams=read_rows(statistics / "ngrams.parquet", NGramRow),
        provenance=provenance(corpus, models | controls, cells, values),
        missing=tuple(name for name in cells if name not in found),
        **calibration(folder),
        doses=read_doses(folder / DOSES),
    )


def calibration(folder: Path = Path()) -> dict[str, Any]:
    """Return the fields of ``Results`` on the calibration of the detectors, if there is one."""
    made = folder / CALIBRATION
    if not (made / MANIFEST).exists():
        return {}
    rows, coverage = read_lines(made / DETECTORS, CalibrationRow), read_lines(made / COVERAGE, CoverageRow)
    return {"calibration": rows, "coverage": coverage}


def by_size(cells: dict[str, Cell]) -> dict[str, Cell]:
    """Order models by their numbers of layers and heads and the width of a head; the rest stays in order."""
    sizes = {name: (c.summary.n_layers, c.summary.n_heads, c.summary.d_head) for name, c in cells.items()}
    return {name: cells[name] for name in sorted(cells, key=sizes.__getitem__)}


def provenance(
    corpus: CorpusSummary, cells: dict[str, Cell], settings: dict[str, Any], values: dict[str, Any]
) -> dict[str, Any]:
    """Return what the numbers depend on: software, processor, corpus and weights."""
    return {
        "command": "make repro",
        "python": ".".join(platform.python_version_tuple()[:2]),
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "trained_on": ", ".join(sorted({cell.summary.device for cell in cells.values()})),
        "positions": ", ".join(sorted({settings[name]["model"]["positions"] for name in cells})),
        "libraries": {name: version(name) for name in LIBRARIES},
        "corpus_sources": ", ".join(d.partition("=")[0] for d in section(values, "corpus").get("distributions", ())),
        "corpus_hash": corpus.corpus_hash,
        "tokenizer_hash": corpus.tokenizer_hash,
        "weights": {name: cell.summary.weights_hash for name, cell in cells.items()},
        "extract": {name: section(values, "extract", name) for name in ("windows", "repeated_windows")},  # claims' n
    }
