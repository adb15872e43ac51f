"""`make compare BASE=…`: print how reports/metrics.json has changed since a git revision, or from another file."""

import argparse
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from pathsum.report.compare import Metrics, check, compare
from pipelines.paths import REPORTS, stage

METRICS = REPORTS / "metrics.json"


def text_of(base: str) -> str:
    """Return the text of the metrics.json that ``base`` names: a file, or else a git revision."""
    if not base:
        raise ValueError("BASE: expected a git revision or the path of a metrics.json, got nothing")
    if Path(base).is_file():
        return Path(base).read_text(encoding="utf-8", errors="replace")  # ``metrics`` refuses what is not JSON
    found = git("show", "--end-of-options", f"{base}:{METRICS.as_posix()}")
    if found.returncode:
        said = " ".join(found.stderr.split())
        raise ValueError(f"BASE={base}: expected a revision with {METRICS}, or the path of a metrics.json, got {said}")
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
    texts = (committed.stdout, METRICS.read_text(encoding="utf-8"))
    before, now = (
        {name: claim["verdict"] for name, claim in metrics(text, str(METRICS))["claims"].items()} for text in texts
    )
    moved = [f"{name} {before[name]} → {now[name]}" for name in now if before.get(name, now[name]) != now[name]]
    return (
        f"{len(files)} committed files differ, and {len(moved)} of {len(now)} verdicts{': ' * bool(moved)}"
        f"{', '.join(moved)}. On another processor, rounding changes the last digits of most tables and may change one "
        "or two verdicts; `git checkout reports dvc.lock` restores the committed report."
    )


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], capture_output=True, encoding="utf-8", errors="replace", check=False)


def metrics(text: str, where: str) -> Metrics:
    """Parse ``text`` as a metrics.json. Raises ValueError, naming the source ``where``, if it is not one."""
    try:
        return check(json.loads(text), where)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where}: expected the metrics.json of a report, got text that is not JSON") from error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="a git revision, or the path of another metrics.json")
    base = parser.parse_args().base
    with stage(threads=0):
        if not METRICS.is_file():
            raise FileNotFoundError(f"expected {METRICS} in this folder, got none; run `make repro` to write it")
        before = metrics(text_of(base), base)
        print(compare(before, metrics(METRICS.read_text(encoding="utf-8", errors="replace"), str(METRICS)), base))
