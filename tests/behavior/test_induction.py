"""Measures of induction on repeated random tokens."""

import math

import pytest
import torch
from torch import Tensor

from pathsum.behavior.induction import check_repeated, copying, prefix_matching, repeat_losses
from tests import handmade

D_VOCAB, BLOCK, BATCH = 23, 11, 5
POS = 1 + 2 * BLOCK


def induction_run(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return tokens, patterns, outputs and logits of the hand-made previous-token head and induction head."""
    weights = handmade.induction_pair(D_VOCAB)
    (early,), (late,) = weights.layers
    tokens = handmade.repeated_tokens(seed, BATCH, D_VOCAB, BLOCK)
    x = weights.W_E.mT[tokens]
    first = handmade.previous_token_pattern(POS).expand(BATCH, POS, POS)
    first_output = first @ x @ early.W_OV.dense().mT
    x = x + first_output
    second = handmade.content_pattern(late, x)
    second_output = second @ x @ late.W_OV.dense().mT
    logits = 20 * (second_output @ weights.W_U.mT)
    return tokens, torch.stack([first, second], 1), torch.stack([first_output, second_output], 1), logits


def test_the_induction_head_finds_and_copies_what_came_next_and_the_previous_token_head_does_not() -> None:
    """Calibration: the matching key has 30 nats more than at most 22 other keys. The loss on the second copy is that of
    20 logits against 22 other tokens. On the first copy induction has no effect."""
    tokens, patterns, outputs, logits = induction_run()
    score = prefix_matching(patterns, BLOCK)
    assert score[1].item() == pytest.approx(1, abs=POS * math.exp(-30))
    assert score[0] == 0
    W_U = handmade.induction_pair(D_VOCAB).W_U
    assert copying(outputs, tokens, W_U, BLOCK).tolist() == [0, 1]
    assert copying(-outputs, tokens, W_U, BLOCK).tolist() == [0, -1]
    losses = repeat_losses(logits, tokens, BLOCK)
    assert losses.second_nats == pytest.approx(22 * math.exp(-20), rel=1e-3)
    assert losses.first_nats > math.log(D_VOCAB)
    even = repeat_losses(torch.zeros(BATCH, POS, D_VOCAB), tokens, BLOCK)
    assert (even.first_nats, even.second_nats) == pytest.approx((math.log(D_VOCAB),) * 2, rel=1e-6)


def test_prefix_matching_reads_the_key_after_the_first_occurrence() -> None:
    """Identity: the earlier occurrence is searched for by token. This also shows that no key is BOS."""
    tokens = handmade.repeated_tokens(3, BATCH, D_VOCAB, BLOCK)
    pattern = torch.rand(BATCH, 2, POS, POS, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    cells, keys = [], set()
    for b in range(BATCH):
        for p in range(BLOCK + 1, 2 * BLOCK + 1):
            key = tokens[b].tolist().index(tokens[b, p].item()) + 1
            keys.add(key)
            cells.append(pattern[b, :, p, key])
    torch.testing.assert_close(prefix_matching(pattern, BLOCK), torch.stack(cells).mean(0), rtol=0, atol=1e-12)
    assert keys == set(range(2, BLOCK + 2))


def test_copying_is_the_share_of_next_tokens_raised_above_the_mean() -> None:
    """Identity, with all logits computed in full."""
    g = torch.Generator().manual_seed(6)
    tokens = handmade.repeated_tokens(7, BATCH, D_VOCAB, BLOCK)
    output, W_U = handmade.normal(g, BATCH, 3, POS, 13), handmade.normal(g, D_VOCAB, 13)
    logits = output @ W_U.mT
    centred = logits - logits.mean(-1, keepdim=True)
    signs = [
        [math.copysign(1, centred[b, h, p, tokens[b, p + 1]].item()) for b in range(BATCH) for p in range(12, 22)]
        for h in range(3)
    ]
    expected = [sum(s) / len(s) for s in signs]
    assert copying(output, tokens, W_U, BLOCK).tolist() == pytest.approx(expected, abs=1e-12)


def test_an_output_that_knows_nothing_of_the_token_copies_neither_way() -> None:
    """Negative control: 101 windows of 10 tokens, within 4 standard errors of 0."""
    g = torch.Generator().manual_seed(8)
    tokens = handmade.repeated_tokens(9, 101, D_VOCAB, BLOCK)
    output, W_U = handmade.normal(g, 101, 2, POS, 13), handmade.normal(g, D_VOCAB, 13)
    assert copying(output, tokens, W_U, BLOCK).abs().max() < 4 / math.sqrt(1010)


def test_the_second_copy_s_first_token_counts_in_neither_loss() -> None:
    """It cannot be predicted. A model that is wrong only there has the same losses."""
    tokens = handmade.repeated_tokens(1, BATCH, D_VOCAB, BLOCK)
    right = torch.nn.functional.one_hot(tokens[:, 1:], D_VOCAB).double()
    logits = 50 * torch.cat([right, right[:, :1]], 1)
    logits[:, BLOCK] *= -1
    losses = repeat_losses(logits, tokens, BLOCK)
    assert max(losses.first_nats, losses.second_nats) < 1e-12
    for p, name in [(0, "first_nats"), (BLOCK - 1, "first_nats"), (BLOCK + 1, "second_nats"), (POS - 2, "second_nats")]:
        worse = logits.clone()
        worse[:, p] *= -1
        assert getattr(repeat_losses(worse, tokens, BLOCK), name) > 1


def test_a_beginning_of_sequence_in_one_copy_or_inside_a_block_is_refused() -> None:
    """BOS in one copy only breaks the repetition, and BOS inside a block is not a random token (docs/framework.md
    §9.7)."""
    tokens = handmade.repeated_tokens(2, BATCH, D_VOCAB, BLOCK)
    check_repeated(tokens, BLOCK)
    one = tokens.clone()
    one[:, BLOCK + 1] = 0
    with pytest.raises(ValueError, match="expected the same block twice"):
        check_repeated(one, BLOCK)
    both = one.clone()
    both[:, 1] = 0
    with pytest.raises(ValueError, match="at position 0 only, got another there or one inside a block"):
        check_repeated(both, BLOCK)


def test_a_window_of_another_length_is_refused() -> None:
    tokens = handmade.repeated_tokens(2, BATCH, D_VOCAB, BLOCK)
    for refused in (
        lambda: prefix_matching(torch.ones(1, 1, POS, POS), BLOCK - 1),
        lambda: copying(torch.ones(BATCH, 1, POS, 3), tokens, torch.ones(D_VOCAB, 3), BLOCK + 1),
        lambda: repeat_losses(torch.ones(BATCH, POS, D_VOCAB), tokens, 1),
    ):
        with pytest.raises(ValueError, match=r"1 \+ 2·block positions, got 23"):
            refused()


def test_a_constant_output_seems_to_copy_where_logits_are_skewed_and_no_more_than_by_other_windows() -> None:
    """Shows why the chance level of copying is measured: if mean and median of the logits differ, the mean sign is not
    0."""
    tokens = handmade.repeated_tokens(seed=5, batch=61, d_vocab=43, block=17)
    W_U = -torch.rand(43, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64).pow(6)
    constant = torch.ones(len(tokens), 1, tokens.shape[1], 1, dtype=torch.float64)
    own, others = (copying(constant, t, W_U, 17).item() for t in (tokens, tokens.roll(1, 0)))
    assert own > 0.3
    assert own == pytest.approx(others, abs=1e-9)  # rolled windows hold the same tokens, in another order
