"""When, where and in how many minutes the committed results were computed (conf/reference_run.yaml)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import field_validator

from pathsum.config import Day, Frozen, Name, load
from pipelines.handwritten import read_settings


class ReferenceRun(Frozen):
    """Date, duration and processor of one `make repro`, written by hand, because records hold no times.

    The same command therefore always ends with the same bytes.
    """

    weights: str  # fingerprint of the weights that this run trained
    date: Day
    processor: Name
    minutes: int | None = None  # of `make repro` in a fresh clone on an idle machine, set-up included, if measured

    @field_validator("weights")
    @classmethod
    def _digits(cls, weights: str) -> str:
        if not re.fullmatch("[0-9a-f]{16}", weights):
            raise ValueError("expected 16 digits of 0 to 9 and a to f")
        return weights


def fingerprint(weights: Mapping[str, str]) -> str:
    """Return the first 16 digits of the SHA-256 of all hashes of weights, which are given by model."""
    return hashlib.sha256("".join(f"{name} {weights[name]}\n" for name in sorted(weights)).encode()).hexdigest()[:16]


def read_reference_run(path: Path) -> ReferenceRun:
    """Read ``path``. ConfigError lists every mistake in it."""
    return load(ReferenceRun, read_settings(path), str(path))


def computed(path: Path, weights: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprint of ``weights``, and if ``path`` is about them, when, how fast and where they were trained
    and analyzed."""
    found = {"weights_fingerprint": fingerprint(weights)}
    run = read_reference_run(path)
    if run.weights == found["weights_fingerprint"]:
        duration = f" in {run.minutes} minutes" if run.minutes is not None else ""
        found["computed"] = f"on {run.date}{duration} on {run.processor}"
    return found
