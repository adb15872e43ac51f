"""Stage `calibrate`: train models on synthetic text with known structure, and run each detector on them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import torch

from pathsum.calibration.score import Tried, calibrate, tried
from pathsum.calibration.world import train_planted
from pathsum.config import CalibrateConfig, ExtractConfig, WorldConfig, load
from pathsum.core.storage import write_rows
from pathsum.records.calibration import CalibrationRow
from pipelines.paths import CALIBRATION, THREADS, cores, params, stage

MODELS_PER_JOB = 12  # trained at the same time by one process; fewer leave a core idle, more exceed its cache

Job = tuple[str, WorldConfig, tuple[int, ...], ExtractConfig]


def populate(job: Job) -> list[Tried]:
    """Train the models of several synthetic corpora of one kind, and run every detector on them, on one thread."""
    torch.set_num_threads(1)
    return [tried(planted) for planted in train_planted(*job)]


if __name__ == "__main__":
    with stage(THREADS):
        values = params()
        chosen = load(CalibrateConfig, values["calibrate"], "calibrate")
        config = load(ExtractConfig, values["extract"] | {"rotations": chosen.rotations}, "extract")
        worlds = {name: load(WorldConfig, world, f"worlds.{name}") for name, world in values["worlds"].items()}
        groups = [chosen.seeds[at : at + MODELS_PER_JOB] for at in range(0, len(chosen.seeds), MODELS_PER_JOB)]
        jobs = [(name, world, seeds, config) for name, world in worlds.items() for seeds in groups]
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(len(jobs), cores()), mp_context=spawn) as pool:
            found = [one for some in pool.map(populate, jobs) for one in some]
        write_rows(CALIBRATION, calibrate(found), CalibrationRow)
