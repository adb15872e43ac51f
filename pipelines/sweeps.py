"""What an ad-hoc sweep tells at its end: a table of its models, and the command that analyzes one of them.

Jobs may run in other processes or on other hosts, so each one writes a file to its folder of Hydra.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from pathsum.core.storage import read_lines, read_value, write_json
from pathsum.records.evaluation import Evaluation
from pathsum.training.store import CHECKPOINTS, LOG
from pathsum.training.tracker import result
from pipelines.paths import TOKENS
from pipelines.progress import sweep_table

JOB = "model.json"
SOURCES = "src/**/*.py"  # source code that is no part of the default corpus


class Sweep(Callback):
    """Keeps the folder of the sweep that this process has started, for ``told``."""

    folder: Path | None = None

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        Sweep.folder = Path(config.hydra.sweep.dir)


def note(folder: Path, number: int, overrides: Sequence[str], run: Path | None = None) -> None:
    """Write that job ``number`` of a sweep trains a model with these ``overrides``, in ``run`` once it is trained."""
    write_json(folder / JOB, {"number": number, "overrides": list(overrides), "run": str(run) if run else None})


def told(folder: Path, corpus: Mapping[str, Any]) -> str:
    """Return the table of the sweep in ``folder`` and the command that analyzes its model with the lowest loss."""
    jobs = sorted((read_value(path) for path in folder.rglob(JOB)), key=lambda job: job["number"])
    found = [job["run"] and result(read_lines(Path(job["run"], LOG), Evaluation)) for job in jobs]
    lines = [sweep_table([(job["overrides"], values) for job, values in zip(jobs, found, strict=True)])] if jobs else []
    if trained := [(values["val_loss_nats"], job["run"]) for job, values in zip(jobs, found, strict=True) if values]:
        run = Path(min(trained)[1])
        given = {
            "WEIGHTS": max((run / CHECKPOINTS).iterdir()),
            "TOKENIZER": TOKENS / "tokenizer.json",
            "TEXT": corpus.get("paths", [SOURCES])[0],
            "ARGS": f"--out=imported/{run.name}",
        }
        command = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in given.items())
        lines += ["To analyze the model with the lowest loss, on any TEXT:", f"make extract {command}"]
    return "\n".join(lines)
