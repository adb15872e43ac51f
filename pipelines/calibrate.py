"""Stage `calibrate`: train models on text with known structure, and see what each detector makes of them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch

from pathsum.calibration.score import calibrate
from pathsum.calibration.world import Grown, World, grow, make_world, raise_model
from pathsum.config import CalibrateConfig, ExtractConfig, WorldConfig, load
from pathsum.records import CalibrationRow
from pathsum.storage import write_rows
from pipelines.paths import CALIBRATION, RUNS, cores, params, stage


def populate(seeds: tuple[int, ...], name: str, config: WorldConfig) -> World:
    """Make a world and train its models, on one thread: they are too small for two, and the weights are the same."""
    torch.set_num_threads(1)
    world = make_world(name, config)
    for seed in seeds:
        raise_model(world, seed, RUNS)
    return world


def models(worlds: dict[str, WorldConfig], seeds: tuple[int, ...], how: ExtractConfig) -> list[Grown]:
    """Of every world and seed, the worlds side by side."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(worlds), cores()), mp_context=spawn) as pool:
        made = list(pool.map(partial(populate, seeds), worlds, worlds.values()))
    return [grow(world, seed, how, RUNS) for world in made for seed in seeds]


if __name__ == "__main__":
    with stage():
        values = params()
        seeds = load(CalibrateConfig, values["calibrate"], "calibrate").seeds
        how = load(ExtractConfig, values["extract"], "extract")
        worlds = {name: load(WorldConfig, config, f"worlds.{name}") for name, config in values["worlds"].items()}
        write_rows(CALIBRATION, calibrate(models(worlds, seeds, how)), CalibrationRow)
