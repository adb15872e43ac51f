"""Attention by position, independent of the tokens."""

import pytest
import torch

from pathsum.behavior.positional import attention_by_distance, bos, previous_token
from tests import handmade

POS = 7


def patterns() -> torch.Tensor:
    """Return four heads in one window: previous token, BOS, uniform, and current token."""
    rest = torch.zeros(POS, POS, dtype=torch.float64)
    rest[:, 0] = 1
    heads = [handmade.previous_token_pattern(POS), rest, handmade.uniform_pattern(POS), torch.eye(POS).double()]
    return torch.stack(heads)[None]


def test_each_head_scores_by_its_own_measure_and_by_no_other() -> None:
    """Uniform causal attention scores the mean of 1/(i + 1). Query 1, whose previous token is BOS, is left out, as is
    query 0 for BOS."""
    uniform = [1 / (i + 1) for i in range(1, POS)]
    even, rest = sum(uniform[1:]) / (POS - 2), sum(uniform) / (POS - 1)
    assert previous_token(patterns()).tolist() == pytest.approx([1, 0, even, 0], abs=1e-12)
    assert bos(patterns()).tolist() == pytest.approx([1 / (POS - 1), 1, rest, 0], abs=1e-12)
    by_distance = attention_by_distance(patterns())
    assert by_distance[[0, 1, 3]].tolist() == [[0, 1, 0, 0, 0, 0], [0] * 6, [1, 0, 0, 0, 0, 0]]


def test_attention_by_distance_is_the_mean_along_a_diagonal_without_the_beginning() -> None:
    g = torch.Generator().manual_seed(1)
    pattern = torch.rand(3, 2, POS, POS, generator=g, dtype=torch.float64).tril()
    means = attention_by_distance(pattern)
    assert means.shape == (2, POS - 1)
    for head in range(2):
        for distance in range(POS - 1):
            cells = [pattern[b, head, q, q - distance].item() for b in range(3) for q in range(distance + 1, POS)]
            assert means[head, distance].item() == pytest.approx(sum(cells) / len(cells), abs=1e-12)
    torch.testing.assert_close(means[:, 1], previous_token(pattern), rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", [attention_by_distance, previous_token, bos])
def test_a_window_without_two_tokens_is_refused(score) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="at least 3 positions, got 2 queries × 2 keys"):
        score(torch.ones(1, 1, 2, 2))
    with pytest.raises(ValueError, match="square pattern"):
        score(torch.ones(1, 1, 5, 7))
