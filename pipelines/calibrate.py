"""Stage `calibrate`: train models on synthetic text with known structure, and run each detector on them. Nothing is
computed if the committed record has the fingerprint of this code and these settings."""

import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor

import torch

from pathsum.calibration.coverage import Held, coverage, held
from pathsum.calibration.score import Tried, calibrate, tried
from pathsum.calibration.synthetic import train_synthetic
from pathsum.config import ExtractConfig, SyntheticModelConfig, load
from pathsum.core import store
from pathsum.core.manifest import damage, write_manifest
from pathsum.core.storage import json_lines, read_value, write_whole
from pipelines.paths import CALIBRATION, COVERAGE, DETECTORS, RUNS, SYNTHETIC, THREADS, cores, params, section, stage

CODE = ("pathsum.calibration.coverage", "pathsum.calibration.score", "pathsum.calibration.synthetic")
MODELS_PER_JOB = 12  # trained at the same time by one process; fewer leave a core idle, more exceed its cache

Job = tuple[str, SyntheticModelConfig, tuple[int, ...], ExtractConfig]


def run_detectors(job: Job) -> list[tuple[Tried, Held]]:
    """Train a model on each synthetic corpus of one kind, and run every detector on it."""
    torch.set_num_threads(1)
    return [(tried(model), held(model)) for model in train_synthetic(*job)]


if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        chosen = read_value(SYNTHETIC)
        config = load(ExtractConfig, section(params(), "extract") | {"rotations": chosen["rotations"]}, "extract")
        kinds = {name: load(SyntheticModelConfig, kind, name) for name, kind in chosen["models"].items()}
        seeds = tuple(chosen["seeds"])
        facts = {"seeds": seeds, "extract": config.model_dump(), "threads": THREADS}
        models = {name: kind.model_dump() for name, kind in kinds.items()}
        entry = RUNS / "calibration" / store.fingerprint(*CODE, models=models, **facts)
        if damage(CALIBRATION, entry.name) and not store.finished(entry):
            groups = [seeds[at : at + MODELS_PER_JOB] for at in range(0, len(seeds), MODELS_PER_JOB)]
            jobs = [(name, kind, group, config) for name, kind in kinds.items() for group in groups]
            with ProcessPoolExecutor(min(len(jobs), cores()), multiprocessing.get_context("spawn")) as pool:
                found = [one for some in pool.map(run_detectors, jobs) for one in some]
            write_whole(entry / DETECTORS, json_lines(calibrate([units for units, _ in found])))
            write_whole(entry / COVERAGE, json_lines(coverage([intervals for _, intervals in found])))
            write_manifest(entry, name=entry.name)
        if damage(CALIBRATION, entry.name):  # the committed record is of other code or settings
            shutil.copytree(entry, CALIBRATION, dirs_exist_ok=True)
