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
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import hydra
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from pathsum.config import CellConfig, ConfigError, SweepConfig, TrackingConfig, load
from pathsum.training import ranks
from pipelines.check import LONG_WARMUP, ends_in_warmup, unknown_sections
from pipelines.compose import composing
from pipelines.hydra_plugins import grid
from pipelines.interrupts import INTERRUPTED, PARENT
from pipelines.paths import ROOT, TOKENS, params, stage
from pipelines.repro import require_limits, wait_for_tokens
from pipelines.sweeps import Sweep, note, told
from pipelines.train_cell import run_cell, set_threads

GROUPS = ("model", "train", "corpus", "tokenizer", "tracking", "profile")  # folders of conf/ that are read
MOST_JOBS = 1_000  # largest number of joblib processes
NEVER_IMPORTED = ("test", "tests")  # modules that Python or packages have, and that no process of a sweep imports
SWEEPS = re.compile("(-m|--mu.*)$|[+]*hydra.mode=.?MULTIRUN")  # an argument that asks for a sweep
RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR")  # torchrun sets them
OF_SWEEPS = ("hydra/launcher", "hydra/sweeper", "hydra.sweep.")
READ = ("model.", "train.", "corpus.", "tokenizer.", "tracking.", "hydra.", "hydra/")


def ad_hoc(config: DictConfig, typed: Sequence[str]) -> dict[str, Any]:
    """Return the grid's configuration for this model, with the ``model.`` and ``train.`` overrides of the command line
    (``typed``) applied.

    If they change nothing, the run has the fingerprint of the grid's model, and a finished one is used again.
    """
    settings = grid.as_dict(config) | {"sweep": OmegaConf.to_container(config.sweep, resolve=True)}
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
    """Raise ValueError for an override that would change nothing or that cannot be used.

    These are settings that training one model does not read, launchers without a sweep, sweeps without values (for
    which Hydra would train nothing), overrides that delete or replace a section, wrong numbers of jobs, and another
    working folder.
    """
    sweep = any(SWEEPS.match(word) for word in arguments)
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        parser = OverridesParser.create(GlobalHydra.instance().config_loader())
    for typed in (word for word in arguments if ("=" in word and not word.startswith("-")) or word.startswith("~")):
        override = parser.parse_overrides([typed])[0]
        if override.is_discrete_sweep() and not any(True for _ in override.sweep_iterator()):
            raise ValueError(f"{typed}: expected at least one value, got none; no model would be trained")
        key, value = override.key_or_group, override.value()
        if override.is_delete():
            raise ValueError(
                f"{typed}: expected one setting and its value, such as train.tokens=500000, got another form"
            )
        if key.startswith(OF_SWEEPS) and not sweep:
            raise ValueError(f"{typed}: only sweeps read it; expected --multirun as well")
        if key.startswith("hydra.run.") and sweep:
            raise ValueError(f"{typed}: sweeps do not read it; expected hydra.sweep.dir")
        if key.startswith("hydra.sweeper"):
            raise ValueError(f"{typed}: expected the values of a sweep as KEY=1,2, got them in a setting of Hydra")
        if key == "hydra.launcher.n_jobs" and isinstance(value, int) and value not in (-1, *range(1, MOST_JOBS + 1)):
            raise ValueError(f"{typed} (JOBS): expected a number of models to train at a time, 1 to {MOST_JOBS}")
        if key == "hydra.job.chdir" and value is not False:
            raise ValueError(f"{typed}: expected false, because paths are relative to the root of the repository")
        if key not in (*GROUPS, "seed") and not key.startswith(READ):
            raise ValueError(
                f"{typed}: expected a setting that training one model reads (seed, {', '.join(READ)}), got another, "
                "which would change nothing; settings of the grid are for `make params` and `dvc exp run`"
            )


