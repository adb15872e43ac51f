"""Folded weights give the logits of the model with its norms, by torch's LayerNorm and RMSNorm."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pathsum.circuits.folding import centre, fold_gains
from pathsum.circuits.paths import exactness, path_sum
from pathsum.core.weights import Weights
from tests import handmade

D_VOCAB, D_MODEL, BATCH, POS = 23, 13, 3, 7
EXACT = 1e-12  # float64: 2e-16 a rounding, over sums of some hundreds of terms
EPS = torch.finfo(torch.float64).eps

Norm = Callable[[Tensor, Tensor], Tensor]


def layer_norm(x: Tensor, gain: Tensor) -> Tensor:
    return F.layer_norm(x, (D_MODEL,), gain, eps=EPS)


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, (D_MODEL,), gain, eps=EPS)


def with_norms(weights: Weights, gains: list[Tensor], tokens: Tensor, norm: Norm) -> tuple[Tensor, list, list]:
    """Return logits, patterns and scales of a model whose norms are not folded."""
    x, patterns, scales = weights.W_E.mT[tokens], [], []
    for heads, gain in zip(weights.layers, gains, strict=False):
        read = norm(x, gain)
        scales.append(scale(x, norm))
        patterns.append(torch.stack([handmade.content_pattern(h, read) for h in heads], 1))
        x = x + sum(patterns[-1][:, i] @ read @ h.W_OV.dense().mT for i, h in enumerate(heads))
    return norm(x, gains[-1]) @ weights.W_U.mT, patterns, [*scales, scale(x, norm)]


def scale(x: Tensor, norm: Norm) -> Tensor:
    centred = x - x.mean(-1, keepdim=True) if norm is layer_norm else x
    return (centred.square().mean(-1) + EPS).rsqrt()


def model(seed: int) -> tuple[Weights, list[Tensor], Tensor]:
    g = torch.Generator().manual_seed(seed)
    gains = [0.5 + torch.rand(D_MODEL, generator=g, dtype=torch.float64) for _ in range(3)]
    return handmade.random_weights(seed, n_layers=2), gains, torch.randint(D_VOCAB, (BATCH, POS), generator=g)


def error(folded: Weights, norm: Norm) -> float:
    weights, gains, tokens = model(1)
    logits, patterns, scales = with_norms(weights, gains, tokens, norm)
    return exactness(path_sum(folded, tokens, patterns, scales), logits)


def test_gain_first_and_centring_second_give_the_logits_of_layer_norm_and_gains_alone_those_of_rms_norm() -> None:
    """Negative control: centering before the gain (docs/framework.md §9.2), or one of the two alone, does not."""
    weights, gains, _ = model(1)
    assert error(centre(fold_gains(weights, gains)), layer_norm) < EXACT
    assert error(fold_gains(weights, gains), rms_norm) < EXACT
    assert error(centre(fold_gains(weights, gains)), rms_norm) > 0.05
    for wrong in (fold_gains(centre(weights), gains), fold_gains(weights, gains), centre(weights), weights):
        assert error(wrong, layer_norm) > 0.05


def test_the_folded_patterns_are_those_of_the_norms() -> None:
    """The first layer's scores are those of the scaled embeddings."""
    weights, gains, tokens = model(2)
    _, patterns, scales = with_norms(weights, gains, tokens, layer_norm)
    scaled = scales[0].unsqueeze(-1) * weights.W_E.mT[tokens]
    for h, head in enumerate(centre(fold_gains(weights, gains)).layers[0]):
        torch.testing.assert_close(handmade.content_pattern(head, scaled), patterns[0][:, h], rtol=0, atol=EXACT)

    with pytest.raises(ValueError, match="expected 3 gains, one per layer and one of the final norm, got 2"):
        fold_gains(weights, gains[:-1])
