"""Copy the working tree to a folder, to be run there with another configuration: python -m pipelines.scratch FOLDER.

Files that git ignores stay behind, and so do dvc.lock and the report: what the folder has made of them is kept.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

OWN = ("dvc.lock", "reports/")  # the folder's, not the project's


def copy_tree(folder: Path) -> None:
    """Make ``folder`` a copy of the working tree as it is now; DVC sees what has changed since an earlier copy."""
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
    copy_tree(Path(sys.argv[1]))