def require_visible_modules(arguments: Sequence[str]) -> None:
    """Raise ValueError if a launcher is chosen and a file of this folder has the name of a module of Python or of a
    package: the launcher's workers look for modules in this folder first, and would run that file instead."""
    elsewhere = [entry for entry in sys.path if Path(entry).resolve() != Path.cwd()]
    files = (*Path().glob("*.py"), *Path().glob("*/__init__.py"))
    own = {path.parent.name or path.stem: path for path in files}  # by the name under which Python imports them
    for word in arguments:
        key, _, launcher = word.lstrip("+").partition("=")
        for name in sorted(own) if key == "hydra/launcher" and launcher != "basic" else ():
            if name.isidentifier() and name not in NEVER_IMPORTED and PathFinder.find_spec(name, elsewhere):
                raise ValueError(
                    f"{own[name]}: expected no file here with the name of a module of Python or of a package, because "
                    f"processes of {word} would run it instead; rename it"
                )


def require_ranks() -> None:
    """Raise ValueError if torchrun is said to have started this process, but its numbers are missing or wrong."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    given = {name: os.environ.get(name, "") for name in RANKS}
    numbers = all(value.isdecimal() and len(value) < 10 for name, value in given.items() if name != "MASTER_ADDR")
    if not (
        numbers
        and given["MASTER_ADDR"]
        and int(given["RANK"]) < int(given["WORLD_SIZE"])
        and int(given["LOCAL_RANK"]) < int(given["LOCAL_WORLD_SIZE"])
        and int(given["MASTER_PORT"]) < 2**16
    ):
        shown = " ".join(f"{name}={value}" for name, value in given.items())
        raise ValueError(
            f"expected the numbers that torchrun sets, got {shown}; start this with torchrun, or unset "
            "TORCHELASTIC_RUN_ID"
        )


def naming(typed: Sequence[str]) -> list[str]:
    """Return the overrides of the command line (``typed``) that the names of a model and its profile do not tell."""
    told = ("model.n_layers", "model.n_heads", "seed", "profile", "corpus", "tracking", "tracking.")
    keys = {override: override.lstrip("+").partition("=")[0] for override in typed}
    return [override for override, key in keys.items() if key not in told and not key.startswith("tracking.")]


def run(config: DictConfig, typed: Sequence[str], sweep: bool) -> Path:
    """Train one model, and return the folder of its run. ``typed`` are the overrides of the command line; ``sweep`` is
    true for --multirun."""
    with stage(threads=0):
        set_threads()
        if sweep and ranks.world_size() > 1:
            raise ValueError(
                "--multirun: torchrun trains one model at a time; a Hydra launcher trains several (hydra/launcher=…)"
            )
        require_limits()
        require_same_tokens(config)
        wait_for_tokens()
        if misspelt := unknown_sections(config):
            raise ConfigError(misspelt)
        load(SweepConfig, OmegaConf.to_container(config.sweep, resolve=True), "sweep")
        cell = load(CellConfig, ad_hoc(config, typed), "config")
        tracking = load(TrackingConfig, OmegaConf.to_container(config.tracking, resolve=True), "tracking")
        name = grid.cell_name(cell.model.n_layers, cell.model.n_heads, cell.seed)
        title = " ".join([name, *(overrides := naming(typed))])
        if ends_in_warmup(cell.model_dump()) and ranks.is_main():
            print(LONG_WARMUP.format(title), file=sys.stderr)
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
        if not sweep or stopped.code == INTERRUPTED:
            raise
        raise ChildProcessError(f"{' '.join(typed)}: failed; {stopped.__cause__}") from None  # the other jobs go on


if __name__ == "__main__":
    os.environ[PARENT] = str(os.getpid())
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises its errors, and does not print them with a traceback
    with stage(threads=0):
        require_ranks()
    with ranks.process_group(), stage(threads=0):
        require_visible_modules(sys.argv[1:])
        with composing(sys.argv[1:]):
            require_effect(sys.argv[1:])
            if not ranks.is_main():
                sys.argv += ["hydra.output_subdir=null", "hydra/job_logging=disabled"]  # only the main process writes
            try:
                main()
            finally:
                if Sweep.folder:
                    print(told(Sweep.folder, params().get("corpus") or {}))
