"""Stage `calibrate`: train models on synthetic text with known structure, and run each detector on them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import torch

from pathsum.calibration.coverage import Held, coverage, held
from pathsum.calibration.score import Tried, calibrate, tried
from pathsum.calibration.synthetic import train_synthetic
from pathsum.config import CalibrateConfig, ExtractConfig, SyntheticModelConfig, load
from pathsum.core.storage import write_rows
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pipelines.interrupts import workers
from pipelines.paths import CALIBRATION, COVERAGE, THREADS, cores, leave_out_compiler, params, section, stage

MODELS_PER_JOB = 12  # trained at the same time by one process; fewer leave a core idle, more exceed its cache

Job = tuple[str, SyntheticModelConfig, tuple[int, ...], ExtractConfig]


def run_detectors(job: Job) -> list[tuple[Tried, Held]]:
    """Train a model on each synthetic corpus of one kind, and run every detector on it. Uses one thread.

    Return, for each model, its units (present, found) by detector, or None if it has not learned its text, and whether
    the intervals of its ablations hold.
    """
    torch.set_num_threads(1)
    leave_out_compiler()
    return [(tried(model), held(model)) for model in train_synthetic(*job)]


if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        values = params()
        chosen = load(CalibrateConfig, section(values, "calibrate"), "calibrate")
        config = load(ExtractConfig, section(values, "extract") | {"rotations": chosen.rotations}, "extract")
        kinds = {
            name: load(SyntheticModelConfig, kind, f"synthetic_models.{name}")
            for name, kind in section(values, "synthetic_models").items()
        }
        groups = [chosen.seeds[at : at + MODELS_PER_JOB] for at in range(0, len(chosen.seeds), MODELS_PER_JOB)]
        jobs = [(name, kind, seeds, config) for name, kind in kinds.items() for seeds in groups]
        with ProcessPoolExecutor(min(len(jobs), cores()), multiprocessing.get_context("spawn")) as pool:
            with workers():
                results = pool.map(run_detectors, jobs)
            found = [one for some in results for one in some]
        write_rows(CALIBRATION, calibrate([units for units, _ in found]), CalibrationRow)
        write_rows(COVERAGE, coverage([intervals for _, intervals in found]), CoverageRow)
