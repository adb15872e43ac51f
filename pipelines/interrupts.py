"""Ctrl-C: a command ends at once, with one line and exit code 130, and leaves no process running.

Stored results survive a kill at any moment. An interrupt therefore unwinds nothing: it kills the processes that the
command has started, and then ends the command.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

INTERRUPTED = 130  # exit code of an interrupted process, as in shells


def listen() -> None:
    """End this process at an interrupt, even during an import or a long call of a library.

    The signal is blocked here and in all processes that start from here, and one thread waits for it. A process in
    which it is already blocked or ignored leaves it to the command that started it.
    """
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if not blocked and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)  # multiprocessing lifts the block of the main thread
        threading.Thread(target=lambda: _end(signal.sigwait({signal.SIGINT}), None), daemon=True).start()


def end_with_parent() -> None:
    """Have the kernel kill this process when the process that started it ends (on Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _end(number: int, frame: FrameType | None) -> None:
    import psutil

    children = [child.pid for child in psutil.Process().children(recursive=True)]  # parents first
    print("\ninterrupted; run the same command again to go on", file=sys.stderr, flush=True)
    for child in children:  # nothing here lets another thread run, which would see that a child has ended
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    os._exit(INTERRUPTED)
