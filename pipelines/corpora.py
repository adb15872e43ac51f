"""`make corpora`: train the same models on several corpora, and write one row of verdicts per corpus.

The corpora are those of conf/corpora.yaml, and your own texts. Each corpus has a scratch copy of the project in
.scratch/corpora/. The copies are kept, so that the same command continues after an interruption. They share the run
store of the project.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from pathsum.claims.registry import judge_all
from pathsum.core.locks import held
from pathsum.corpora.text_files import local_path, matches, split_pattern
from pathsum.report.corpora import row, write_rows
from pipelines import repro
from pipelines.handwritten import read_settings
from pipelines.paths import NOT_UTF_8, REPORTS, RUNS, TOKENS, stage
from pipelines.results import read_results
from pipelines.scratch import choose_profile, copy_tree

SCRATCH = Path(".scratch/corpora")
PROFILE = "this_corpus"  # name of the profile in a scratch copy
NAME = re.compile(r"\w(?:[\w.-]*[\w-])?")  # of a corpus and of its folder, which must not be . or ..
ITEM = rf"({NAME.pattern})(?:@(\w+))?=(.+)"  # of TEXT: NAME=GLOB or NAME@PROFILE=GLOB
DEFAULT = "corpora"  # default profile, which names of rows omit


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", help="NAME=GLOB or NAME@PROFILE=GLOB, several separated by spaces")
    parser.add_argument("--separator", default="", help=r"string that separates documents in a file, such as \0")
    parser.add_argument("--profile", default=DEFAULT, help="file in conf/profile/ that sets models and training")
    parser.add_argument("--only", nargs="*", help="use only these corpora of conf/corpora.yaml; without names, none")
    parser.add_argument("--jobs", default="", help="number of models that are trained at the same time")
    return parser.parse_args(given)


def corpora(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the profile of each corpus by the name of its row: NAME, or NAME@PROFILE if the profile is not the
    default."""
    listed = _listed(Path("conf/corpora.yaml"))
    names = ", ".join(listed)
    only = listed if given.only is None else given.only
    if unknown := [name for name in only if name not in listed]:
        raise ValueError(f"--only: expected names of conf/corpora.yaml ({names}), got {', '.join(unknown)}")
    found = {_row(name, given.profile): _profile(given.profile, listed[name]) for name in only}
    try:
        items = shlex.split(given.text or "")
    except ValueError as error:
        raise ValueError(f"TEXT: expected NAME=GLOB with closed quotes, got {given.text!r} ({error})") from error
    if given.text is not None and not items:
        raise ValueError(f"TEXT: expected NAME=GLOB, got {given.text!r}; leave TEXT out for conf/corpora.yaml alone")
    if NOT_UTF_8.search(f"{given.text}{given.separator}"):
        raise ValueError(
            f"expected TEXT and --separator in UTF-8, got {given.text!a} and {given.separator!a}; in a path, * stands "
            "for any characters"
        )
    if given.separator and not items:
        raise ValueError("--separator: expected TEXT, whose files it divides into documents, got none")
    for item in _joined(items):
        match = re.fullmatch(ITEM, item)
        if match is None or match[1].lower() in map(str.lower, listed):  # some file systems ignore case
            raise ValueError(
                f"TEXT: expected NAME=GLOB or NAME@PROFILE=GLOB, with a name other than {names}, got {item!r}; for "
                "example TEXT='essays=essays/**/*.txt'"
            )
        name, profile = match[1], match[2] or given.profile
        key, path = _row(name, profile), os.path.abspath(local_path(match[3])) + "/" * match[3].endswith("/")
        if key in found:  # a further glob of the same text
            found[key]["corpus"]["paths"].append(path)
            continue
        text = {"name": name, "paths": [path], "separator": given.separator}
        found[key] = _profile(profile, {"defaults": [{"override /corpus": "text"}], "corpus": text})
    if len({key.casefold() for key in found}) < len(found):
        raise ValueError(f"expected names of corpora that differ by more than case, got {', '.join(found)}")
    return found


def _joined(items: Sequence[str]) -> list[str]:
    """Return the items of TEXT. What does not begin with a name is the rest of a path with blanks."""
    found: list[str] = []
    for item in items:
        if found and not re.fullmatch(ITEM, item):
            item = f"{found.pop()} {item}"
        found.append(item)
    return found


