"""Train single models or sweeps outside params.yaml, with any Hydra launcher, on the tokens that `dvc repro` wrote:

python -m pipelines.train model.n_layers=1 seed=3
python -m pipelines.train --multirun model.n_layers=0,1,2 model.n_heads=2,4,8
python -m pipelines.train --multirun hydra/launcher=joblib hydra.launcher.n_jobs=2 model.n_layers=1,2

If a model of a sweep fails, the others are still trained, and the exit code is not 0. A sweep ends with a table of its
models. Several processes can train one
model, on one host or on several hosts that share the folder:

torchrun --nproc-per-node 2 -m pipelines.train model.n_layers=1 seed=3
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from pathsum.config import CellConfig, ConfigError, SweepConfig, TrackingConfig, load
from pathsum.training import ranks
from pipelines import grid
from pipelines.check import unknown_sections
from pipelines.compose import composing
from pipelines.paths import TOKENS, params, stage
from pipelines.sweeps import Sweep, note, told
from pipelines.train_cell import run_cell, set_threads

GROUPS = ("model", "train", "corpus", "tokenizer", "tracking", "profile")  # folders of conf/ that are read
SWEEPS = re.compile("(-m|--mu.*)$|[+]*hydra.mode=.?MULTIRUN")  # an argument that asks for a sweep
READ = ("model.", "train.", "corpus.", "tokenizer.", "tracking.", "hydra.", "hydra/")


def ad_hoc(config: DictConfig, typed: Sequence[str]) -> dict[str, Any]:
    """Return the grid's configuration for this model, with the ``model.`` and ``train.`` overrides of the command line
    (``typed``) applied."""
    settings = OmegaConf.to_container(config)
    assert isinstance(settings, dict)
    settings["sweep"] = OmegaConf.to_container(config.sweep, resolve=True)
    cell = OmegaConf.create(grid.cell(settings, config.model.n_layers, config.model.n_heads, config.seed))
    for key in (override.lstrip("+").partition("=")[0] for override in typed):
        if key.startswith(("model.", "train.")):
            OmegaConf.update(cell, key, OmegaConf.select(config, key))
    values = OmegaConf.to_container(cell, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def require_same_tokens(config: DictConfig) -> None:
    """Raise ValueError if ``config`` differs from params.yaml in corpus or tokenizer, because the stored tokens are
    those of params.yaml."""
    for section in ("corpus", "tokenizer"):
        if OmegaConf.to_container(config[section]) != params().get(section):
            raise ValueError(
                f"expected the {section} of params.yaml, whose tokens are stored in {TOKENS}, got another; choose it "
                "in conf/config.yaml and run `make params repro` first"
            )


def require_effect(arguments: Sequence[str]) -> None:
    """Raise ValueError for an override that would change nothing: a setting that training one model does not read, or
    one of a launcher without a sweep."""
    sweep = any(SWEEPS.match(word) for word in arguments)
    for typed in (word for word in arguments if "=" in word and not word.startswith("-")):
        key = typed.lstrip("+~").partition("=")[0]
        if key.startswith(("hydra/launcher", "hydra.launcher", "hydra.sweep")) and not sweep:
            raise ValueError(f"{typed}: only sweeps read it; expected --multirun as well")
        if key not in (*GROUPS, "seed") and not key.startswith(READ):
            raise ValueError(
                f"{typed}: expected a setting that training one model reads (seed, {', '.join(READ)}), got another, "
                "which would change nothing; settings of the grid are for `make params` and `dvc exp run`"
            )


def naming(typed: Sequence[str]) -> list[str]:
    """Return the overrides of the command line (``typed``) that the names of a model and its profile do not tell."""
    told = ("model.n_layers", "model.n_heads", "seed", "profile", "corpus", "tracking", "tracking.")
    keys = {override: override.lstrip("+").partition("=")[0] for override in typed}
    return [override for override, key in keys.items() if key not in told and not key.startswith("tracking.")]


def run(config: DictConfig, typed: Sequence[str], sweep: bool) -> Path:
    """Train one model, and return the folder of its run."""
    with stage(threads=0):
        set_threads()
        if sweep and ranks.world_size() > 1:
            raise ValueError(
                "--multirun: torchrun trains one model at a time; a Hydra launcher trains several (hydra/launcher=…)"
            )
        require_same_tokens(config)
        if misspelt := unknown_sections(config):
            raise ConfigError(misspelt)
        load(SweepConfig, OmegaConf.to_container(config.sweep, resolve=True), "sweep")
        cell = load(CellConfig, ad_hoc(config, typed), "config")
        tracking = load(TrackingConfig, OmegaConf.to_container(config.tracking, resolve=True), "tracking")
        name = grid.cell_name(cell.model.n_layers, cell.model.n_heads, cell.seed)
        title = " ".join([name, *(overrides := naming(typed))])
        folder = run_cell(name, cell, tracking, overrides)
        if ranks.is_main():
            print(f"{title}: {folder}")
        return folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> None:
    job = HydraConfig.get()
    typed, sweep = list(job.overrides.task), job.mode == RunMode.MULTIRUN
    try:
        if sweep:
            note(Path(job.runtime.output_dir), job.job.num, typed)
        folder = run(config, typed, sweep)
        if sweep:
            note(Path(job.runtime.output_dir), job.job.num, typed, folder)
    except SystemExit as stopped:
        if not sweep:
            raise
        raise ChildProcessError(f"{' '.join(typed)}: failed; {stopped.__cause__}") from None  # the other jobs go on


if __name__ == "__main__":
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors, and does not print them with a traceback
    with stage(threads=0):
        require_effect(sys.argv[1:])
    with ranks.process_group(), stage(threads=0), composing(sys.argv[1:]):
        if not ranks.is_main():
            sys.argv += ["hydra.output_subdir=null", "hydra/job_logging=disabled"]  # only the main process writes
        try:
            main()
        finally:
            if Sweep.folder:
                print(told(Sweep.folder, params().get("corpus") or {}))
