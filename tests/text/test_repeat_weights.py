"""Targets that complete a pair seen before in their window have the weight, and the mean weight is 1."""

import itertools

import pytest
import torch

from pathsum.text.repeats import completes_a_repeat, repeat_weights


def test_it_is_the_definition_pair_by_pair() -> None:
    windows = torch.randint(0, 9, (7, 41), generator=torch.Generator().manual_seed(0))
    found = completes_a_repeat(windows)
    for row, again in zip(windows.tolist(), found.tolist(), strict=True):
        pairs = list(itertools.pairwise(row))
        assert again == [pair in pairs[:i] for i, pair in enumerate(pairs)]
    assert 0.1 < found.float().mean() < 0.9


def test_without_repeats_or_with_a_weight_of_1_all_weights_are_1() -> None:
    assert repeat_weights(torch.arange(20)[None], 5.0).eq(1).all()
    windows = torch.randint(0, 3, (4, 30), generator=torch.Generator().manual_seed(1))
    assert repeat_weights(windows, 1.0).eq(1).all()
    assert repeat_weights(windows, 5.0).mean().item() == pytest.approx(1, rel=1e-6)
