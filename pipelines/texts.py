"""`make repro TEXT=…` and `make corpora`: train the same models on texts of your own, and write a report on each.

Each text has a copy of the project in .scratch/texts/, which is kept. The copies share the run store.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pathsum.claims.formatting import plural
from pathsum.claims.registry import judge_all
from pathsum.config import unknown
from pathsum.core.store import held
from pathsum.report.corpora import row, write_rows
from pathsum.text.text_files import text_documents
from pathsum.text.tokenizing import LEAST
from pipelines import repro
from pipelines.handwritten import read_settings
from pipelines.paths import REPORTS, RUNS, stage
from pipelines.results import read_results
from pipelines.scratch import choose_profile, copy_tree

SCRATCH = Path(".scratch/texts")
PROFILE = "this_text"  # name of the profile in a scratch copy
READ = ".git/pathsum-text"  # hash of the text that a copy has read
NAME = r"\w(?:[\w.-]*[\w-])?"  # of a text and of its folder, which must not be . or ..
ITEM = rf"({NAME})(?:@(\w+))?=(.+)"  # of TEXT: NAME=GLOB or NAME@PROFILE=GLOB
TAKEN = ("figures", "tables", "sinusoidal")  # folders in reports/
DEFAULT = "corpora"  # default profile, which names of rows omit
WRITTEN = ("README.md", "index.html", "metrics.json", "headline.json", "figures", "tables")  # a report
SHARE, MOST = 0.1, 0.3  # of the documents outside training: by default, and for a small text
JUDGED, WINDOW = 40, 1024  # documents for verdicts and as many for tuning, if there are enough; bytes of a window
VOCABULARIES = {1_000_000: None, 200_000: 512, 0: 320}  # by the least bytes of text; None: that of the profile


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", help="GLOB, NAME=GLOB or NAME@PROFILE=GLOB, several separated by spaces")
    parser.add_argument("--separator", default="", help=r"string that separates documents in a file, such as \0")
    parser.add_argument("--profile", default=DEFAULT, help="file in conf/profile/ that sets models and training")
    parser.add_argument("--only", nargs="*", help="use only these corpora of conf/corpora.yaml; without names, none")
    parser.add_argument("--rows", action="store_true", help="add a row for each text to reports/corpora.csv")
    parser.add_argument("--jobs", default="", help="number of models that are trained at the same time")
    return parser.parse_args(given)


def profiles(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the profile of each text by the name of its report, NAME or NAME@PROFILE."""
    listed = read_settings(Path("conf/corpora.yaml"))
    if not isinstance(listed, dict) or not all(re.fullmatch(NAME, str(name)) for name in listed):
        raise ValueError("conf/corpora.yaml: expected corpora by name, of letters, digits, _, - and inner dots")
    only = listed if given.only is None else given.only
    if wrong := [name for name in only if name not in listed]:
        raise ValueError(f"--only: {unknown(wrong[0], listed, 'corpus in conf/corpora.yaml')}")
    found = {_report(name, given.profile): _profile(given.profile, listed[name] or {}) for name in only}
    for item in (items := _items(given.text or "")):
        name, profile, path = _named(item, given.profile)
        if name in (*listed, *TAKEN):
            raise ValueError(f"TEXT: expected NAME=GLOB with a NAME other than {[*listed, *TAKEN]}, got {name!r}")
        text = {"name": name, "paths": [], "separator": given.separator}
        base = _profile(profile, {"defaults": [{"override /corpus": "text"}], "corpus": text})
        found.setdefault(_report(name, profile), base)["corpus"]["paths"].append(path)
    if not found or (given.text is not None and not items):
        raise ValueError("expected a text, got none; give TEXT='GLOB' or TEXT='NAME=GLOB', or names after --only")
    return found


def _items(text: str) -> list[str]:
    """Return the items of TEXT. Behind one with a name, what does not begin with a name is the rest of its path, which
    has blanks."""
    found: list[str] = []
    for item in shlex.split(text):
        named = found and re.fullmatch(ITEM, found[-1]) and not re.fullmatch(ITEM, item)
        found.append(f"{found.pop()} {item}" if named else item)
    return found


def _named(item: str, profile: str) -> tuple[str, str, str]:
    """Return name, profile and path of an item. Without a name, it is that of the folder before the first wildcard, or
    of the file."""
    if match := re.fullmatch(ITEM, item):
        name, path = match[1], match[3]
        profile = match[2] or profile
    else:
        path = item
        plain = [part for part in Path(item).parts if not re.search(r"[*?\[]", part)]
        name = re.sub(r"\W+", "_", Path(plain[-1]).stem if plain else "").strip("_") or "text"
    return name, profile, os.path.abspath(os.path.expanduser(path))


