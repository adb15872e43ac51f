"""When, where and in how many minutes the committed results were computed (conf/reference_run.yaml)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import field_validator

from pathsum.config import Day, Frozen, Label, Positive, load
from pipelines.handwritten import read_settings


class ReferenceRun(Frozen):
    """Date, duration and processor of one `make repro`, written by hand in conf/reference_run.yaml.

    Records contain no times, so that the same command gives the same bytes.
    """

    weights: str  # fingerprint of the weights that this run trained
    date: Day
    processor: Label
    minutes: Positive | None = None  # of `make repro` in a fresh clone on an idle machine, set-up included

    @field_validator("weights")
    @classmethod
    def _digits(cls, weights: str) -> str:
        if not re.fullmatch("[0-9a-f]{16}", weights):
            raise ValueError("expected 16 digits of 0 to 9 and a to f")
        return weights


def fingerprint(weights: Mapping[str, str]) -> str:
    """Return the first 16 digits of a SHA-256 over the hashes of all models' weights, given by name of the model."""
    return hashlib.sha256("".join(f"{name} {weights[name]}\n" for name in sorted(weights)).encode()).hexdigest()[:16]


def read_reference_run(path: Path) -> ReferenceRun:
    """Read a reference run. Raises ValueError if the file is not YAML, and ConfigError with every mistake in it."""
    return load(ReferenceRun, read_settings(path), str(path))


def computed(path: Path, weights: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprint of ``weights`` and, if the reference run trained them, its date, duration and
    processor."""
    found = {"weights_fingerprint": fingerprint(weights)}
    run = read_reference_run(path)
    if run.weights == found["weights_fingerprint"]:
        duration = f" in {run.minutes} minutes" if run.minutes is not None else ""
        found["computed"] = f"on {run.date}{duration} on {run.processor}"
    return found
