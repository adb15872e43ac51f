"""`make leet` shows the offline runs of a folder in a terminal."""

import subprocess
from pathlib import Path

from pipelines.paths import ROOT


def test_without_runs_it_says_so(tmp_path: Path) -> None:
    make = ("make", "--no-print-directory", f"--file={ROOT / 'Makefile'}", "--old-file=setup", "leet")
    done = subprocess.run(make, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "expected runs/wandb, got none; run make repro" in done.stderr
