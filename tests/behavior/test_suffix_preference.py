"""The attention of the last query, averaged over both orders of a sequence."""

import pytest
import torch

from pathsum.behavior.suffixes import last_attention, longer_and_shorter
from tests.handmade import normal, uniform_pattern

G = torch.Generator().manual_seed(0)


def test_the_last_row_is_read_at_each_window_s_own_keys() -> None:
    """Identity: each value is the attention of the last query to that window's key."""
    pattern, keys = normal(G, 5, 3, 7, 7), torch.randint(7, (5, 2), generator=G)
    found = last_attention(pattern, keys)
    assert found.shape == (3, 5, 2)
    for h, b, i in ((0, 0, 0), (2, 4, 1), (1, 3, 0)):
        assert found[h, b, i] == pattern[b, h, 6, keys[b, i]]
    assert last_attention(uniform_pattern(7).expand(5, 3, 7, 7), keys).unique().tolist() == pytest.approx([1 / 7])


def test_what_hangs_on_place_or_follower_alone_favours_neither_side() -> None:
    """Negative control: values that depend on the position alone. Positive control: values that depend on the match
    length."""
    by_place = normal(G, 11, 2)
    longer, shorter = longer_and_shorter(torch.cat([by_place, by_place])).unbind(-1)
    torch.testing.assert_close(longer, shorter)
    by_length = torch.cat([torch.tensor([[3.0, 1.0]]).expand(11, 2), torch.tensor([[1.0, 3.0]]).expand(11, 2)])
    assert longer_and_shorter(by_length).unique(dim=0).tolist() == [[3, 1]]


def test_windows_that_do_not_come_in_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected two values for each of 2n windows, got shape \(3, 2\)"):
        longer_and_shorter(torch.zeros(3, 2))
