"""Background processes of a test. Everything that a test starts has ended when the test ends."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from tests.pipelines.workspace import environment


def free_port() -> int:
    """Return a port of the loopback interface that nobody uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its descendants at once, as a host does that loses its power."""
    try:
        root = psutil.Process(process.pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = []
    for member in family:
        if member.is_running():
            member.kill()
    process.wait()
    psutil.wait_procs(family, timeout=10)


class Services:
    """Start commands in the background, with their output in one file each, and kill them at the end."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self.folder, self.ends = folder, ends

    def start(self, name: str, command: Sequence[str], cwd: Path, **env: str) -> subprocess.Popen[bytes]:
        """Run ``command`` in ``cwd``."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment(cwd) | env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.ends.callback(kill, process)
        return process

    def output(self, name: str) -> str:
        """Return what the command has printed so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")


@contextmanager
def services(folder: Path) -> Iterator[Services]:
    """Return a starter of background processes. At the end, kill them, the last first."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as ends:
        yield Services(folder, ends)


def succeeds(started: Services, name: str, process: subprocess.Popen[bytes], seconds: float = 300) -> str:
    """Wait for a command, and return its output. If it fails, the test fails."""
    code = process.wait(seconds)
    assert code == 0, started.output(name)[-6000:]
    return started.output(name)
