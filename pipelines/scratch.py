"""Copy the working tree to a folder, to run it there on its own: python -m pipelines.scratch FOLDER [PROFILE]

Files that git ignores are not copied. Neither are dvc.lock and reports/, except what the report reads.
"""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

from pipelines.paths import stage

OWN = ("dvc.lock", "reports/")  # written in the folder and never copied, but for ROWS and FIRST
ROWS = ("reports/corpora.csv", "reports/dose_response.csv")  # read by the report
FIRST = "reports/calibration/"  # that of the project, until the copy has its own
MARK = ".git/pathsum-copy"  # of a folder that this command has made


def copy_tree(folder: Path) -> None:
    """Copy the current working tree to ``folder``, which is new, empty or an earlier copy."""
    others = folder.is_dir() and {path.name for path in folder.iterdir()} - {".git"}
    if folder.resolve() == Path.cwd() or (others and not (folder / MARK).exists()):
        raise ValueError(f"{folder.absolute()}: expected a new or empty folder or an earlier copy, got other files")
    folder.mkdir(parents=True, exist_ok=True)
    names = _git("ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]  # in a hook, git would make the folder a part of the repository that the hook runs in
    _git("init", "--quiet", str(folder))
    (folder / MARK).touch()
    for stale in ("conf", "pipelines", "src"):
        shutil.rmtree(folder / stale, ignore_errors=True)
    for name in filter(None, names):
        first = name.startswith(FIRST) and not (folder / name).exists()
        if Path(name).is_file() and (name in ROWS or first or not name.startswith(OWN)):
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
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, errors="surrogateescape")
    if done.returncode:
        raise ValueError(f"expected a git repository in {Path.cwd()}, got: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("profile", nargs="?")
    given = parser.parse_args()
    with stage(threads=0):
        copy_tree(given.folder)
        if given.profile:
            choose_profile(given.folder, given.profile)
