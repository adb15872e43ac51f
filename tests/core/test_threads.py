"""Parts are computed side by side, in order, with one thread for each operation of torch."""

import threading
from collections.abc import Iterator

import pytest
import torch

from pathsum.core import threads
from pathsum.core.threads import halves, in_threads, use_threads


@pytest.fixture(autouse=True)
def _one_thread_after() -> Iterator[None]:
    yield
    use_threads(1)


def test_parts_meet_in_threads_and_keep_their_order() -> None:
    """Each part waits for the other, so one thread alone would never end."""
    use_threads(2)
    both = threading.Barrier(2, timeout=20)

    def work(part: int, added: int) -> tuple[int, int]:
        both.wait()
        return part + added, torch.get_num_threads()

    assert in_threads(work, [1, 2], [10, 20]) == [(11, 1), (22, 1)]
    assert torch.get_num_threads() == 1


def test_parts_of_a_part_stay_in_its_thread() -> None:
    """Otherwise all threads would wait for parts that have no thread left."""
    use_threads(2)

    def name(_: int) -> str:
        return threading.current_thread().name

    found = in_threads(lambda part: {name(part), *in_threads(name, [1, 2, 3])}, [1, 2, 3, 4])
    assert all(len(names) == 1 for names in found)
    assert all(next(iter(names)).startswith(threads._PART) for names in found)


@pytest.mark.parametrize(("size", "least", "parts"), [(16, 8, [8, 8]), (15, 8, [15]), (5, 1, [3, 2]), (1, 1, [1])])
def test_halves_have_the_least_size(size: int, least: int, parts: list[int]) -> None:
    assert [len(part) for part in halves(torch.arange(size), least)] == parts
