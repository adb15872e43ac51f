"""When, where and in how many minutes the committed results were computed (conf/reference_run.yaml)."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import PositiveInt

from pathsum.config import Frozen, load
from pipelines.paths import read_yaml


class ReferenceRun(Frozen):
    """Date, duration and processor of one `make repro`, written by hand, because records hold no times.

    The same command therefore always ends with the same bytes.
    """

    weights: str  # fingerprint of the weights that this run trained
    date: datetime.date
    minutes: PositiveInt  # of `make repro` in a fresh clone, set-up included
    processor: str


def fingerprint(weights: Mapping[str, str]) -> str:
    """Return the first 16 digits of the SHA-256 of all hashes of weights, which are given by model."""
    return hashlib.sha256("".join(f"{name} {weights[name]}\n" for name in sorted(weights)).encode()).hexdigest()[:16]


def computed(path: Path, weights: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprint of ``weights``, and if ``path`` is about them, when, how fast and where they were trained
    and analyzed. ConfigError lists every mistake in the file."""
    found = {"weights_fingerprint": fingerprint(weights)}
    run = load(ReferenceRun, read_yaml(path), str(path))
    if run.weights == found["weights_fingerprint"]:
        found["computed"] = f"on {run.date} in {run.minutes} minutes on {run.processor}"
    return found
