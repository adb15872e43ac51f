"""Ctrl-C ends a command at once with one line and exit code 130, and leaves no process running."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import pytest
from psutil import STATUS_ZOMBIE, NoSuchProcess, Process, wait_procs

from pipelines.interrupts import INTERRUPTED, workers
from pipelines.paths import ROOT

AS_COMMAND = "import signal, subprocess, sys, time; sys.argv[0] = '-m'; import pipelines\n"  # as `python -m` imports it
WAITING = f"{sys.executable!r}, '-c', 'print(1, flush=True); import time; time.sleep(99)'"
SAID = "\ninterrupted; run the same command again to go on\n"


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip


def test_workers_ignore_interrupts_from_their_first_moment() -> None:
    """The first worker is started in the block, the second one after it."""
    spawn, ignoring = multiprocessing.get_context("spawn"), []
    before, handler = signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGINT)
    with ProcessPoolExecutor(1, spawn) as pool:
        with workers():
            first = pool.submit(signal.getsignal, signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is handler
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        ignoring.append(first.result())
    with ProcessPoolExecutor(1, spawn) as pool:
        ignoring.append(pool.submit(signal.getsignal, signal.SIGINT).result())
    assert ignoring[0] is signal.SIG_IGN
    assert ignoring[1] is not signal.SIG_IGN


def ended(process: Process) -> bool:
    try:
        return process.status() == STATUS_ZOMBIE
    except NoSuchProcess:
        return True


@pytest.mark.parametrize("signalled", [os.kill, os.killpg], ids=["the command", "its group, as a terminal does"])
@pytest.mark.parametrize(
    "body",
    [
        f"subprocess.run([{WAITING}])",
        f"sys.exit(subprocess.run([{WAITING}]).returncode)",  # the end of a child is not mistaken for its failure
        f"signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT]); subprocess.run([{WAITING}])",  # multiprocessing
        f"child = subprocess.Popen([{WAITING}])\nwhile True: pass",
        f"child = subprocess.Popen([{WAITING}])\ntry: time.sleep(99)\nexcept BaseException: time.sleep(99)",
    ],
    ids=["waits", "passes a code on", "unblocked", "computes", "catches all"],
)
def test_an_interrupt_ends_the_command_and_its_children(body: str, signalled: object) -> None:
    command = start(AS_COMMAND + body)
    assert command.stdout is not None
    assert command.stdout.readline() == "1\n"
    (child,) = Process(command.pid).children(recursive=True)
    signalled(command.pid, signal.SIGINT)  # type: ignore[operator]
    _, said = command.communicate(timeout=60)
    assert command.returncode == INTERRUPTED
    if "UNBLOCK" not in body:  # a child to which the block does not extend may speak as well
        assert said == SAID
    assert SAID in said
    child.wait(timeout=60)
    assert ended(child)


def test_an_interrupt_ends_a_command_whose_message_nobody_can_read() -> None:
    command = start(AS_COMMAND + f"subprocess.run([{WAITING}])")
    assert command.stdout is not None
    assert command.stderr is not None
    assert command.stdout.readline() == "1\n"
    (child,) = Process(command.pid).children(recursive=True)
    command.stderr.close()
    os.kill(command.pid, signal.SIGINT)
    assert command.wait(timeout=60) == INTERRUPTED
    child.wait(timeout=60)
    assert ended(child)
    command.stdout.close()


def test_an_interrupt_ends_a_command_that_waits_for_a_reader() -> None:
    command = start(AS_COMMAND + "print(1, flush=True); print('x' * 10**6, file=sys.stderr)")
    assert command.stdout is not None
    assert command.stderr is not None
    assert command.stdout.readline() == "1\n"
    time.sleep(0.5)  # until the pipe is full
    os.kill(command.pid, signal.SIGINT)
    assert command.wait(timeout=60) == INTERRUPTED
    assert SAID not in command.stderr.read()
    command.stdout.close()
    command.stderr.close()


def test_an_interrupt_during_the_first_imports_of_a_command_prints_no_traceback() -> None:
    interrupted = (
        "import builtins, os, signal, sys, time; sys.argv[0] = '-m'; load = builtins.__import__\n"
        "def interrupt(name, *rest):\n"
        "    if name == 'multiprocessing': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = interrupt\n"
        "import pipelines; time.sleep(99)"
    )
    command = start(interrupted)
    assert command.communicate(timeout=60)[1] == SAID
    assert command.returncode == INTERRUPTED


def test_a_command_that_another_one_has_started_leaves_the_interrupt_to_it() -> None:
    inner = AS_COMMAND + "print(1, flush=True); time.sleep(99)"
    command = start(AS_COMMAND + f"subprocess.run([{sys.executable!r}, '-c', {inner!r}])")
    assert command.stdout is not None
    assert command.stdout.readline() == "1\n"
    os.killpg(command.pid, signal.SIGINT)
    assert command.communicate(timeout=60)[1] == SAID


def test_what_a_command_starts_ignores_interrupts_from_its_first_moment_even_through_a_shell() -> None:
    """DVC starts a stage through a shell. The stage says what its interpreter does at an interrupt when it begins."""
    stage = f"{sys.executable} -c 'import signal; print(signal.getsignal(signal.SIGINT), flush=True)'"
    dvc = AS_COMMAND + f"subprocess.run([sys.argv[1], '-c', {stage!r}])"
    for shell in ("/bin/sh", "/bin/bash"):
        command = start(AS_COMMAND + f"subprocess.run([{sys.executable!r}, '-c', {dvc!r}, {shell!r}])")
        said, _ = command.communicate(timeout=60)
        assert said == f"{signal.Handlers.SIG_IGN}\n"


def test_a_stage_ends_with_the_process_that_started_it() -> None:
    if sys.platform != "linux":
        pytest.skip("macOS does not tell a process that its parent has ended")
    inner = (
        "from pipelines.interrupts import end_with_parent as e; e(); print(1, flush=True); import time; time.sleep(99)"
    )
    parent = start(f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {inner!r}])")
    assert parent.stdout is not None
    assert parent.stdout.readline() == "1\n"
    (child,) = Process(parent.pid).children(recursive=True)
    parent.kill()
    parent.communicate(timeout=60)
    child.wait(timeout=60)
    assert ended(child)


def test_the_workers_of_a_sweep_end_with_it() -> None:
    if sys.platform != "linux":
        pytest.skip("macOS does not tell a process that its parent has ended")
    pytest.importorskip("joblib")
    job = "def job(_):\n    import os, pipelines, time; os.write(1, b'1\\n'); time.sleep(99)\n"
    sweep = start(f"from joblib import Parallel, delayed\n{job}Parallel(2)(delayed(job)(n) for n in range(2))")
    assert sweep.stdout is not None
    assert [sweep.stdout.readline(), sweep.stdout.readline()] == ["1\n", "1\n"]
    children = Process(sweep.pid).children(recursive=True)
    sweep.kill()
    gone, alive = wait_procs(children, timeout=30)
    for process in alive:
        process.kill()
    sweep.communicate(timeout=60)
    assert len(gone) >= 2
    assert not alive


def test_interrupts_are_blocked_in_the_workers_of_a_sweep_from_their_first_moment() -> None:
    """They import libraries before they import this project. What they inherit is what a job finds."""
    pytest.importorskip("joblib")
    sweep = start(
        AS_COMMAND + "from joblib import Parallel, delayed\n"
        "blocked = delayed(signal.pthread_sigmask)(signal.SIG_BLOCK, ())\n"
        "print([signal.SIGINT in mask for mask in Parallel(2)([blocked] * 2)])"
    )
    assert sweep.communicate(timeout=60)[0] == "[True, True]\n"


def test_a_stage_whose_dvc_has_ended_before_it_could_listen_ends_at_once() -> None:
    ended_before = subprocess.Popen([sys.executable, "-c", ""])
    ended_before.wait()
    code = "import sys; sys.argv[0] = '-m'; import pipelines; print('goes on')"
    for parent, said in ((ended_before.pid, ""), (os.getpid(), "goes on\n")):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "DVC_STAGE": "report", "PATHSUM_PARENT": str(parent)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        assert done.stdout == said
