"""Softmax competition: a higher score lowers all other keys alike, so a one-layer head cannot prefer the token after a
match."""

import pytest
import torch

from pathsum.behavior.softmax_competition import inhibition, preference
from tests.handmade import (
    content_pattern,
    induction_pair,
    previous_token_pattern,
    repeated_tokens,
    skip_trigram_head,
    uniform_pattern,
)

BLOCK, D_VOCAB, DTYPE = 23, 47, torch.float64


@pytest.mark.parametrize("raised", [-3.0, 0.0, 0.7, 5.0])
def test_raising_one_score_lowers_every_other_key_alike(raised: float) -> None:
    scores = 3 * torch.randn(7, 13, generator=torch.Generator().manual_seed(1), dtype=DTYPE)
    more = scores.clone()
    more[:, 4] += raised
    change = more.log_softmax(-1) - scores.log_softmax(-1)
    others = [k for k in range(13) if k != 4]
    expected = inhibition(scores.softmax(-1)[:, 4], raised)
    torch.testing.assert_close(change[:, others], expected[:, None].expand(-1, 12))
    torch.testing.assert_close(change[:, 4], expected + raised)  # the one key that gains


def one_layer(tokens: torch.Tensor) -> torch.Tensor:
    """Return a head that attends to equal tokens, the strongest match that is possible in one layer."""
    same = skip_trigram_head(5 * torch.eye(D_VOCAB, dtype=DTYPE), torch.eye(D_VOCAB, dtype=DTYPE))
    return content_pattern(same.layers[0][0], same.W_E.mT[tokens])


def two_layers(tokens: torch.Tensor) -> torch.Tensor:
    """Return the hand-made induction head."""
    weights = induction_pair(D_VOCAB, strength=5.0)
    x, previous = weights.W_E.mT[tokens], weights.layers[0][0]
    moved = previous_token_pattern(tokens.shape[1]) @ x @ previous.W_OV.dense().mT
    return content_pattern(weights.layers[1][0], x + moved)


def test_one_layer_prefers_the_match_and_two_layers_the_token_after_it_by_their_score() -> None:
    tokens = repeated_tokens(2, 5, D_VOCAB, BLOCK)
    for pattern, preferred in ((one_layer(tokens)[:, None], 0), (two_layers(tokens)[:, None], 1)):
        assert preference(pattern, BLOCK, preferred).min() == pytest.approx(5.0)
        for offset in {-1, 0, 1} - {preferred}:
            assert preference(pattern, BLOCK, offset).abs().max() < 1e-9
    other = torch.cat([tokens[:, : BLOCK + 1], tokens[:, BLOCK + 1 :].roll(1, 0)], 1)
    assert preference(two_layers(other)[:, None], BLOCK, 1).abs().max() < 1.0  # accidental matches alone


def test_uniform_attention_prefers_nothing_and_a_short_block_is_refused() -> None:
    assert preference(uniform_pattern(1 + 2 * BLOCK)[None, None], BLOCK, 1).abs().max() < 1e-9
    with pytest.raises(ValueError, match="expected BOS and a block of 11 tokens or more twice"):
        preference(uniform_pattern(15)[None, None], 7, 1)
