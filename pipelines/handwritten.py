"""Read the YAML files that are written by hand: conf/claims.yaml and conf/reference_run.yaml."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field

from pathsum.claims.preregistration import Preregistration
from pathsum.config import ConfigError, Day, Frozen, Label, Positive, load


def read_settings(path: Path) -> Any:
    """Read a YAML file. Raises ValueError if it is not valid YAML or if a key occurs twice."""
    try:
        return OmegaConf.to_container(OmegaConf.load(path))
    except (OSError, ValueError, yaml.YAMLError, OmegaConfBaseException) as error:
        if getattr(error, "errno", None):
            raise
        raise ValueError(f"{path}: expected settings by name, got something else ({error}); correct it") from error


def read_preregistration(path: Path) -> Preregistration:
    """Read the frozen claims from ``path``."""
    if not path.exists() and not path.is_symlink():
        return Preregistration()
    if not (values := read_settings(path)):
        raise ValueError(
            f"{path}: expected the protocol and the frozen claims, got nothing; put them back, or delete the file to "
            "judge claims that were not frozen"
        )
    found = load(Preregistration, values, str(path))
    if found.sha256:
        raise ConfigError([f"{path}.sha256: is computed from the file; remove it"])
    return found.model_copy(update={"sha256": hashlib.sha256(path.read_bytes()).hexdigest()[:12]})


class ReferenceRun(Frozen):
    """Date, duration and processor of one `make repro`, which records leave out, to be the same bytes every time."""

    weights: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]  # fingerprint of the weights that this run trained
    date: Day
    processor: Label
    minutes: Positive | None = None  # of `make repro` in a fresh clone on an idle machine, set-up included


def fingerprint(weights: Mapping[str, str]) -> str:
    """Return the first 16 digits of a SHA-256 over the hashes of all models' weights, given by name of the model."""
    return hashlib.sha256("".join(f"{name} {weights[name]}\n" for name in sorted(weights)).encode()).hexdigest()[:16]


def read_reference_run(path: Path) -> ReferenceRun:
    """Read a reference run. Raises ConfigError with every mistake in it."""
    return load(ReferenceRun, read_settings(path), str(path))


def computed(path: Path, weights: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprint of ``weights`` and, if the reference run trained them, date, duration and processor."""
    found = {"weights_fingerprint": fingerprint(weights)}
    run = read_reference_run(path)
    if run.weights == found["weights_fingerprint"]:
        duration = f" in {run.minutes} minutes" if run.minutes is not None else ""
        found["computed"] = f"on {run.date}{duration} on {run.processor}"
    return found
