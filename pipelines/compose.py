"""`make params`: compose conf/ into params.yaml, as `dvc exp run` does."""

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from dvc.utils.hydra import compose_and_dump
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pathsum.config import ConfigError, unknown
from pathsum.core.storage import write_whole
from pipelines.paths import PARAMS, ROOT, params, read_yaml, stage


def compose(output: Path, overrides: Sequence[str]) -> None:
    """Compose conf/ with the Hydra ``overrides`` and write the result to ``output``."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "params.yaml"
        with composing(overrides):
            compose_and_dump(str(draft), str(ROOT / "conf"), None, "config", None, list(overrides))
        if not (values := read_yaml(draft)):
            raise ValueError("conf/config.yaml: expected the list `defaults`, got none; put it back")
        text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, allow_unicode=True, width=118)
        write_whole(output, text.encode())


@contextmanager
def composing(overrides: Sequence[str]) -> Iterator[None]:
    """Turn the errors of Hydra and OmegaConf into a ValueError, with the nearest right name for a wrong one."""
    try:
        yield
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ConfigError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise cause from error
        given = f" with {' '.join(overrides)}" if overrides else ""
        raise ValueError(f"conf/ cannot be composed{given}: {_said(error)}") from error


def _said(error: Exception) -> str:
    text = str(error)
    if named := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        folder, name = named.groups()
        return unknown(name, [path.stem for path in (ROOT / "conf" / folder).glob("*.yaml")], f"file in conf/{folder}/")
    if named := re.match("Could not override '([^']+)'", text):
        return _unknown_key(named[1])
    if "requires --multirun" in text or "Ambiguous value" in text:
        return "values separated by commas are a sweep, for pipelines.train --multirun; write a list in brackets"
    if error.__cause__ and "Error merging override" in text:
        text = f"{text}: {error.__cause__}"
    return re.split(r"\n\s*(?:full_key:|Config search path|See https)", text)[0].strip()


def _unknown_key(path: str) -> str:
    """Return the complaint about an override of a key that does not exist, with the nearest key of its section."""
    known, above = params() if PARAMS.is_file() else {}, ""
    for key in path.split("."):
        if not isinstance(known, dict) or not known:
            break
        known = {str(name): values for name, values in known.items()}
        if key not in known:
            inner = [section for section in known if isinstance(known[section], dict) and key in known[section]]
            if inner and not above:
                return f"{key}: no such setting; did you mean {inner[0]}.{key}?"
            return above + unknown(key, known)
        known, above = known[key], f"{above}{key}."
    return f"{path}: no such setting of the chosen files; ++{path}=… adds it where the configuration allows it"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("overrides", nargs="*", help="of Hydra, such as corpus=text")
    given = parser.parse_args()
    with stage(threads=0):
        if not Path("conf").is_dir():
            raise ValueError(f"expected conf/ in {Path.cwd()}, found none; run this in the root of the repository")
        compose(PARAMS, given.overrides)
