"""Train single models or sweeps outside params.yaml, with any Hydra launcher, on the tokens that `dvc repro` wrote:

python -m pipelines.train model.n_layers=1 seed=3
python -m pipelines.train --multirun model.n_layers=0,1,2 model.n_heads=2,4,8
python -m pipelines.train --multirun hydra/launcher=joblib hydra.launcher.n_jobs=2 model.n_layers=1,2

If a model of a sweep fails, the others are still trained, and the exit code is not 0. Several processes can train one
model, on one host or on several hosts that share the folder:

torchrun --nproc-per-node 2 -m pipelines.train model.n_layers=1 seed=3
"""

import os
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
from pipelines.paths import MISTAKES, message, params, stage
from pipelines.progress import Sweep, note, told
from pipelines.train_cell import run_cell, set_threads

GROUPS = ("model", "train", "corpus", "tokenizer", "tracking", "profile")  # folders of conf/ that are read
READ = ("model.", "train.", "corpus.", "tokenizer.", "tracking.", "hydra.", "hydra/")
NAMED = ("model.n_layers", "model.n_heads", "seed", "profile", "corpus", "tracking")  # told by the name, or unread


def key_of(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def ad_hoc(config: DictConfig, typed: Sequence[str]) -> dict[str, Any]:
    """Return the grid's configuration for this model, with the overrides of the command line (``typed``)."""
    settings = OmegaConf.to_container(config)
    assert isinstance(settings, dict)
    settings["sweep"] = OmegaConf.to_container(config.sweep, resolve=True)
    cell = OmegaConf.create(grid.cell(settings, config.model.n_layers, config.model.n_heads, config.seed))
    for key in map(key_of, typed):
        if key.startswith(("model.", "train.")):
            OmegaConf.update(cell, key, OmegaConf.select(config, key))
    values = OmegaConf.to_container(cell, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def require_effect(arguments: Sequence[str]) -> None:
    """Raise ValueError for an override that would change nothing."""
    for typed in (word for word in arguments if "=" in word and not word.startswith("-")):
        key = key_of(typed)
        launches = key.startswith(("hydra/launcher", "hydra.launcher", "hydra.sweep"))
        if launches and not {"-m", "--multirun"} & set(arguments):
            raise ValueError(f"{typed}: only sweeps read it; expected --multirun as well")
        if key not in (*GROUPS, "seed") and not key.startswith(READ):
            reads = ", ".join(("seed", *READ))
            raise ValueError(f"{typed}: expected a setting that training one model reads ({reads}), got another")


def run(config: DictConfig, typed: Sequence[str]) -> Path:
    """Train one model, and return the folder of its run."""
    set_threads()
    for section in ("corpus", "tokenizer"):
        if OmegaConf.to_container(config[section]) != params().get(section):
            raise ValueError(
                f"expected the {section} of params.yaml, got another; set it in conf/, `make params repro`"
            )
    if misspelt := unknown_sections(config):
        raise ConfigError(misspelt)
    load(SweepConfig, OmegaConf.to_container(config.sweep, resolve=True), "sweep")
    cell = load(CellConfig, ad_hoc(config, typed), "config")
    tracking = load(TrackingConfig, OmegaConf.to_container(config.tracking, resolve=True), "tracking")
    name = grid.cell_name(cell.model.n_layers, cell.model.n_heads, cell.seed)
    overrides = [text for text in typed if key_of(text) not in NAMED and not key_of(text).startswith("tracking.")]
    folder = run_cell(name, cell, tracking, overrides)
    if ranks.is_main():
        print(f"{' '.join([name, *overrides])}: {folder}")
    return folder


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> None:
    job = HydraConfig.get()
    typed = list(job.overrides.task)
    if job.mode != RunMode.MULTIRUN:
        with stage(threads=0):  # else Hydra would add a line to a message
            run(config, typed)
        return
    folder, number = Path(job.runtime.output_dir), job.job.num
    if ranks.world_size() > 1:
        raise ValueError("--multirun: torchrun trains one model; a Hydra launcher trains several (hydra/launcher=…)")
    note(folder, number, typed)
    try:
        note(folder, number, typed, run(config, typed))
    except MISTAKES as error:
        said = f"{' '.join(typed)}: failed; {message(error)}"
        print(f"error: {said}", file=sys.stderr)
        raise ChildProcessError(said) from None  # the other jobs go on


if __name__ == "__main__":
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors, and does not print them with a traceback
    with ranks.process_group(), stage(threads=0):
        require_effect(sys.argv[1:])
        if not ranks.is_main():
            sys.argv += ["hydra.output_subdir=null", "hydra/job_logging=disabled"]  # only the main process writes
        try:
            with composing(sys.argv[1:]):
                main()
        finally:
            if Sweep.folder:
                print(told(Sweep.folder, params().get("corpus") or {}))
