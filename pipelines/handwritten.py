"""Read YAML files that are written by hand, such as conf/claims.yaml."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pathsum.claims.preregistration import Preregistration
from pathsum.config import ConfigError, load


def read_settings(path: Path) -> Any:
    """Read a YAML file. Raises ValueError if it is not valid YAML or if a key occurs twice."""
    try:
        return OmegaConf.to_container(OmegaConf.load(path))
    except (OSError, ValueError, RecursionError, yaml.YAMLError, OmegaConfBaseException) as error:
        if getattr(error, "errno", None):
            raise
        raise ValueError(f"{path}: expected settings by name, got something else ({error}); correct it") from error


def read_preregistration(path: Path) -> Preregistration:
    """Read the frozen claims from ``path``."""
    if not path.exists() and not path.is_symlink():
        return Preregistration()
    values, content = read_settings(path), path.read_bytes()
    if not values:
        raise ValueError(
            f"{path}: expected the protocol and the frozen claims, got nothing; put them back, or delete the file to "
            "judge claims that were not frozen"
        )
    found = load(Preregistration, values, str(path))
    if found.sha256:
        raise ConfigError([f"{path}.sha256: is computed from the file; remove it"])
    return found.model_copy(update={"sha256": hashlib.sha256(content).hexdigest()[:12]})
