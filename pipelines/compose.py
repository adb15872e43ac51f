"""`make params`: compose conf/ into params.yaml, as `dvc exp run` does."""

from __future__ import annotations

import sys
from pathlib import Path

from dvc.utils.hydra import compose_and_dump

from pipelines.paths import PARAMS, ROOT, stage


def compose(output: Path, overrides: list[str]) -> None:
    """Compose conf/ with the Hydra ``overrides`` and write the result to ``output``."""
    try:
        compose_and_dump(str(output), str(ROOT / "conf"), None, "config", str(ROOT / "pipelines"), overrides)
    except ValueError as error:
        if "in defaults : bool" not in str(error):
            raise
        raise ValueError(
            "conf/: YAML reads a bare off, on, yes or no as true or false; expected the name of a file in every line "
            "of `defaults`, for example `tracking: none`"
        ) from error


if __name__ == "__main__":
    with stage(threads=0):
        compose(PARAMS, sys.argv[1:])
