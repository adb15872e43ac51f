"""Parts are computed side by side, in order, with one thread for each operation of torch."""

import threading
from collections.abc import Iterator

import pytest
import torch

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


def test_parts_of_parts_end_although_every_thread_has_a_part() -> None:
    """Each thread waits for parts that no other thread takes, unless it computes them itself."""
    use_threads(2)
    both = threading.Barrier(2, timeout=20)

    def work(part: int) -> list[int]:
        both.wait()
        found = in_threads(lambda i: 10 * part + i, range(5))
        both.wait()
        return found

    assert in_threads(work, [1, 2]) == [[10 * part + i for i in range(5)] for part in (1, 2)]


def test_an_idle_thread_helps_with_parts_of_a_part() -> None:
    """Parts of the long part wait for each other, so its thread alone would never end."""
    use_threads(2)
    both = threading.Barrier(2, timeout=20)

    def meet(part: int) -> int:
        both.wait()
        return part

    assert in_threads(lambda long: in_threads(meet, [1, 2]) if long else [], [False, True]) == [[], [1, 2]]


def test_an_error_in_a_part_of_a_part_is_raised() -> None:
    use_threads(2)
    for wrong in ([0, 1], [1, 0]):
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda part, wrong=wrong: in_threads(lambda i: 1 / i, wrong), [1, 2])


@pytest.mark.parametrize(("size", "least", "parts"), [(16, 8, [8, 8]), (15, 8, [15]), (5, 1, [3, 2]), (1, 1, [1])])
def test_halves_have_the_least_size(size: int, least: int, parts: list[int]) -> None:
    assert [len(part) for part in halves(torch.arange(size), least)] == parts
