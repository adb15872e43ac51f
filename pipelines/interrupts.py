"""Ctrl-C: a command ends at once, with one line and exit code 130, and leaves no process running.

Stored results survive a kill at any moment, so nothing has to be cleaned up. An interrupt kills the processes that the
command has started, and then ends the command.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import current_process, parent_process, resource_tracker
from types import FrameType

PARENT = "PATHSUM_PARENT"  # environment variable: id of the process that starts stages, or the workers of a sweep
_PTHREAD_SIGMASK = signal.pthread_sigmask
INTERRUPTED = 130  # exit code of an interrupted process, as in shells


def listen(mask: Collection[int]) -> None:
    """From now on, end this process at an interrupt (SIGINT), even during an import or a long call of a library.

    The signal is blocked in this process and in all that it starts, and one thread waits for it. If the signal was
    ignored, or blocked by ``mask``, the signal mask that this process began with, no thread waits: the command that
    started this process handles it. The signal is then ignored, because a shell, as between DVC and a stage, lifts the
    block of what it starts.
    """
    if signal.SIGINT in mask:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    elif signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.pthread_sigmask = _change_mask  # multiprocessing and joblib lift the block before they start a process
        signal.signal(signal.SIGINT, _end)  # should a library lift it in another way
        threading.Thread(target=lambda: _end(signal.sigwait({signal.SIGINT}), None), daemon=True).start()


def _change_mask(how: int, mask: Iterable[int]) -> set[int]:
    """Change the signal mask like ``signal.pthread_sigmask``, but leave SIGINT blocked if it would be unblocked."""
    return _PTHREAD_SIGMASK(how, set(mask) - {signal.SIGINT} if how == signal.SIG_UNBLOCK else mask)


@contextmanager
def workers() -> Iterator[None]:
    """Start processes with multiprocessing in this block. They ignore interrupts, also while they import libraries; the
    command that started this process ends them."""
    resource_tracker.ensure_running()  # which lifts the block of the main thread
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # an interrupt in this block waits for its thread
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_with_parent() -> None:
    """Make the kernel kill this process when the process that started it ends (Linux only).

    If that process has already ended, end this one now. PARENT may name a process above it: some shells stay between
    DVC and a stage. A thread then waits for the end of that process.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        given = os.environ.get(PARENT, "")
        if given.isdecimal() and int(given) != os.getppid() and not current_process().name.startswith("SpawnProcess"):
            with suppress(OSError):
                above = os.pidfd_open(int(given))
                threading.Thread(target=_end_after, args=(above,), daemon=True).start()
    if _orphaned():
        os._exit(INTERRUPTED)


def _end_after(process: int) -> None:
    """End this process when the one with the file descriptor ``process`` has ended."""
    select.select([process], [], [])
    os._exit(INTERRUPTED)


def _orphaned() -> bool:
    """Return whether the process that started this one has ended.

    A spawned worker of multiprocessing knows that process. Otherwise its id is in the environment variable PARENT.
    Return False if neither names it.
    """
    if current_process().name.startswith("SpawnProcess"):
        started_by = parent_process()
        return started_by is not None and not started_by.is_alive()
    above = os.getppid()
    given = int(text) if (text := os.environ.get(PARENT, "")).isdecimal() else above
    if above == given:
        return False
    try:
        os.kill(given, 0)  # raises if there is no such process
    except ProcessLookupError:
        return True
    return above == 1  # the process has ended, but its exit code has not been read yet


def _end(number: int, frame: FrameType | None) -> None:
    import psutil

    children = [child.pid for child in psutil.Process().children(recursive=True)]  # parents first
    with suppress(OSError):  # an interrupt also ends the reader of a pipe, as in `make repro 2>&1 | tee log`
        if sys.stderr and select.select([], [sys.stderr], [], 1)[1]:  # or it has stopped reading, as `less` does
            print("\ninterrupted; run the same command again to go on", file=sys.stderr, flush=True)
    for child in children:  # nothing here lets another thread run, which would see that a child has ended
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    os._exit(INTERRUPTED)
