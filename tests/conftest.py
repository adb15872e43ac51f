"""Fixtures for all tests, and the order in which test files run."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # a worker is one core's; before torch is imported. Stages say their own number,
os.environ["OMP_WAIT_POLICY"] = "passive"  # and their threads, more than there are cores, do not wait by spinning
os.environ["GOMP_SPINCOUNT"] = "0"

import jaxtyping
import pytest
from filelock import FileLock

gc.set_threshold(10_000)  # collected tests are many objects and hardly any garbage; see pipelines/__init__.py

# What a shell without job control starts in the background ignores interrupts, and so would every command of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Return a function that makes a folder, once for all workers. No test may write in such a folder."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, whole = shared / name, shared / f"{name}.whole"
        with FileLock(f"{folder}.lock"):
            if not whole.exists():
                make(folder)
                whole.touch()
        return folder

    return made


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Use one thread, and receive interrupts, whatever an earlier stage in this process has set. A test that needs two
    threads sets them itself."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # else the processes of a test would block it, too
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


WHOLE = ("docs", "extraction/test_cell", "pipelines", "report")  # tests of whole models and pages


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check shapes at every call in tests of functions alone, since checks take half of the time."""
    jaxtyping.config.update("jaxtyping_disable", item.nodeid.startswith(tuple(f"tests/{name}" for name in WHOLE)))


# The first makes the graph that two others copy; what stands before those two gives another worker work meanwhile.
LONG = ("pipelines/test_graph", "pipelines/test_texts", "training/test_ranks", "pipelines/test_recovery")
LONG += (
    "pipelines/test_kill",
    "pipelines/test_sweep",
    "pipelines/test_opened",
    "docs/test_documents_run",
    "training/",
    "figures/",
    "page/",
    "report/",
)
LONG += ("test_known_mistakes",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, so that none of them runs alone at the end."""
    items.sort(key=lambda item: next((i for i, name in enumerate(LONG) if f"tests/{name}" in item.nodeid), len(LONG)))
