"""Patterns with one key removed: its attention is either dropped or redistributed over the other keys."""

import math

import pytest
import torch

from pathsum.behavior.attention_sinks import forbidden, silenced, uniform_share
from pathsum.behavior.positional import bos
from tests.handmade import uniform_pattern

POS, DTYPE = 11, torch.float64


def scores() -> torch.Tensor:
    drawn = 2 * torch.randn(3, POS, POS, generator=torch.Generator().manual_seed(5), dtype=DTYPE)
    return drawn.masked_fill(torch.ones(POS, POS, dtype=torch.bool).triu(1), -math.inf)


@pytest.mark.parametrize("key", [0, 1])
def test_a_forbidden_key_is_a_softmax_without_it(key: int) -> None:
    without = scores()
    without[:, key + 1 :, key] = -math.inf
    torch.testing.assert_close(forbidden(scores().softmax(-1), key), without.softmax(-1))


def test_a_silenced_key_leaves_all_else() -> None:
    pattern = scores().softmax(-1)
    found = silenced(pattern, 0)
    assert (found[:, 1:, 0] == 0).all()
    torch.testing.assert_close(found[:, :, 1:], pattern[:, :, 1:])
    torch.testing.assert_close(found[:, 1:].sum(-1), 1 - pattern[:, 1:, 0])
    torch.testing.assert_close(found[:, 0], pattern[:, 0])  # the first query has no other key


def test_a_row_that_is_all_sink_stays_as_it_is() -> None:
    pattern = torch.zeros(POS, POS, dtype=DTYPE)
    pattern[:, 0] = 1
    torch.testing.assert_close(forbidden(pattern, 0), pattern)


def test_chance_is_the_share_under_uniform_causal_attention() -> None:
    assert uniform_share(POS) == pytest.approx(bos(uniform_pattern(POS)[None, None]).item())
