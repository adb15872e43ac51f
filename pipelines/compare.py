"""`make compare BASE=…`: print how reports/metrics.json has changed since a git revision, or from another file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from pathsum.report.compare import Metrics, check, compare
from pipelines.paths import REPORTS, show_help, stage

METRICS = REPORTS / "metrics.json"
EXAMPLE = "make compare BASE=main"


def text_of(base: str) -> str:
    """Return the text of the metrics.json that ``base`` names: a file, or else a git revision."""
    if not base:
        raise ValueError(f"BASE: expected a git revision or the path of a metrics.json, got nothing; try {EXAMPLE}")
    if Path(base).is_file():
        try:
            return Path(base).read_text(encoding="utf-8", errors="replace")  # ``metrics`` refuses what is not JSON
        except OSError as error:
            error.filename = base  # absent if the file opens but cannot be read
            raise
    if git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}").returncode:
        if (repository := git("rev-parse", "--git-dir")).returncode:
            raise ValueError(
                f"BASE={base}: expected the path of a metrics.json, because git finds no repository here; no such "
                f"file. Git says: {' '.join(repository.stderr.split())}"
            )
        raise ValueError(
            f"BASE={base}: expected a git revision or the path of a metrics.json; no such file or revision here. "
            f"`git log --oneline` lists revisions; try {EXAMPLE}"
        )
    found = git("show", f"{base}:{METRICS.as_posix()}")
    if found.returncode:
        raise ValueError(f"BASE={base}: expected a revision with {METRICS}; this one has none. Give a later revision")
    return found.stdout


def ending() -> str:
    """Return what a run says at its end: verdicts, what differs from the committed report, and where the page is."""
    found = metrics(METRICS.read_text(encoding="utf-8"), str(METRICS))["claims"]
    verdicts = Counter(claim["verdict"] for claim in found.values())
    said = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
    page = f"The report is {(REPORTS / 'index.html').absolute()} (make open)."
    return f"pathsum: {len(found)} claims: {said}. {since_commit()} {page}".replace("  ", " ")


def since_commit() -> str:
    """Return a line on what a run has changed in the committed report: verdicts by name, and the number of files."""
    if shutil.which("git") is None:
        return ""
    files = git("status", "--porcelain", "--untracked-files=no", "--", str(REPORTS), "dvc.lock").stdout.splitlines()
    committed = git("show", f"HEAD:{METRICS.as_posix()}")
    if not files or committed.returncode:
        return ""
    before, now = (
        metrics(text, str(METRICS))["claims"] for text in (committed.stdout, METRICS.read_text(encoding="utf-8"))
    )
    moved = [
        f"{name} {before[name]['verdict']} → {now[name]['verdict']}"
        for name in now
        if name in before and before[name]["verdict"] != now[name]["verdict"]
    ]
    return (
        f"{len(files)} committed files differ, and {len(moved)} of {len(now)} verdicts{': ' * bool(moved)}"
        f"{', '.join(moved)}. On another processor, rounding changes the last digits of most tables and may change one "
        "or two verdicts; `git checkout reports dvc.lock` restores the committed report."
    )


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git and return its exit code and output. Raises ValueError if git is not installed."""
    try:
        return subprocess.run(["git", *arguments], capture_output=True, encoding="utf-8", errors="replace", check=False)
    except FileNotFoundError as error:
        raise ValueError("BASE: a revision needs git, which is not installed; install it, or give a file") from error


def metrics(text: str, where: str) -> Metrics:
    """Parse ``text`` as a metrics.json. Raises ValueError, naming the source ``where``, if it is not one."""
    try:
        return check(json.loads(text), where)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"{where}: expected the metrics.json of a report, got text that is not JSON ({error}); give a revision or "
            "the path of such a file"
        ) from error


if __name__ == "__main__":
    with stage(threads=0):
        show_help(__doc__)
        base = " ".join(sys.argv[1:])
        if not METRICS.is_file():
            raise FileNotFoundError(f"expected {METRICS} in this folder, got none; run `make repro` to write it")
        before = metrics(text_of(base), base)
        try:
            now = metrics(METRICS.read_text(encoding="utf-8", errors="replace"), str(METRICS))
        except ValueError as error:
            raise ValueError(
                f"{METRICS}: expected the metrics.json of a report, got something else; run `make repro`, which writes "
                "it again"
            ) from error
        print(compare(before, now, base))