def _report(name: str, profile: str) -> str:
    return name if profile == DEFAULT else f"{name}@{profile}"


def _profile(base: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a profile that extends the profile ``base`` by ``values``, without controls and further texts."""
    if base not in (known := [file.stem for file in Path("conf/profile").glob("*.yaml")]):
        raise ValueError(unknown(base, known, "profile in conf/profile/"))
    empty = "${oc.create:{}}"
    sweep = {**values.get("sweep", {}), "controls": empty}
    return {**values, "sweep": sweep, "texts": empty, "defaults": [base, "_self_", *values.get("defaults", [])]}


@dataclass(frozen=True)
class Survey:
    """What a text offers, and the share of its documents outside training."""

    documents: int
    size: int  # bytes
    hash: str
    share: float

    @staticmethod
    def of(paths: Sequence[str], separator: str) -> Survey:
        """Read a text. Raises ValueError, as ``text_documents``, for files that cannot be read."""
        whole, documents, size = hashlib.sha256(), 0, 0
        for document in text_documents(paths, separator, "TEXT"):
            data = document.encode()
            whole.update(hashlib.sha256(data).digest())
            documents, size = documents + 1, size + len(data)
        share = min(MOST, max(SHARE, 2 * JUDGED / documents, 2 * 64 * WINDOW / size))
        return Survey(documents, size, whole.hexdigest(), round(share, 3))

    def told(self, more: str = "") -> str:
        """Say how a text is divided."""
        said = (
            f"{plural(self.documents, 'document')}, {self.size / 1e6:.1f} MB; {self.share / 2:.0%} for tuning and as "
        )
        few = "; few documents: where they have to be cut, verdicts are about this text, not about others of its kind"
        cut = few if self.documents * self.share / 2 < 2 * LEAST["verdict"] else ""
        return f"{said}many for verdicts{more}{cut}"


def fit(name: str, profile: dict[str, Any]) -> str:
    """Set the share of held-out documents and the vocabulary by what a text allows, say so, and return the text's
    hash. Errors as ``Survey.of``."""
    corpus = profile["corpus"]
    text = Survey.of(corpus["paths"], corpus["separator"])
    corpus["validation_share"] = text.share
    vocabulary = next(tokens for least, tokens in VOCABULARIES.items() if text.size >= least)
    if vocabulary:
        profile["tokenizer"] = {"d_vocab": vocabulary}
    short = f"; a vocabulary of {vocabulary} tokens, because the text is short" if vocabulary else ""
    print(f"pathsum: {name}: {text.told(short)}", file=sys.stderr)
    return text.hash


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


def made(name: str, profile: dict[str, Any], text: str, given: argparse.Namespace) -> bool:
    """Train and extract the models on one text, and write its report, and its row if it is asked for. Return whether
    all this succeeded."""
    folder = SCRATCH / name
    prepare(folder, profile)
    before = (folder / READ).read_text() if (folder / READ).exists() else text
    engine = ["pipelines.repro", *([f"--jobs={given.jobs}"] if given.jobs else [])]
    done = run(folder, "pipelines.compose") and (before == text or run(folder, "dvc", "repro", "-f", "-s", "tokenize"))
    if done:
        (folder / READ).write_text(text)
        done = run(folder, *engine)
    for part in WRITTEN if (folder / REPORTS / "index.html").exists() else ():
        source, target = folder / REPORTS / part, REPORTS / name / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    if done:
        print(f"pathsum: {name}: the report is {(REPORTS / name / 'index.html').absolute()}", file=sys.stderr)
        if given.rows:
            results = read_results(folder)
            if left_out := write_rows([row(name, results, judge_all(results))], REPORTS):
                said = "are of other claims and left out; make them again"
                print(f"pathsum: rows of {', '.join(left_out)} {said}", file=sys.stderr)
    return done


def sweep(given: argparse.Namespace) -> None:
    """Train and extract the models on every text, and write a report on each."""
    named = profiles(given)
    texts = {
        name: fit(name, profile) if "paths" in profile.get("corpus", {}) else "" for name, profile in named.items()
    }
    with held(SCRATCH / "lock", repro.WORK):  # another call would replace the code in the copies
        failed = [name for name, profile in named.items() if not made(name, profile, texts[name], given)]
    if failed:
        raise ValueError(f"no verdicts on {', '.join(failed)}, whose errors are above; run the same command again")


if __name__ == "__main__":
    with stage(threads=0):
        sweep(arguments(sys.argv[1:]))
