"""The loss on the second copy of repeated random tokens, compared with a uniform guess."""

import math

import pytest
import torch
from torch import Tensor

from pathsum.behavior.induction import repeat_losses
from pathsum.behavior.repeats import guessing_nats, second_copy_top1
from pathsum.text.repeated import repeated_random

D_VOCAB, N_CTX = 23, 31
DRAWN = torch.ones(D_VOCAB)
DRAWN[[0, 5, 7]] = torch.tensor([4.0, 0.0, 0.0])  # BOS is common and never drawn; two tokens never occur


def copies() -> tuple[Tensor, int]:
    return repeated_random(13, N_CTX, D_VOCAB, torch.Generator().manual_seed(0), DRAWN)


def test_guessing_among_the_tokens_that_are_drawn_costs_the_log_of_their_number() -> None:
    tokens, block = copies()
    flat = torch.full((13, tokens.shape[1], D_VOCAB), -math.inf).index_fill(2, DRAWN[1:].nonzero()[:, 0] + 1, 0.0)
    assert guessing_nats(DRAWN) == pytest.approx(math.log(20))
    assert repeat_losses(flat, tokens, block).second_nats == pytest.approx(guessing_nats(DRAWN), abs=1e-6)


def test_a_model_that_only_stops_being_wrong_gains_nothing_over_guessing() -> None:
    """Guards against counting a gain where the first copy costs more than guessing and the second as much as
    guessing."""
    tokens, block = copies()
    logits = torch.zeros(13, tokens.shape[1], D_VOCAB)
    sure = torch.arange(tokens.shape[1]) <= block
    logits[:, sure, 5] = 9.0  # of a token that never occurs
    found = repeat_losses(logits, tokens, block)
    assert found.first_nats - found.second_nats > 1
    assert guessing_nats(DRAWN) - found.second_nats < 0


def test_top1_counts_the_positions_whose_next_token_stood_before() -> None:
    tokens, block = copies()
    logits = torch.zeros(13, tokens.shape[1], D_VOCAB)
    logits[:, :-1].scatter_(2, tokens[:, 1:, None], 1.0)
    assert second_copy_top1(logits, tokens, block) == 1
    spoilt = logits.clone()
    spoilt[:, : block + 1], spoilt[:, -1] = 0, 0  # the first copy, the second's first token, and what comes after
    assert second_copy_top1(spoilt, tokens, block) == 1
    spoilt[:, block + 1] = 0
    assert second_copy_top1(spoilt, tokens, block) == pytest.approx(1 - 1 / (block - 1), abs=1e-12)
    assert second_copy_top1(-logits, tokens, block) == 0
