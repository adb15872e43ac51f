"""Every token is predicted once, and a resumed run sees the windows that an uninterrupted run would have seen."""

import numpy as np
import pytest
import torch

from pathsum.text.bos import BOS
from pathsum.text.repeated import repeated_random
from pathsum.text.windows import HeldOut, Windows, balanced, documents_of, order, shuffled

STREAM = np.arange(1, 1 + 7 * 13 + 5, dtype=np.uint16)


def test_a_window_is_bos_and_its_tokens_and_each_token_is_a_target_once() -> None:
    windows = Windows(STREAM, 13)
    rows = windows.batch(torch.arange(len(windows)))
    assert len(windows) == 7
    assert rows.dtype == torch.int64
    assert rows[:, 0].tolist() == [0] * 7
    assert rows[:, 1:].flatten().tolist() == STREAM[: 7 * 13].tolist()
    assert windows.batch(torch.tensor([5, 2])).equal(rows[[5, 2]])


def test_a_window_longer_than_the_text_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"expected n_ctx \+ 1 = 14 tokens, got 13; lower it"):
        Windows(STREAM[:13], 13)


def test_spread_windows_are_even_and_all_if_there_are_fewer() -> None:
    windows = Windows(STREAM, 13)
    assert windows.spread(3).tolist() == [0, 2, 4]
    assert windows.spread(7).tolist() == windows.spread(101).tolist() == list(range(7))


def test_the_order_is_a_function_of_seed_and_step_and_an_epoch_sees_each_window_once() -> None:
    steps = [order(5, step, 3, 17) for step in range(17)]  # three epochs
    assert all(order(5, step, 3, 17).equal(steps[step]) for step in (16, 3, 0, 11))
    epochs = torch.cat(steps).view(3, 17)
    assert all(epoch.sort().values.equal(torch.arange(17)) for epoch in epochs)
    assert not epochs[0].equal(epochs[1])
    assert not order(7, 0, 17, 17).equal(epochs[0])


def test_a_repeated_block_follows_itself_and_bos_is_only_first() -> None:
    tokens, block = repeated_random(11, 31, 53, torch.Generator().manual_seed(3))
    assert block == 15
    assert tokens.shape == (11, 31)
    assert (tokens[:, 0] == 0).all()
    assert (tokens[:, 1:] > 0).all()
    queries = torch.arange(block + 1, 2 * block)
    keys = queries - block + 1
    assert tokens[:, queries].equal(tokens[:, queries - block])
    assert tokens[:, keys].equal(tokens[:, queries + 1])  # attending to the key gives the next token
    assert keys.min() >= 2
    assert repeated_random(11, 31, 53, torch.Generator().manual_seed(3))[0].equal(tokens)


def test_given_probabilities_are_followed_and_bos_is_left_out() -> None:
    weights = torch.zeros(53)
    weights[[0, 7, 11]] = torch.tensor([90.0, 1.0, 3.0])
    drawn = repeated_random(101, 201, 53, torch.Generator().manual_seed(3), weights)[0][:, 1:]
    assert set(drawn.unique().tolist()) == {7, 11}
    assert abs((drawn == 11).double().mean() - 0.75) < 5 * (0.1875 / (101 * 100)) ** 0.5


def test_impossible_repeats_are_errors() -> None:
    with pytest.raises(ValueError, match=r"a repeated block needs n_ctx ≥ 3 .*, got 2; raise model.n_ctx"):
        repeated_random(3, 2, 53, torch.Generator())


def test_shuffled_windows_keep_their_tokens_and_their_start() -> None:
    before = torch.cat([torch.zeros(5, 1, dtype=torch.int64), torch.arange(1, 5 * 13 + 1).view(5, 13)], 1)
    after = shuffled(before, seed=3, step=7)
    assert (after[:, 0] == 0).all()
    assert torch.equal(after.sort(-1).values, before)
    assert (after[:, 1:] != before[:, 1:]).float().mean() > 0.7
    assert len({tuple((row[1:] - row[1:].min()).tolist()) for row in after}) == 5  # another order each
    assert torch.equal(after, shuffled(before, seed=3, step=7))
    assert not torch.equal(after, shuffled(before, seed=3, step=8))


def documents(*lengths: int) -> np.ndarray:
    """Return documents of BOS and ``length`` tokens that occur in no other document."""
    return np.concatenate([[BOS, *([1 + i] * length)] for i, length in enumerate(lengths)])


def test_a_window_is_of_the_document_that_most_of_its_tokens_come_from() -> None:
    tokens = documents(13, 2, 7, 30)  # 14, 3, 8 and 31 tokens, in windows of seven: the second has most of none
    assert documents_of(tokens, 7).tolist() == [0, 0, 2, 2, 3, 3, 3, 3]
    of_all = [np.bincount(np.cumsum(tokens == BOS)[i : i + 7] - 1).argmax() for i in range(0, 56, 7)]
    assert documents_of(tokens, 7).tolist() == of_all


def test_no_document_has_more_windows_than_the_cap_and_each_has_one_before_any_has_two() -> None:
    of = torch.tensor([0] * 23 + [1] + [2] * 5 + [3] * 2)
    chosen = balanced(of, 3)
    assert len(chosen.unique()) == len(chosen)
    assert of[chosen].bincount().tolist() == [3, 1, 3, 2]
    assert of[chosen[:4]].sort().values.tolist() == [0, 1, 2, 3]
    assert of[chosen[4:7]].sort().values.tolist() == [0, 2, 3]
    assert balanced(of, 3).equal(chosen)
    assert balanced(of, 99).sort().values.equal(torch.arange(len(of)))
    assert chosen.max() > 4  # drawn from all of a document, not from its beginning alone


def test_held_out_windows_keep_their_documents() -> None:
    held_out = HeldOut.of(documents(*[40] * 5, 300), 7, 4, 19)
    rows, of = held_out.batch(), held_out.documents
    assert len(rows) == len(of) == 19
    most = [row[1:][row[1:] != BOS].mode().values.item() - 1 for row in rows]
    assert of.tolist() == most
    assert of.bincount().max() <= 4
    assert held_out.batch(3).equal(rows[:3])
