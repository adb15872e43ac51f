"""A training run in the store, runs/<fingerprint>/: cell.json  device.json  text.json  tokenizer.json  log.jsonl
checkpoints/<step>.safetensors

A finished run has a manifest. An unfinished one has saved states instead (training/state.py).
"""

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from pathsum.core.manifest import MANIFEST, damage

LOG, CHECKPOINTS, ABOUT = "log.jsonl", "checkpoints", ("cell.json", "device.json", "text.json", "tokenizer.json")


def log_until(path: Path, step: int) -> bytes:
    """Return the intact lines of a log up to the evaluation at ``step``."""
    kept = b""
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        with suppress(ValueError, KeyError, TypeError):  # a line that is incomplete or damaged
            if line.endswith(b"\n") and 0 <= json.loads(line)["step"] <= step:
                kept += line
    return kept


def discard_damaged(run: Path) -> None:
    """Delete the manifest, log and checkpoints of a run that has a manifest."""
    if not (run / MANIFEST).exists():
        return
    print(f"{run}: {damage(run, run.name)}; this model is trained again", file=sys.stderr)
    (run / MANIFEST).unlink()
    (run / LOG).unlink(missing_ok=True)
    shutil.rmtree(run / CHECKPOINTS, ignore_errors=True)
