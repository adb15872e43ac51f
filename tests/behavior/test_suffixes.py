"""Generated sequences that contain matches of one, two or three tokens."""

from itertools import product

import pytest
import torch

from pathsum.behavior.suffix_sequences import MATCHES, SHORTEST_WINDOW, Trials, draw_trials

PRESENT = torch.ones(37)
PRESENT[5] = 0


def trials(pos: int = 31, n: int = 53) -> Trials:
    return draw_trials(n, pos, PRESENT, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("pos", [SHORTEST_WINDOW, 31])
def test_nothing_repeats_before_a_match_is_made_and_no_unseen_token_is_drawn(pos: int) -> None:
    drawn = trials(pos)
    assert (drawn.tokens[:, 0] == 0).all()
    assert not (drawn.tokens == 5).any()
    assert all(len(set(row)) == pos for row in drawn.tokens.tolist())


@pytest.mark.parametrize(("first", "second"), list(product(MATCHES, MATCHES)))
def test_each_occurrence_repeats_what_its_kind_says_and_nothing_else_does(first: str, second: str) -> None:
    """Token by token: the number of the query's last three tokens that stand before each follower."""
    drawn = trials(SHORTEST_WINDOW)
    tokens = drawn.matched(first, second)
    assert (tokens != drawn.tokens).sum().item() == len(tokens) * (len(MATCHES[first]) + len(MATCHES[second]))
    for row, places in zip(tokens.tolist(), drawn.followers.tolist(), strict=True):
        for place, kind in zip(places, (first, second), strict=True):
            assert tuple(k for k in (1, 2, 3) if row[place - k] == row[-k]) == MATCHES[kind]
            assert row.count(row[place]) == 1


def test_followers_and_query_are_the_same_in_both_orders_and_no_window_is_kept_changed() -> None:
    drawn = trials()
    before = drawn.tokens.clone()
    for kinds in (("three", "one"), ("one", "three")):
        assert (drawn.matched(*kinds).gather(1, drawn.followers) == drawn.followed()).all()
        assert (drawn.matched(*kinds)[:, -3:] == before[:, -3:]).all()
    assert drawn.tokens.equal(before)


def test_every_place_is_used() -> None:
    places = trials(SHORTEST_WINDOW + 2, n=500).followers
    assert set(places[:, 0].tolist()) == {4, 5, 6}
    assert set(places[:, 1].tolist()) == {8, 9, 10}
    assert ((places[:, 1] - places[:, 0]) >= 4).all()


@pytest.mark.parametrize(("pos", "message"), [(11, "raise n_ctx"), (37, "shorten the windows")])
def test_windows_without_room_or_tokens_are_refused(pos: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"expected windows of at least 12 positions .* {message}"):
        trials(pos)
