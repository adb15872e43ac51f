"""What `make repro` and sweeps print: lines while a model is trained, and a table with the results of each model."""

import shlex
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from pathsum.claims.formatting import millions, number
from pathsum.core.storage import read_lines, read_value, write_json
from pathsum.records.evaluation import Evaluation
from pathsum.training.store import LOG
from pathsum.training.tracker import result
from pipelines.paths import TOKENS

WIDTHS = {"model": 22, "tokens": 9, "loss (nats)": 13, "prefix matching": 17, "phase change at": 17}
JOB = "model.json"
QUARTERS = 4  # of training, after each of which a line is printed
SOURCES = "src/**/*.py"  # source code that is no part of the default corpus


class Told:
    """Prints a line after each quarter of the training of a model; the last names the onset."""

    def __init__(self, name: str, tokens: int) -> None:
        self.name, self.tokens, self.quarter = name, tokens, 0
        self.log: list[Evaluation] = []
        self.begun: tuple[float, int] | None = None  # time and tokens at the first evaluation

    def __call__(self, evaluation: Evaluation) -> None:
        seen, now = evaluation.tokens_seen, time.monotonic()
        self.log.append(evaluation)
        began, from_tokens = self.begun = self.begun or (now, seen)
        if (quarter := QUARTERS * seen // max(1, self.tokens)) <= self.quarter:
            return
        self.quarter = quarter
        said = [f"{millions(seen)} of {millions(self.tokens)} tokens, loss {number(evaluation.val_loss_nats, 3)} nats"]
        if evaluation.prefix_matching:
            said.append(f"prefix matching {max(score for layer in evaluation.prefix_matching for score in layer):.2f}")
        if seen >= self.tokens and (onset := result(self.log)["onset_tokens"]):
            said.append(f"phase change at {millions(onset)}")
        if seen > from_tokens and (left := (now - began) * (self.tokens - seen) / (seen - from_tokens)) >= 1:
            said.append(f"{left:.0f} s left")
        print(f"{self.name:<20}  {', '.join(said)}", file=sys.stderr, flush=True)


def row(entries: Iterable[str], widths: Collection[int] = WIDTHS.values()) -> str:
    """Return a line of the table: the model's name left-aligned, all other entries right-aligned."""
    name, *numbers = zip(entries, widths, strict=True)
    return f"{name[0]:{name[1]}}" + "".join(f"{entry:>{width}}" for entry, width in numbers)


HEADING = row(WIDTHS)


def row_of(summary: Path) -> str:
    """Return the line of the model with this summary.json."""
    found = read_value(summary)
    return row([found["cell"], *findings(found)])


def findings(found: Mapping[str, Any]) -> list[str]:
    """Return tokens, loss, prefix matching and onset of a model, as text."""
    onset, matching = found["onset_tokens"], found["prefix_matching"]
    return [
        millions(found["tokens_seen"]),
        number(found["val_loss_nats"], 3),
        "–" if matching is None else number(matching),
        "none" if onset is None else millions(onset),
    ]


class Sweep(Callback):
    """Keeps the folder of the sweep that this process has started, for ``told``."""

    folder: Path | None = None

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        Sweep.folder = Path(config.hydra.sweep.dir)


def note(folder: Path, number: int, overrides: Sequence[str], run: Path | None = None) -> None:
    """Write to a job's folder (jobs may run on other hosts) what it trains, and its ``run`` once trained."""
    write_json(folder / JOB, {"number": number, "overrides": list(overrides), "run": str(run) if run else None})


def told(folder: Path, corpus: Mapping[str, Any]) -> str:
    """Return the table of the sweep in ``folder``, and the command that analyzes its model with the lowest loss."""
    jobs = sorted((read_value(path) for path in folder.rglob(JOB)), key=lambda job: job["number"])
    if not jobs:
        return ""
    found = [job["run"] and result(read_lines(Path(job["run"], LOG), Evaluation)) for job in jobs]
    shared = set.intersection(*(set(job["overrides"]) for job in jobs)) if len(jobs) > 1 else set()
    names = [" ".join(o for o in job["overrides"] if o not in shared) for job in jobs]
    widths = [max(map(len, ("overrides", *names))), *list(WIDTHS.values())[1:]]
    lines = [row(["overrides", *list(WIDTHS)[1:]], widths)]
    for name, values in zip(names, found, strict=True):
        lines.append(row([name, *(findings(values) if values else ("failed", "", "", ""))], widths))
    if trained := [(values["val_loss_nats"], job["run"]) for job, values in zip(jobs, found, strict=True) if values]:
        run = Path(min(trained)[1])
        given = {
            "WEIGHTS": run,
            "TOKENIZER": TOKENS / "tokenizer.json",
            "TEXT": corpus.get("paths", [SOURCES])[0],
        }
        command = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in given.items())
        lines += ["To analyze the model with the lowest loss, on any TEXT:", f"make report {command}"]
    return "\n".join(lines)
