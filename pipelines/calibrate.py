"""Stage `calibrate`: train models on text with known structure, and see what each detector makes of them."""

from __future__ import annotations

from pathsum.calibration.score import calibrate
from pathsum.calibration.world import grow, make_world
from pathsum.config import CalibrateConfig, ExtractConfig, WorldConfig, load
from pathsum.records import CalibrationRow
from pathsum.storage import write_rows
from pipelines.paths import CALIBRATION, RUNS, params, stage

if __name__ == "__main__":
    with stage():
        values = params()
        seeds = load(CalibrateConfig, values["calibrate"], "calibrate").seeds
        how = load(ExtractConfig, values["extract"], "extract")
        models = []
        for name, config in values["worlds"].items():
            world = make_world(name, load(WorldConfig, config, f"worlds.{name}"))
            models += [grow(world, seed, how, RUNS) for seed in seeds]
        write_rows(CALIBRATION, calibrate(models, how), CalibrationRow)
