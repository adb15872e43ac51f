"""What a text offers to an induction head: nothing where nothing repeats, and all of a copy where it is exact."""

import math

import numpy as np
import pytest
import torch

from pathsum.text.offer import Offer, offer
from pathsum.text.repeats import completes_a_repeat

VOCAB, N = 64, 48
CONSTANT = 1 / VOCAB  # a bigram model that knows nothing


def measured(windows: np.ndarray, weight: float = 1.0, bigram: float | np.ndarray = CONSTANT) -> Offer:
    rows = np.concatenate([np.zeros((len(windows), 1), dtype=np.int64), windows], axis=1)
    return offer(rows, np.broadcast_to(bigram, windows.shape), weight)


def copies(seed: int, count: int = 300) -> np.ndarray:
    """Return windows whose second half is the first, of distinct words."""
    rng = np.random.default_rng(seed)
    return np.stack([np.tile(rng.permutation(np.arange(1, VOCAB))[: N // 2], 2) for _ in range(count)])


def test_independent_words_offer_nothing() -> None:
    found = measured(np.random.default_rng(0).integers(1, VOCAB, (300, N)))
    assert abs(found.saving_nats) < 0.01
    assert found.reliability == pytest.approx(1 / VOCAB, abs=0.005)


def test_a_copy_offers_all_of_its_words_but_the_first() -> None:
    found, share = measured(copies(1)), (N / 2 - 1) / N
    assert found.repeated == pytest.approx(share)
    assert found.reliability == 1.0
    # without the copy, a word of the second half is one of those seen so far
    assert share * math.log(N / 2) * 0.99 < found.saving_nats < share * math.log(VOCAB)


def test_what_bigrams_know_is_not_offered_again() -> None:
    assert abs(measured(copies(1), bigram=0.999).saving_nats) < 0.01
    known = np.full((300, N), CONSTANT)
    known[:, N // 2 :] = 0.999  # of the second half only: of the copy
    assert abs(measured(copies(1), bigram=known).saving_nats) < 0.05
    known[:, : N // 2], known[:, N // 2 :] = 0.999, CONSTANT
    assert measured(copies(1), bigram=known).saving_nats > 1


def test_with_all_weight_on_repeats_the_saving_is_that_of_a_repeat() -> None:
    windows = np.concatenate([copies(5), np.random.default_rng(6).integers(1, VOCAB, (300, N))])
    led = measured(windows, 1e6).saving_nats
    assert math.log(N / 2) * 0.5 < led < math.log(VOCAB)


def test_half_of_the_followers_right_is_a_reliability_of_a_half() -> None:
    # 1 is followed by 2, then by 3 (0 of 1 right), then by 2 (1 of 2 right); 9 to 12 do not repeat
    found = measured(np.array([[1, 2, 9, 1, 3, 10, 1, 2, 11]]))
    assert found.reliability == pytest.approx((0 + 1 / 2 + 0) / 3)  # 2 occurs again, and 9 does not follow
    assert found.repeated == pytest.approx(1 / 9)


def test_repeated_pairs_are_those_that_training_gives_a_weight() -> None:
    windows = np.random.default_rng(2).integers(1, 20, (50, N))
    rows = torch.from_numpy(np.concatenate([np.zeros((50, 1), dtype=np.int64), windows], axis=1))
    assert measured(windows).repeated == pytest.approx(completes_a_repeat(rows).float().mean().item(), abs=0.003)


def test_a_weight_on_repeats_raises_what_they_save_per_token() -> None:
    mixed = np.concatenate([copies(3), np.random.default_rng(4).integers(1, VOCAB, (300, N))])
    plain, led = measured(mixed), measured(mixed, 5.0)
    assert led.saving_nats > 1.5 * plain.saving_nats
    assert (led.repeated, led.reliability) == (plain.repeated, plain.reliability)
