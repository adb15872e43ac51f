"""Run DVC in a process that ends with the process that started it: `python -m pipelines.dvc_process status`.

Stages use the interpreter of this process, even if its virtual environment is not activated.
"""

from __future__ import annotations

import copy
import functools
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, Any, NoReturn

from pipelines.interrupts import PARENT, end_with_parent
from pipelines.paths import FULL, unprintable

OURS = (Path(".dvc/config"), Path(".dvcignore"))  # in git
LOCAL = Path(".dvc/config.local")
WRITTEN = [Path(name) for name in (".", ".dvc/cache", "data", "models", "circuits", "reports", "runs")]
ROOM = 2**20  # bytes; with less, DVC may fail without naming the disk
WRONG_SETTINGS = 251  # exit code of DVC

if TYPE_CHECKING:
    from dvc_data.hashfile.hash_info import HashInfo


def require_settings() -> None:
    """Exit with a message that names the file if DVC cannot read .dvcignore or one of its files of settings.

    The files are judged together: a remote may have its address in one and its key in another.
    """
    from dvc.config import Config, ConfigError, get_compiled_schema, merge
    from dvc.dirs import global_config_dir, system_config_dir
    from voluptuous import Invalid

    settings = {}  # by file; later files overrule earlier ones
    for path in (*(Path(folder, "config") for folder in (system_config_dir(), global_config_dir())), *OURS, LOCAL):
        try:
            _ = path.read_text(encoding="utf-8")
            if path.name != ".dvcignore":
                settings[path] = Config.load_file(path)
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            _refuse(path, error.strerror if isinstance(error, OSError) else error)
    together: dict[str, Any] = {}
    for part in settings.values():
        merge(together, copy.deepcopy(part))
    try:
        get_compiled_schema()(together)
    except Invalid as error:
        _refuse(max(reversed(settings), key=lambda path: _depth(settings[path], error.path)), error)
    try:
        if site := os.environ.get("DVC_SITE_CACHE_DIR"):
            Path(site).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"error: DVC_SITE_CACHE_DIR={site}: expected a folder that can be made ({error.strerror}); unset it")


def _depth(settings: Mapping[str, Any], keys: Sequence[Any]) -> int:
    """Return how many of the nested keys the settings have, from the first."""
    depth = 0
    inner: Any = settings
    for key in keys:
        if not isinstance(inner, Mapping) or key not in inner:
            break
        inner = inner[key]
        depth += 1
    return depth


def _refuse(path: Path, why: object) -> NoReturn:
    hint = "put it back" if path in OURS else "correct or remove it"
    sys.exit(f"error: {path}: expected a file of DVC that can be read ({why}); {hint}")


def parse_with_libyaml() -> None:
    """Make DVC parse dvc.lock with libyaml when it adds the results of a stage.

    DVC's own parser keeps comments and takes six times as long: 2.3 s of processor time for the dvc.lock of the default
    models. DVC writes dvc.lock without comments, so the file has the same bytes.
    """
    from dvc.utils.serialize import _yaml

    _yaml.parse_yaml_for_update = _yaml.parse_yaml


def look_without_locks() -> None:
    """Let `dvc status` look at files that a stage of another process is writing: they count as changed.

    Otherwise DVC would fail, because --wait-for-lock does not wait for the locks of single files.
    """
    from dvc.stage import Stage

    Stage.status = Stage.status.__wrapped__


def look_once() -> None:
    """Let `dvc status` compute the hash of a path once, and read params.yaml once: stages share most dependencies."""
    from dvc.dependency import param
    from dvc.output import Output

    compute = Output.get_hash
    found: dict[tuple[str, bool], HashInfo] = {}

    def get_hash(self: Output) -> HashInfo:
        key = (self.fs_path, self.use_cache)
        if key not in found:
            found[key] = compute(self)
        return found[key]

    Output.get_hash = get_hash
    param.load_path = functools.cache(param.load_path)


if __name__ == "__main__":
    end_with_parent()
    os.environ[PARENT] = str(os.getpid())
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    sys.argv[0] = "dvc"
    require_settings()
    from dvc.cli import main

    logging.raiseExceptions = False  # no tracebacks where DVC cannot print
    parse_with_libyaml()
    look_without_locks()
    if "status" in sys.argv:
        look_once()
    code = main()
    if code == WRONG_SETTINGS:
        print(
            f"error: the setting above is in .dvc/config, {LOCAL} or the user's configuration of DVC", file=sys.stderr
        )
    elif code and unprintable():
        print("error: " + FULL.format("to which standard output goes"), file=sys.stderr)
    elif code and (full := [folder for folder in WRITTEN if folder.exists() and disk_usage(folder).free < ROOM]):
        print("error: " + FULL.format(f"of {full[0].absolute()}"), file=sys.stderr)
    sys.exit(code)
