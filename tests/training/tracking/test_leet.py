"""`make leet` shows the offline runs of a folder in a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pathsum.config import TrackingConfig
from pathsum.training.tracker import Run, mirror
from pipelines.paths import ROOT
from tests.training.tracking.found import FOUND

SIZE = (50, 160)  # rows and columns of the terminal
SECONDS = 60
MAKE = ("make", "--no-print-directory", f"--file={ROOT / 'Makefile'}", "--old-file=setup", "leet")


def screen(folder: Path, wanted: set[str]) -> str:
    """Return what `make leet` has drawn in ``folder`` once it has drawn all that is ``wanted``, or after SECONDS."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.execvpe("make", MAKE, {**os.environ, "TERM": "xterm-256color", "PATH": tools})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    raw, drawn, until = b"", "", time.monotonic() + SECONDS
    while time.monotonic() < until and not all(text in drawn for text in wanted):
        if select.select([terminal], [], [], 0.5)[0]:
            raw += os.read(terminal, 2**16)
            drawn = re.sub("\x1b\\[[^a-zA-Z]*[a-zA-Z]", "", raw.decode(errors="replace"))
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)
    return drawn


def test_runs_curves_and_summaries_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    config = TrackingConfig(mode="offline", project="p", group="g", entity="", profile="prose")
    for name, run in (("L2H2S0 circuits", "L2H2S0-circuits-abc"), ("L2H2S0", "L2H2S0-abc")):
        with mirror(config, Run(name, run, "train", tags=("2 layers",)), tmp_path / "runs") as wandb:
            for tokens in (0, 50, 91):
                wandb.log(replace(FOUND, tokens_seen=tokens, in_context_loss_drop_nats=tokens / 100))
            wandb.summary({"onset_tokens": 712_345})
    wanted = {"L2H2S0-circuits-abc", "L2H2S0-abc", "2 layers", "in_con", "onset_tokens", "712345"}
    drawn = screen(tmp_path, wanted)
    assert {text for text in wanted if text not in drawn} == set()
    assert re.search("[\u2801-\u28ff]", drawn)  # a curve, in dots of Braille


def test_without_runs_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run(MAKE, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "expected runs/wandb, got none; run make repro" in done.stderr
