"""The files that the report stage writes: two documents, the figures and the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from pathsum.claims.corpora import Row
from pathsum.claims.metrics import CELL_METRICS
from pathsum.claims.preregistration import Preregistration
from pathsum.core.storage import frame
from pathsum.records import registry
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pathsum.records.corpus import CorpusSummary, NGramRow
from pathsum.records.doses import DoseRow
from pathsum.records.results import Cell, Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.page.render import html, markdown
from pathsum.report.story import UNFROZEN, story
from pathsum.report.theme import Figures
from pathsum.report.themes.agreement import evidence
from pathsum.report.told import Frames

CLAIM = ["id", "claim", "section", "measure", "threshold", "value", "verdict", "detail"]
LOGGED = ["step", "tokens_seen", "val_loss_nats", "in_context_loss_drop_nats"]
LOGGED += ["repeat_first_loss_nats", "repeat_second_loss_nats"]
BEST = {"matching": "best_prefix_matching", "previous": "best_previous_token_first_layer"}


def write_report(
    results: Results,
    claims: Sequence[ClaimResult],
    figures: Figures,
    folder: Path,
    registered: Preregistration = UNFROZEN,
    exported: Sequence[dict[str, Any]] = (),
    texts: Sequence[Row] = (),
) -> None:
    """Write index.html, README.md, figures/ (SVG, PNG, CSV) and tables/ (CSV) to ``folder``."""
    document = story(results, claims, figures, registered, exported, texts)
    drawn: dict[str, bytes] = {}
    for name, figure in figures.items():
        drawn |= {f"{name}.svg": figure.svg, f"{name}.png": figure.png, f"{name}.csv": _csv(figure.data)}
    _replace(folder / "figures", drawn)
    _replace(folder / "tables", {f"{name}.csv": _csv(t) for name, t in tables(results, claims).items()})
    (folder / "README.md").write_text(markdown(document), encoding="utf-8")
    (folder / "index.html").write_text(html(document), encoding="utf-8")


def tables(results: Results, claims: Sequence[ClaimResult]) -> dict[str, pd.DataFrame]:
    """Return every table of the report with all rows, by file name without its suffix."""
    every = Frames(results.cells | results.controls)
    return {
        "cells": _summaries(results.cells),
        "controls": _summaries(results.controls),
        "claims": pd.DataFrame([[getattr(c, name) for name in CLAIM] for c in claims], columns=CLAIM),
        "learning": every.log.rename(columns=BEST)[["cell", *LOGGED, *BEST.values()]],
        "corpus": frame([results.corpus], CorpusSummary),
        "ngrams": frame(results.ngrams, NGramRow),
        "agreement": evidence(Frames(results.cells)),
        "calibration": frame(results.calibration, CalibrationRow),
        "coverage": frame(results.coverage, CoverageRow),
        "dose_response": frame(results.doses, DoseRow),
        **{name: getattr(every, name)[["cell", *_names(kind)]].convert_dtypes() for name, kind in _printed().items()},
    }


def tables_of(cell: Cell) -> dict[str, pd.DataFrame]:
    """Return the printed records of ``cell`` as tables, by name. Records without rows are left out."""
    return {name: frame(rows, kind) for name, kind in _printed().items() if (rows := cell.tables.get(name))}


def _printed() -> dict[str, type[Any]]:
    declared = registry.origins()
    return {name: kind for name, kind in registry.tables().items() if declared[name].printed}


def _names(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def _summaries(cells: Mapping[str, Cell]) -> pd.DataFrame:
    return Frames(cells).cells[[*CELL_METRICS]].reset_index().convert_dtypes()


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n", float_format="%.6g").encode("utf-8", "backslashreplace")


def _replace(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.iterdir():
        if stale.suffix in {".svg", ".png", ".csv"} and stale.name not in files:
            stale.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
