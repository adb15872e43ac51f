"""Copy the working tree to a folder, to run it there on its own: python -m pipelines.scratch FOLDER [PROFILE]

Files that git ignores are not copied. Neither are dvc.lock and reports/, except what the report reads.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pipelines.paths import stage

OWN = ("dvc.lock", "reports/")  # written in the folder and never copied, but for ROWS
ROWS = ("reports/corpora.csv", "reports/dose_response.csv")  # read by the report
MARK = ".git/pathsum-copy"  # of a folder that this command has made


def copy_tree(folder: Path) -> None:
    """Copy the current working tree to ``folder``, which is new, empty or an earlier copy."""
    if folder.is_file():
        raise ValueError(f"{folder}: expected a folder, got a file; give another folder")
    others = folder.is_dir() and any(path.name != ".git" for path in folder.iterdir())
    if os.path.realpath(folder) == os.path.realpath(".") or (others and not (folder / MARK).exists()):
        raise ValueError(f"{folder.absolute()}: expected a new or empty folder or an earlier copy, got other files")
    names = _git("ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{folder}: expected a folder that can be made ({error.strerror}); give another") from error
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]  # in a hook, git would make the folder a part of the repository that the hook runs in
    _git("init", "--quiet", str(folder))
    (folder / MARK).touch()
    for stale in ("conf", "pipelines", "src"):
        shutil.rmtree(folder / stale, ignore_errors=True)
    for name in filter(None, names):
        if Path(name).is_file() and (name in ROWS or not name.startswith(OWN)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, folder / name)


def choose_profile(folder: Path, name: str) -> None:
    """Name the profile ``name`` in the copy's conf/config.yaml."""
    path = folder / "conf" / "config.yaml"
    text, found = re.subn(r"(?m)^( *)-[^#\n]*\bprofile\b.*$", rf"\1- profile: {name}", path.read_text(encoding="utf-8"))
    if found != 1:
        raise ValueError(f"conf/config.yaml: expected one line `- profile: NAME` in `defaults`, got {found}")
    path.write_text(text, encoding="utf-8")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, errors="surrogateescape")
    except FileNotFoundError as error:
        raise ValueError("expected git, which lists the files of the project, found none") from error
    if done.returncode:
        raise ValueError(f"expected a git repository in {Path.cwd()}, got: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    with stage(threads=0):
        if len(sys.argv) not in (2, 3) or not all(sys.argv):
            raise ValueError("expected one folder to copy the project to: python -m pipelines.scratch FOLDER [PROFILE]")
        copy_tree(Path(sys.argv[1]))
        for profile in sys.argv[2:]:
            choose_profile(Path(sys.argv[1]), profile)
