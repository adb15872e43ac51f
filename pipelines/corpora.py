"""`make corpora`: train the same models on several corpora, and write one row of verdicts per corpus.

Each corpus has a copy of the project in .scratch/corpora/, which is kept. The copies share the run store.
"""

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
from pathsum.config import unknown
from pathsum.core.store import held
from pathsum.report.corpora import row, write_rows
from pathsum.text.text_files import matches
from pipelines import repro
from pipelines.handwritten import read_settings
from pipelines.paths import REPORTS, RUNS, TOKENS, stage
from pipelines.results import read_results
from pipelines.scratch import choose_profile, copy_tree

SCRATCH = Path(".scratch/corpora")
PROFILE = "this_corpus"  # name of the profile in a scratch copy
NAME = r"\w(?:[\w.-]*[\w-])?"  # of a corpus and of its folder, which must not be . or ..
ITEM = rf"({NAME})(?:@(\w+))?=(.+)"  # of TEXT: NAME=GLOB or NAME@PROFILE=GLOB
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
    """Return the profile of each corpus by the name of its row, NAME or NAME@PROFILE."""
    listed = read_settings(Path("conf/corpora.yaml"))
    if not isinstance(listed, dict) or not all(re.fullmatch(NAME, str(name)) for name in listed):
        raise ValueError("conf/corpora.yaml: expected corpora by name, of letters, digits, _, - and inner dots")
    only = listed if given.only is None else given.only
    if wrong := [name for name in only if name not in listed]:
        raise ValueError(f"--only: {unknown(wrong[0], listed, 'corpus in conf/corpora.yaml')}")
    found = {_row(name, given.profile): _profile(given.profile, listed[name] or {}) for name in only}
    for item in (items := _items(given.text or "")):
        match = re.fullmatch(ITEM, item)
        if match is None or match[1] in listed:
            raise ValueError(f"TEXT: expected NAME=GLOB or NAME@PROFILE=GLOB, NAME not of {[*listed]}, got {item!r}")
        name, profile, path = match[1], match[2] or given.profile, os.path.abspath(os.path.expanduser(match[3]))
        text = {"name": name, "paths": [], "separator": given.separator}
        base = _profile(profile, {"defaults": [{"override /corpus": "text"}], "corpus": text})
        found.setdefault(_row(name, profile), base)["corpus"]["paths"].append(path)
    if not found or (given.text is not None and not items):
        raise ValueError("expected a corpus, got none; give TEXT='NAME=GLOB', or names after --only")
    return found


def _items(text: str) -> list[str]:
    """Return the items of TEXT. What does not begin with a name is the rest of a path with blanks."""
    found: list[str] = []
    for item in shlex.split(text):
        found.append(item if not found or re.fullmatch(ITEM, item) else f"{found.pop()} {item}")
    return found


def _row(name: str, profile: str) -> str:
    return name if profile == DEFAULT else f"{name}@{profile}"


def _profile(base: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a profile that extends the profile ``base`` by ``values``, without controls."""
    if base not in (known := [file.stem for file in Path("conf/profile").glob("*.yaml")]):
        raise ValueError(unknown(base, known, "profile in conf/profile/"))
    sweep = {**values.get("sweep", {}), "controls": "${oc.create:{}}"}
    return {**values, "sweep": sweep, "defaults": [base, "_self_", *values.get("defaults", [])]}


def prepare(folder: Path, profile: dict[str, Any]) -> None:
    """Make a scratch copy of the project in ``folder`` with the given ``profile``."""
    copy_tree(folder)
    text = yaml.safe_dump(profile, sort_keys=False, allow_unicode=True)
    (folder / "conf" / "profile" / f"{PROFILE}.yaml").write_text(f"# @package _global_\n{text}", encoding="utf-8")
    choose_profile(folder, PROFILE)
    RUNS.mkdir(exist_ok=True)
    (folder / RUNS).unlink(missing_ok=True)  # made by an earlier call, when the project may have been in another folder
    (folder / RUNS).symlink_to(RUNS.absolute(), target_is_directory=True)


def run(folder: Path, *command: str) -> bool:
    """Run ``python -m`` with ``command`` in ``folder``, importing that folder's code. Return whether it succeeded."""
    paths = os.environ | {"PYTHONPATH": os.pathsep.join([str((folder / "src").absolute()), str(folder.absolute())])}
    return subprocess.run([sys.executable, "-m", *command], cwd=folder, env=paths).returncode == 0


def made(name: str, profile: dict[str, Any], jobs: str) -> bool:
    """Train and extract the models of one corpus, and write its row of verdicts. Return whether this succeeded."""
    folder = SCRATCH / name
    again = f", with the text as it was read before; delete {folder} to read it again"
    print(f"corpora: {name}{again if (folder / TOKENS).exists() else ''}", file=sys.stderr)
    prepare(folder, profile)
    engine = ["pipelines.repro", "extract", *([f"--jobs={jobs}"] if jobs else [])]
    if done := run(folder, "pipelines.compose") and run(folder, *engine):
        results = read_results(folder)
        if left_out := write_rows([row(name, results, judge_all(results))], REPORTS):
            said = "are of other claims and left out; make them again"
            print(f"corpora: rows of {', '.join(left_out)} {said}", file=sys.stderr)
    return done


def sweep(given: argparse.Namespace) -> None:
    """Train and extract the models of every corpus, and write a row of verdicts for each."""
    named = corpora(given)
    for name, profile in named.items():
        for path in profile.get("corpus", {}).get("paths", []):
            if not (SCRATCH / name / TOKENS).exists() and not matches(path):
                raise ValueError(f"TEXT: {name}={path}: matches no file; quote it if the shell expanded it")
    with held(SCRATCH / "lock", repro.WORK):  # another call would replace the code in the copies
        failed = [name for name, profile in named.items() if not made(name, profile, given.jobs)]
    if failed:
        raise ValueError(f"no verdicts on {', '.join(failed)}, whose errors are above; run the same command again")


if __name__ == "__main__":
    with stage(threads=0):
        sweep(arguments(sys.argv[1:]))
