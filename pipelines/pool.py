"""Hand the models of the grid to the Hydra launcher that conf/launch.yaml names."""

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from pipelines.paths import JOBS, MISTAKES, ROOT, THREADS, cores, message, params, section

CONTAINER = Path("/sys/fs/cgroup/memory.max")  # memory limit of a Linux container, in bytes


def for_each(module: str, models: Sequence[str]) -> None:
    """Call the function ``make`` of ``module`` with the name of each of the ``models``."""
    if models:
        warnings.filterwarnings("ignore", "A worker stopped")  # one that has grown is replaced, and its job goes on
        os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker:UserWarning"  # after an interrupt
        sys.argv[1:] = ["--multirun", f"job={module}", f"cell={','.join(models)}"]
        _launch()


@hydra.main(version_base="1.3", config_path=str(ROOT / "conf"), config_name="launch")
def _launch(config: DictConfig) -> None:
    try:
        importlib.import_module(config.job).make(config.cell)
    except Exception as error:
        said = message(error) if isinstance(error, MISTAKES) else "".join(traceback.format_exception(error))
        print(f"{config.cell}: failed: {said}", file=sys.stderr, flush=True)


def threads() -> int:
    """Return the number of torch threads of a job: its share of the cores, at most THREADS."""
    jobs = HydraConfig.get().launcher.get("n_jobs", 1) if HydraConfig.initialized() else 1
    return max(1, min(THREADS, cores() // jobs))


def at_a_time() -> int:
    """Return the number of models at a time: JOBS, or one with a GPU, or as many as cores and memory allow."""
    if given := os.environ.get(JOBS):
        if not given.isdecimal() or int(given) < 1:
            raise ValueError(f"JOBS: expected how many models to process at a time, at least 1, got {given!r}")
        return int(given)
    import torch

    model = section(params(), "model")
    needed = 3 * 2**29 + 2**15 * model["n_ctx"] * model["d_model"]  # bytes; measured: 1.8 GiB of 2.5, prose 8.1 of 9.5
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if CONTAINER.exists() and (most := CONTAINER.read_text().strip()).isdecimal():  # "max" if there is no limit
        memory = min(memory, int(most))
    return 1 if torch.cuda.is_available() else max(1, min(cores(), memory // needed))


OmegaConf.register_new_resolver("at_a_time", at_a_time, replace=True)
