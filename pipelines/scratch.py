"""Copy the working tree to a folder, to run it there with another configuration: python -m pipelines.scratch FOLDER

Files that git ignores are not copied. dvc.lock and reports/ are not copied either, so that the folder keeps its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pipelines.paths import stage

OWN = ("dvc.lock", "reports/")  # written in the folder and never copied


def copy_tree(folder: Path) -> None:
    """Make ``folder`` a copy of the present working tree. In an existing copy, DVC then reruns what has changed."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for stale in ("conf", "pipelines", "src"):
        shutil.rmtree(folder / stale, ignore_errors=True)
    for name in filter(None, listed.stdout.split("\0")):
        if Path(name).is_file() and not name.startswith(OWN):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, folder / name)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)


if __name__ == "__main__":
    with stage(threads=0):
        if len(sys.argv) != 2:
            raise ValueError("expected one folder to copy the project to: python -m pipelines.scratch FOLDER")
        copy_tree(Path(sys.argv[1]))
