"""A head's scores are a sum over pairs of paths. The model is computed here by the plain recursion."""

import pytest
import torch
from torch import Tensor

from pathsum.circuits.paths import Path, all_paths, exactness
from pathsum.circuits.score_paths import (
    contrasted,
    preference_contrast,
    score_sum,
    stream_paths,
    variance_contrast,
)
from pathsum.core.weights import Head, Weights
from tests import handmade

D_VOCAB, BLOCK, BATCH = 23, 11, 3
POS = 1 + 2 * BLOCK
EXACT = 1e-12  # float64: 2e-16 a rounding, over sums of some hundreds of terms
PREFERENCE = preference_contrast(BLOCK).double()


def frozen(seed: int, n_layers: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    g = torch.Generator().manual_seed(seed)
    raw = [handmade.normal(g, BATCH, 3, POS, POS).exp().tril() for _ in range(n_layers)]
    scales = [0.5 + torch.rand(BATCH, POS, generator=g, dtype=torch.float64) for _ in range(n_layers + 1)]
    return torch.randint(D_VOCAB, (BATCH, POS), generator=g), [p / p.sum(-1, keepdim=True) for p in raw], scales


def below(weights: Weights, layer: int) -> list[Path]:
    return all_paths(Weights(weights.W_E, weights.W_U, weights.layers[:layer]))


def sides(head: Head, parts: Tensor) -> tuple[Tensor, Tensor]:
    return parts @ head.W_QK.left, parts @ head.W_QK.right.mT


def favoured(head: Head, parts: Tensor) -> Tensor:
    """Return the mean preference of each pair of paths, query side × key side."""
    return contrasted(*sides(head, parts), PREFERENCE.expand(parts.shape[1], -1, -1)).mean(-1)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_pairs_of_paths_add_up_to_the_scores_of_the_residual_stream(layer: int) -> None:
    """The stream is the recursion of docs/framework.md §1.2. Before the third layer there are paths of order 2."""
    weights = handmade.random_weights(seed=layer, n_layers=3)
    tokens, patterns, scales = frozen(layer, 3)
    x = weights.W_E.mT[tokens]
    for heads, pattern, scale in zip(weights.layers[:layer], patterns, scales, strict=False):
        read = scale.unsqueeze(-1) * x
        x = x + sum(pattern[:, h] @ read @ head.W_OV.dense().mT for h, head in enumerate(heads))
    read, head = scales[layer].unsqueeze(-1) * x, weights.layers[layer][1]
    bias = handmade.normal(torch.Generator().manual_seed(layer), POS)
    scores = read @ head.W_QK.dense() @ read.mT
    for q in range(POS):
        for k in range(q + 1):
            scores[:, q, k] += bias[q - k]
    parts = stream_paths(weights, layer, below(weights, layer), tokens, patterns, scales)
    assert len(parts) == 4**layer
    assert exactness(score_sum(*sides(head, parts), bias).tril(), scores.tril()) < EXACT


def test_a_pair_left_out_and_scales_left_out_are_noticed() -> None:
    """Negative control."""
    weights = handmade.random_weights(seed=3, n_layers=2)
    tokens, patterns, scales = frozen(3, 2)
    none, head = torch.zeros(POS, dtype=torch.float64), weights.layers[1][0]
    parts = stream_paths(weights, 1, below(weights, 1), tokens, patterns, scales)
    queries, keys = sides(head, parts)
    whole = score_sum(queries, keys, none)
    for left_out in range(4):
        assert exactness(whole - queries[left_out] @ keys[1].mT, whole) > 1e-3
    unscaled = stream_paths(weights, 1, below(weights, 1), tokens, patterns, [torch.ones_like(s) for s in scales])
    assert exactness(score_sum(*sides(head, unscaled), none), whole) > 0.1


def test_a_contrast_of_the_scores_is_the_sum_over_pairs() -> None:
    weights = handmade.random_weights(seed=4, n_layers=2)
    parts = stream_paths(weights, 1, below(weights, 1), *frozen(4, 2))
    queries, keys = sides(weights.layers[1][2], parts)
    contrast = handmade.normal(torch.Generator().manual_seed(4), BATCH, POS, POS)
    pairs = contrasted(queries, keys, contrast)
    scores = score_sum(queries, keys, torch.zeros(POS, dtype=torch.float64))
    torch.testing.assert_close(pairs.sum((0, 1)), (contrast * scores).sum((1, 2)), rtol=0, atol=1e-10)
    torch.testing.assert_close(pairs[3, 1], (contrast * (queries[3] @ keys[1].mT)).sum((1, 2)), rtol=0, atol=1e-10)


def test_an_induction_pair_s_preference_is_all_k_composition() -> None:
    """Calibration: 30 nats at the one key whose previous token is the current token, and 0 at all others."""
    weights, tokens = handmade.induction_pair(D_VOCAB), handmade.repeated_tokens(5, BATCH, D_VOCAB, BLOCK)
    patterns = [handmade.previous_token_pattern(POS).expand(BATCH, 1, POS, POS)]
    parts = stream_paths(weights, 1, below(weights, 1), tokens, patterns, [torch.ones(BATCH, POS).double()] * 2)
    n_keys = torch.arange(BLOCK + 2, POS + 1, dtype=torch.float64)  # of each query in the second copy
    expected = torch.tensor([[0, (30 - 30 / n_keys).mean()], [0, 0]], dtype=torch.float64)
    torch.testing.assert_close(favoured(weights.layers[1][0], parts), expected, rtol=0, atol=1e-5)


def test_pointer_arithmetic_s_preference_is_all_q_composition() -> None:
    """The same behavior by Q-composition: pairs of paths distinguish the two mechanisms."""
    weights, added = handmade.pointer_pair(POS)
    direct = weights.W_E.mT[handmade.repeated_tokens(6, BATCH, POS, BLOCK)] + added
    composed = handmade.same_token_pattern(BLOCK) @ direct @ weights.layers[0][0].W_OV.dense().mT
    queries, keys = sides(weights.layers[1][0], torch.stack([direct, composed]))
    pairs = favoured(weights.layers[1][0], torch.stack([direct, composed]))
    assert pairs[1, 0] > 25
    assert pairs[0].abs().max() == pairs[1, 1] == 0
    shares = contrasted(queries, keys, variance_contrast((queries.sum(0) @ keys.sum(0).mT), BLOCK + 1)).mean(-1)
    torch.testing.assert_close(shares, torch.tensor([[0, 0], [1, 0]]).double(), rtol=0, atol=EXACT)


def test_random_heads_favour_no_key() -> None:
    """Negative control, in standard deviations of scores over keys. An induction pair has more than 3."""
    weights, tokens = handmade.random_weights(seed=7, n_layers=2), handmade.repeated_tokens(7, 101, D_VOCAB, BLOCK)
    patterns = [handmade.uniform_pattern(POS).expand(101, 3, POS, POS)]
    parts = stream_paths(weights, 1, below(weights, 1), tokens, patterns, [torch.ones(101, POS).double()] * 2)
    queries, keys = sides(weights.layers[1][0], parts)
    spread = (queries.sum(0) @ keys.sum(0).mT).std(-1).mean()
    assert favoured(weights.layers[1][0], parts).sum().abs() < 0.1 * spread


def test_contrasts_see_nothing_that_softmax_does_not() -> None:
    """Neither a constant added to all scores of a query nor future keys change a contrast."""
    g = torch.Generator().manual_seed(8)
    scores = handmade.normal(g, BATCH, POS, POS)
    hidden = scores + handmade.normal(g, BATCH, POS, 1) + 100 * torch.ones(POS, POS).triu(1)
    for contrast in (PREFERENCE.expand(BATCH, -1, -1), variance_contrast(scores, 2)):
        torch.testing.assert_close((contrast * hidden).sum((1, 2)), (contrast * scores).sum((1, 2)))
    torch.testing.assert_close(variance_contrast(hidden, 2), variance_contrast(scores, 2))


def test_the_preference_is_the_score_of_the_right_key_above_the_mean_key() -> None:
    """Computed query by query."""
    scores = handmade.normal(torch.Generator().manual_seed(9), POS, POS)
    above = [scores[p, p - BLOCK + 1] - scores[p, : p + 1].mean() for p in range(BLOCK + 1, 2 * BLOCK + 1)]
    assert (PREFERENCE * scores).sum().item() == pytest.approx(torch.stack(above).mean().item(), abs=1e-6)


def test_a_share_is_a_covariance_over_the_keys_that_a_query_sees() -> None:
    """Computed with torch.cov for the last query alone. The share of the scores themselves is 1."""
    term, rest = handmade.normal(torch.Generator().manual_seed(10), 2, 1, POS, POS)
    contrast = variance_contrast(term + rest, POS - 1)
    covariance = torch.cov(torch.stack([term[0, -1], (term + rest)[0, -1]]))
    share = (covariance[0, 1] / covariance[1, 1]).item()
    assert (contrast * term).sum().item() == pytest.approx(share, rel=1e-12)
    assert (contrast * (term + rest)).sum().item() == pytest.approx(1, rel=1e-12)
    assert variance_contrast(torch.ones(2, POS, POS), 1).abs().max() == 0


def test_paths_beyond_the_layer_and_missing_scales_are_refused() -> None:
    weights = handmade.random_weights(seed=0, n_layers=2)
    tokens, patterns, scales = frozen(0, 2)
    with pytest.raises(ValueError, match=r"expected paths through layers below 1, got \(\(1, 2\),\)"):
        stream_paths(weights, 1, [(), ((1, 2),)], tokens, patterns, scales)
    with pytest.raises(ValueError, match="expected a scale for each layer up to 1, got 1"):
        stream_paths(weights, 1, [()], tokens, patterns, scales[:1])
