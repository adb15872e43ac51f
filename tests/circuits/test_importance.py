"""The loss reduction by a term: known where one term makes the whole prediction, and 0 where a term predicts
nothing."""

import math

import torch

from pathsum.circuits.importance import importance, window_losses
from pathsum.circuits.paths import by_order, path_logits
from tests import handmade

BATCH, POS, D_VOCAB = 3, 7, 23


def sample() -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(1)
    return handmade.normal(g, BATCH, POS, D_VOCAB), torch.randint(D_VOCAB, (BATCH, POS), generator=g)


def test_orders_added_one_by_one_tell_the_whole_fall_of_the_loss() -> None:
    """Σ added_first = log d_vocab − loss: each order is added to exactly those below it (docs/framework.md §9.4)."""
    orders = [sample()[0], *(handmade.normal(torch.Generator().manual_seed(s), BATCH, POS, D_VOCAB) for s in (2, 3))]
    targets, everything = sample()[1], sum(orders)
    lower = [torch.zeros_like(orders[0]), orders[0], orders[0] + orders[1]]
    found = [importance(term, below, everything, targets) for term, below in zip(orders, lower, strict=True)]
    fall = math.log(D_VOCAB) - window_losses(everything, targets)
    torch.testing.assert_close(sum(i.added_first for i in found), fall)
    torch.testing.assert_close(found[-1].added_first, found[-1].removed_last)  # nothing lies above the last


def test_a_term_that_says_nothing_is_worth_nothing() -> None:
    logits, targets = sample()
    level = torch.full_like(logits, 2.0)  # the same for every token, which a softmax does not see
    found = importance(level, logits, logits, targets)
    assert found.added_first.abs().max() < 1e-12
    assert found.removed_last.abs().max() < 1e-12


def test_two_terms_that_say_the_same_are_worth_more_first_than_last() -> None:
    targets = sample()[1]
    right = 5 * torch.nn.functional.one_hot(targets, D_VOCAB).double()
    found = importance(right, 0 * right, 2 * right, targets)
    rest = math.log(1 + (D_VOCAB - 1) * math.exp(-5))
    torch.testing.assert_close(found.added_first, torch.full((BATCH,), math.log(D_VOCAB) - rest).double())
    assert (found.removed_last < 0.05 * found.added_first).all()


def test_a_virtual_head_that_does_all_is_all_of_the_second_order() -> None:
    weights, pos = handmade.virtual_head(11), 7
    tokens = torch.tensor([[0, 3, 1, 4, 10, 5, 9], [0, 2, 6, 8, 7, 1, 3]])
    back = handmade.previous_token_pattern(pos).expand(2, 1, -1, -1)
    frozen = ([back, back], [torch.ones(2, pos).double()] * 3)
    direct, single, virtual = by_order(weights, tokens, *frozen)
    targets = tokens.roll(2, -1)
    below = direct + single
    found = importance(virtual, below, below + virtual, targets)
    assert (found.added_first > 0.5).all()
    alone = path_logits(weights, ((0, 0),), tokens, *frozen)
    assert importance(alone, direct, below + virtual, targets).added_first.abs().max() < 1e-12
