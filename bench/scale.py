"""Measure how the cost of the pipeline itself grows with the number of models: `python -m bench.scale 100 1000 10000`

In a scratch copy of the project, with the smoke profile, training and extraction are replaced by the copy of one small
file. What remains is the work of composition, checks, DVC and the run store. Times are processor times (sums over all
cores), so that other work on the machine does not count. A command that exceeds the time limit is recorded as null, and
commands that need its result are left out. The exponent is the slope of log time on log number of models, between the
last two numbers with a measured time, so give the numbers in ascending order. What each training process does with the
whole corpus is measured separately, by number of tokens. Writes scale.json.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bench.measuring import alone, peak_mb
from pathsum.config import CellConfig, load
from pathsum.core.storage import write_json
from pathsum.data.windows import Windows, documents_of, order
from pathsum.training.store import fingerprint, finished
from pipelines.handwritten import read_preregistration
from pipelines.paths import PREREGISTERED, params, training_code
from pipelines.scratch import copy_tree

RESULTS = Path(__file__).parent / "scale.json"
LIMIT = 900  # seconds for one command
LOOKUPS = 50
D_VOCAB, N_CTX, HELD_OUT = 1024, 256, 20  # of the profile laptop: a twentieth of the text is for tuning
TOKENS = (10**8, 10**9)
LIBRARY = "pathsum.data.windows"
CONTROLS = 2  # of the smoke profile
STUB = "mkdir -p {out} && cp {source} {out}/cell.json"
FORCED = ("dvc", "repro", "--single-item", "--force", "train@smeared", "extract@smeared")


def prepare(folder: Path, models: int) -> None:
    """Copy the project to ``folder``, configured for ``models`` models that are not trained: stages only copy a file.

    CONTROLS of them are controls, and the others have two layers.
    """
    copy_tree(folder)
    tuned = set(read_preregistration(PREREGISTERED).protocol.tuning_seeds)
    seeds = [seed for seed in range(models + len(tuned)) if seed not in tuned][: models - CONTROLS]
    _edit(folder / "conf" / "config.yaml", "- profile: laptop", "- profile: smoke")
    _edit(folder / "conf" / "sweep" / "grid.yaml", "n_layers: [0, 1, 2]", "n_layers: [2]")
    _edit(folder / "conf" / "profile" / "smoke.yaml", "seeds: [0]", f"seeds: {seeds}")
    stages = yaml.safe_load((folder / "dvc.yaml").read_text())["stages"]
    stages = {name: stages[name] for name in ("check", "tokenize", "statistics", "train", "extract")}
    for name in ("tokenize", "statistics"):
        stages[name]["cmd"] = f"mkdir -p data/{name} {stages[name]['outs'][0]}"
    stages["train"]["do"]["cmd"] = STUB.format(out="models/${key}", source="data/config/cells/${key}.json")
    stages["extract"]["do"]["cmd"] = STUB.format(out="circuits/${key}", source="models/${key}/cell.json")
    (folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}, sort_keys=False))


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def seconds(folder: Path, *command: str) -> float | None:
    """Return the processor time of a command in ``folder``, in seconds. None if it runs for more than LIMIT seconds.

    Raises CalledProcessError if it fails.
    """
    path = os.pathsep.join([str(folder / "src"), str(folder)])
    begun = _children()
    try:
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return None
    return _children() - begun


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make_all(folder: Path) -> None:
    """Write what all stages of the scratch copy but `check` would write."""
    for shared in ("tokens", "statistics"):
        (folder / "data" / shared).mkdir(parents=True, exist_ok=True)
        (folder / "data" / shared / "made").touch()
    for cell in (folder / "data" / "config" / "cells").iterdir():
        for kind in ("models", "circuits"):
            out = folder / kind / cell.stem / "cell.json"
            out.parent.mkdir(parents=True)
            out.write_bytes(cell.read_bytes())


def store(folder: Path, models: int) -> dict[str, float]:
    """Return the processor seconds to compute the fingerprint of a run, and to find that the run is not finished, in a
    run store with ``models`` runs."""
    cell = load(CellConfig, json.loads((folder / "data" / "config" / "cells" / "smeared.json").read_text()), "cell")
    code = training_code()
    for run in range(models):
        (folder / "runs" / f"{run:016x}" / "checkpoints").mkdir(parents=True)
        (folder / "runs" / f"{run:016x}" / "log.jsonl").touch()
    begun = time.process_time()
    names = [fingerprint(cell, str(number), code) for number in range(LOOKUPS)]
    named = time.process_time()
    for name in names:
        assert not finished(folder / "runs" / name)
    return {"fingerprint": (named - begun) / LOOKUPS, "lookup": (time.process_time() - named) / LOOKUPS}


def measure(folder: Path, models: int) -> dict[str, Any]:
    """Return the seconds of each command with ``models`` models, and the sizes of params.yaml and dvc.lock in MB."""
    prepare(folder, models)
    found: dict[str, Any] = {"models": models, "compose": seconds(folder, sys.executable, "-m", "pipelines.compose")}
    if found["compose"] is None:
        return found
    begun = time.process_time()
    assert len(params(folder)["cells"]) == models
    found["read params.yaml"] = time.process_time() - begun
    found["params_mb"] = (folder / "params.yaml").stat().st_size / 1e6
    found["check"] = seconds(folder, sys.executable, "-m", "pipelines.check")
    if found["check"] is None:
        return found
    found |= store(folder, models)
    found["dvc status, nothing made"] = seconds(folder, "dvc", "status", "--json")
    make_all(folder)
    found["dvc commit, all models"] = seconds(folder, "dvc", "commit", "--force")
    if found["dvc commit, all models"] is None:
        return found
    found["lock_mb"] = (folder / "dvc.lock").stat().st_size / 1e6
    found["dvc status, nothing to do"] = seconds(folder, "dvc", "status", "--json")
    found["dvc repro, nothing to do"] = seconds(folder, "dvc", "repro", "--quiet")
    found["dvc repro, one model"] = seconds(folder, *FORCED)
    return found


CORPUS = {  # what each training process does with the whole corpus, and with the tuning half of the held-out text
    "order of windows": lambda text: order(0, 0, 1, len(text) // N_CTX),
    "tokens that occur": lambda text: Windows(text, N_CTX).present(D_VOCAB),
    "documents of windows": lambda text: documents_of(text[: len(text) // HELD_OUT], N_CTX),
}


def corpus(name: str, tokens: int) -> dict[str, Any]:
    """Return the processor time (s) and peak memory (MiB) of one part of CORPUS, on a text of ``tokens`` random
    tokens."""
    text = np.random.default_rng(0).integers(0, D_VOCAB, tokens, dtype=np.uint16)
    before, begun = peak_mb(), time.process_time()
    CORPUS[name](text)
    used, peak = time.process_time() - begun, peak_mb() - before
    return {"what": name, "tokens": tokens, "seconds": used, "peak_mb": peak}


def exponents(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the exponent of each time and file size in the number of models, between the last two rows that have a
    value."""
    found = {}
    for name in {key: None for row in rows for key in row if key != "models"}:
        known = [(row["models"], row[name]) for row in rows if row.get(name)][-2:]
        if len(known) == 2:
            (few, low), (many, high) = known
            found[name] = math.log(high / low) / math.log(many / few)
    return found


if __name__ == "__main__":
    text = [alone(LIBRARY, corpus, name, tokens) for name in CORPUS for tokens in TOKENS]
    rows: list[dict[str, Any]] = []
    for models in map(int, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(Path(folder), models))
        print(rows[-1])
        times = {"seconds": rows, "exponents": exponents(rows), "limit_seconds": LIMIT}
        write_json(RESULTS, times | {"corpus": text})
