"""`make params`: compose conf/ into params.yaml, as `dvc exp run` does."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from dvc.utils.hydra import compose_and_dump
from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from pathsum.complaints import unknown
from pathsum.config import ConfigError
from pipelines.paths import PARAMS, ROOT, params, stage


def compose(output: Path, overrides: list[str]) -> None:
    """Compose conf/ with the Hydra ``overrides`` and write the result to ``output``.

    Raises ValueError, with what is wrong in one message, if they do not compose.
    """
    try:
        compose_and_dump(str(output), str(ROOT / "conf"), None, "config", str(ROOT / "pipelines"), overrides)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        for cause in _causes(error):
            if isinstance(cause, ConfigError):
                raise cause from error
        given = f" with {' '.join(overrides)}" if overrides else ""
        raise ValueError(f"conf/ cannot be composed{given}: {_said(error)}") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _said(error: Exception) -> str:
    """Return what the libraries say, without their internals, and what to do where they do not say it."""
    text = str(error)
    if "in defaults : bool" in text:
        return (
            "YAML reads a bare off, on, yes or no as true or false; expected the name of a file in every line of "
            "`defaults`, for example `tracking: none`"
        )
    if isinstance(error, UnicodeDecodeError):
        return f"expected UTF-8, got other bytes in {', '.join(map(str, _not_utf8()))}; save it as UTF-8"
    if named := re.match(r"Could not override '([\w.]+)'", text):
        return _unknown_key(named[1])
    if isinstance(error, OverrideParseException):
        text = f"expected KEY=VALUE, got {error.override!r}: {text}"
    text = re.sub(r"^\w+ raised while resolving interpolation: ", "", text)
    return re.split(r"\n\s*(?:full_key:|Config search path|See https)", text)[0].strip()


def _unknown_key(path: str) -> str:
    """Return the complaint about an override of a key that does not exist, with the nearest key of its section."""
    known, above = params() if PARAMS.is_file() else {}, ""
    for key in path.split("."):
        if not isinstance(known, dict) or not known:
            break
        if key not in known:
            return above + unknown(key, known)
        known, above = known[key], f"{above}{key}."
    return f"{path}: no such setting; +{path} adds it where the configuration allows it"


def _not_utf8() -> Iterator[Path]:
    for path in sorted((ROOT / "conf").rglob("*.yaml")):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            yield path


if __name__ == "__main__":
    with stage(threads=0):
        compose(PARAMS, sys.argv[1:])