def _listed(path: Path) -> dict[str, dict[str, Any]]:
    """Read the corpora of conf/corpora.yaml."""
    found = read_settings(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected corpora by name, got {found!r}; see its first lines")
    found = {name: {} if values is None else values for name, values in found.items()}
    for name, values in found.items():
        if not NAME.fullmatch(str(name)) or not _is_profile(values):
            raise ValueError(
                f"{path}: expected settings under a name of letters, digits, _, - and inner dots (in `defaults`, "
                f"unquoted lines such as `override /corpus: text`), got {name!r}: {values!r}"
            )
        if "controls" in values.get("sweep", {}):
            raise ValueError(f"{path}: {name}.sweep.controls: `make corpora` trains no controls; remove them")
    return {str(name): values for name, values in found.items()}


def _is_profile(values: Any) -> bool:
    if not isinstance(values, dict):
        return False
    defaults = values.get("defaults", [])
    lines = isinstance(defaults, list) and all(isinstance(line, dict | str) and ":" not in line for line in defaults)
    return lines and isinstance(values.get("sweep", {}), dict)


def _row(name: str, profile: str) -> str:
    """Return the name of a row, which is the name of its folder. Raises ValueError if there is no such profile."""
    known = sorted(file.stem for file in Path("conf/profile").glob("*.yaml"))
    if profile not in known:
        raise ValueError(f"profile {profile!r}: expected one of {', '.join(known)} (conf/profile/)")
    return name if profile == DEFAULT else f"{name}@{profile}"


def _profile(base: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a profile that extends the profile ``base`` by ``values``, without controls."""
    sweep = {**values.get("sweep", {}), "controls": "${oc.create:{}}"}
    return {**values, "sweep": sweep, "defaults": [base, "_self_", *values.get("defaults", [])]}


def prepare(folder: Path, profile: dict[str, Any]) -> None:
    """Make a scratch copy of the project in ``folder`` with the given ``profile``."""
    copy_tree(folder)
    text = yaml.safe_dump(profile, sort_keys=False, allow_unicode=True)
    (folder / "conf" / "profile" / f"{PROFILE}.yaml").write_text(f"# @package _global_\n{text}", encoding="utf-8")
    choose_profile(folder, PROFILE)
    RUNS.mkdir(exist_ok=True)
    if (folder / RUNS).is_symlink():  # made by an earlier call, when the project may have been in another folder
        (folder / RUNS).unlink()
    if not (folder / RUNS).exists():
        (folder / RUNS).symlink_to(RUNS.absolute(), target_is_directory=True)


def run(folder: Path, *command: str) -> bool:
    """Run ``python -m`` with ``command`` in ``folder``, importing that folder's code. Return whether it succeeded."""
    path = os.pathsep.join([str((folder / "src").absolute()), str(folder.absolute())])
    return (
        subprocess.run([sys.executable, "-m", *command], cwd=folder, env=os.environ | {"PYTHONPATH": path}).returncode
        == 0
    )


def made(name: str, profile: dict[str, Any], jobs: str) -> bool:
    """Train and extract the models of one corpus, and write its row of verdicts. Return whether this succeeded."""
    folder = SCRATCH / name
    again = f", with the text as it was read before; delete {folder} to read it again"
    print(f"corpora: {name}{again if (folder / TOKENS).exists() else ''}", file=sys.stderr)
    prepare(folder, profile)
    done = run(folder, "pipelines.compose") and run(
        folder, "pipelines.repro", "extract", *([f"--jobs={jobs}"] if jobs else [])
    )
    if done:
        results = read_results(folder)
        write_rows([row(name, results, judge_all(results))], REPORTS)
    return done


def require_files(named: dict[str, dict[str, Any]]) -> None:
    """Raise ValueError if a pattern of a text that has not been read yet matches no file."""
    for name, profile in named.items():
        paths = [] if (SCRATCH / name / TOKENS).exists() else profile.get("corpus", {}).get("paths", [])
        for path in paths:
            if "**" not in split_pattern(path)[1] and not matches(path):
                raise ValueError(
                    f"TEXT: {name}={path}: matches no file; check the pattern, or quote it if the shell expanded it"
                )


def sweep(given: argparse.Namespace) -> None:
    """Train and extract the models of every corpus, and write a row of verdicts for each."""
    if not (named := corpora(given)):
        raise ValueError("expected a corpus, got none; give TEXT='NAME=GLOB', or names after --only")
    require_files(named)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with held(SCRATCH / "lock", repro.waiting):  # another call would replace the code in the copies
        failed = [name for name, profile in named.items() if not made(name, profile, given.jobs)]
    if failed:
        raise ValueError(
            f"no verdicts on {', '.join(failed)}, whose errors are above; fix the cause and run the same command again"
        )


if __name__ == "__main__":
    with stage(threads=0):
        sweep(arguments(sys.argv[1:]))
