"""Stage `report`: write the report from stored records, and mirror its figures and tables to W&B."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from pathsum.claims import registry
from pathsum.claims.preregistration import Preregistration
from pathsum.config import TrackingConfig, load
from pathsum.core.storage import read_records, read_value
from pathsum.records.verdicts import ClaimResult
from pathsum.report.build import tables, tables_of, write_report
from pathsum.report.corpora import FILE, read_rows
from pathsum.report.story import draw_all
from pathsum.tracking.tracker import mirror, mirror_tables
from pipelines.interrupts import workers
from pipelines.lab import read_lab
from pipelines.paths import (
    CIRCUITS,
    CLAIMS,
    PREREGISTRATION,
    REFERENCE_RUN,
    REPORTS,
    RUNS,
    THREADS,
    params,
    section,
    stage,
)
from pipelines.reference_run import computed
from pipelines.results import read_results

if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawn, torch.set_num_threads, (THREADS,)) as second:  # draws every other figure
            with workers():
                second.submit(int)  # starts the process, which imports what it needs while this one reads the records
            results = read_results()
            about = results.provenance | computed(REFERENCE_RUN, results.provenance["weights"])
            results = dataclasses.replace(results, provenance=about)
            stored = read_records(CLAIMS, ClaimResult)
            if absent := [claim for claim in registry.claims() if claim not in stored]:
                raise ValueError(
                    f"{CLAIMS}: expected a verdict on each claim, got none on {', '.join(absent)}; run make repro"
                )
            claims = [stored[claim] for claim in registry.claims()]
            registered = load(Preregistration, read_value(PREREGISTRATION), str(PREREGISTRATION))
            others = second.submit(draw_all, results, 1, 2)
            exported = read_lab(results)
            figures = draw_all(results, 0, 2) | others.result()
        write_report(results, claims, figures, REPORTS, registered, exported, read_rows(REPORTS / FILE))
        tracking = load(TrackingConfig, section(params(), "tracking"), "tracking")
        identity = hashlib.sha256(json.dumps(results.provenance, sort_keys=True).encode()).hexdigest()[:16]
        with mirror(tracking, "report", f"report-{identity}", "report", results.provenance, RUNS / "report") as wandb:
            for name, figure in figures.items():
                wandb.image(f"figures/{name}", REPORTS / "figures" / f"{name}.png", f"{figure.title}. {figure.caption}")
            wandb.page("report", REPORTS / "index.html")
        mirror_tables(  # the tables of the report as a run of their own, because most new reports change none
            tracking, "tables", f"tables-{identity}", "report", results.provenance, RUNS / "report",
            (REPORTS / "tables").iterdir(), functools.partial(tables, results, claims),
        )  # fmt: skip
        for cell in (results.cells | results.controls).values():  # one W&B run per model, with its rows of each table
            about, run = dataclasses.asdict(cell.summary), f"{cell.name}-circuits-{cell.summary.weights_hash[:16]}"
            files, rows = filter(Path.is_file, (CIRCUITS / cell.name).iterdir()), functools.partial(tables_of, cell)
            mirror_tables(tracking, cell.name, run, "circuits", about, RUNS / "report", files, rows)
