"""Identity: the sum of all paths is the model, which is computed here by the plain recursion."""

import pytest
import torch
from torch import Tensor

from pathsum.circuits.paths import all_paths, by_order, exactness, path_circuit, path_logits, path_sum
from pathsum.core.weights import Weights
from tests import handmade

BATCH, POS, N_HEADS, D_VOCAB = 2, 7, 3, 23
EXACT = 1e-12  # float64: 2e-16 a rounding, over sums of some hundreds of terms


def recursion(weights: Weights, tokens: Tensor, patterns: list[Tensor], scales: list[Tensor]) -> Tensor:
    """Compute docs/framework.md §1.2 position by position and head by head."""
    logits = torch.zeros(*tokens.shape, weights.W_U.shape[0], dtype=torch.float64)
    for b in range(len(tokens)):
        x = [weights.W_E[:, t] for t in tokens[b]]
        for layer, heads in enumerate(weights.layers):
            read = [scales[layer][b, i] * x[i] for i in range(len(x))]
            for h, head in enumerate(heads):
                for q in range(len(x)):
                    moved = sum(patterns[layer][b, h, q, k] * read[k] for k in range(len(x)))
                    x[q] = x[q] + head.W_O @ (head.W_V @ moved)
        for i in range(len(x)):
            logits[b, i] = weights.W_U @ (scales[-1][b, i] * x[i])
    return logits


def frozen(seed: int, n_layers: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(D_VOCAB, (BATCH, POS), generator=g)
    scores = [handmade.normal(g, BATCH, N_HEADS, POS, POS).exp().tril() for _ in range(n_layers)]
    scales = [0.5 + torch.rand(BATCH, POS, generator=g, dtype=torch.float64) for _ in range(n_layers + 1)]
    return tokens, [s / s.sum(-1, keepdim=True) for s in scores], scales


@pytest.mark.parametrize("n_layers", [0, 1, 2, 3, 4])
def test_the_sum_of_all_paths_is_the_model(n_layers: int) -> None:
    weights = handmade.random_weights(seed=n_layers, n_layers=n_layers)
    tokens, patterns, scales = frozen(n_layers, n_layers)
    logits = recursion(weights, tokens, patterns, scales)
    assert exactness(path_sum(weights, tokens, patterns, scales), logits) < EXACT
    orders = by_order(weights, tokens, patterns, scales)
    assert len(orders) == n_layers + 1
    assert exactness(sum(orders), logits) < EXACT


def test_order_zero_is_the_direct_path_and_order_one_the_single_heads() -> None:
    """Guards against orders that are shifted by one (docs/framework.md §9.4)."""
    weights = handmade.random_weights(seed=7, n_layers=2)
    tokens, patterns, scales = frozen(7, 2)
    direct, single, virtual = by_order(weights, tokens, patterns, scales)
    bare = Weights(weights.W_E, weights.W_U)
    assert exactness(direct, recursion(bare, tokens, [], scales[-1:])) < EXACT
    only_first = Weights(weights.W_E, weights.W_U, weights.layers[:1])
    only_second = Weights(weights.W_E, weights.W_U, weights.layers[1:])
    first = recursion(only_first, tokens, patterns[:1], [scales[0], scales[2]]) - direct
    second = recursion(only_second, tokens, patterns[1:], [scales[1], scales[2]]) - direct
    assert exactness(single, first + second) < EXACT
    assert virtual.abs().max() > 1e-3


def test_another_batch_s_patterns_or_scales_of_ones_do_not_give_the_model() -> None:
    """Negative control: the paths do not add up to the logits (docs/framework.md §9.4)."""
    weights = handmade.random_weights(seed=11, n_layers=2)
    tokens, patterns, scales = frozen(11, 2)
    other = [pattern.flip(0) for pattern in patterns]
    logits = recursion(weights, tokens, patterns, scales)
    assert exactness(path_sum(weights, tokens, other, scales), logits) > 1e-3
    ones = [torch.ones_like(scale) for scale in scales]
    assert exactness(path_sum(weights, tokens, patterns, ones), logits) > 1e-3


@pytest.mark.parametrize(("n_layers", "n_paths"), [(0, 1), (1, 4), (2, 16), (3, 64)])
def test_a_token_reaches_the_logits_through_one_head_or_none_in_each_layer(n_layers: int, n_paths: int) -> None:
    paths = all_paths(handmade.random_weights(seed=0, n_layers=n_layers))
    assert len(paths) == len(set(paths)) == n_paths
    assert paths[0] == ()
    assert [len(p) for p in paths] == sorted(len(p) for p in paths)
    assert all(layers == sorted(set(layers)) for layers in ([layer for layer, _ in p] for p in paths))


def test_a_virtual_head_s_later_ov_stands_on_the_left() -> None:
    """In the reverse order the product is zero (docs/framework.md §9.1)."""
    weights = handmade.virtual_head(11)
    circuit = path_circuit(weights, ((0, 0), (1, 0)))
    torch.testing.assert_close(circuit.dense(), torch.eye(11, dtype=torch.float64), rtol=0, atol=0)
    for alone in [(), ((0, 0),), ((1, 0),)]:
        assert path_circuit(weights, alone).dense().abs().max() == 0


def test_a_virtual_head_s_pattern_is_the_product_of_its_heads() -> None:
    """Two heads that attend one position back attend two positions back together."""
    weights, pos = handmade.virtual_head(11), 7
    tokens = torch.tensor([[0, 3, 1, 4, 10, 5, 9]])
    back = handmade.previous_token_pattern(pos)[None, None]
    logits = path_logits(weights, ((0, 0), (1, 0)), tokens, [back, back], [torch.ones(1, pos).double()] * 3)
    assert logits.argmax(-1)[0, 2:].tolist() == tokens[0, :-2].tolist()


def test_patterns_and_scales_that_do_not_fit_the_layers_are_refused() -> None:
    zero = torch.zeros(2, 3)
    assert (exactness(zero, zero), exactness(zero + 1, zero)) == (0, float("inf"))
    weights = handmade.random_weights(seed=0, n_layers=2)
    tokens, patterns, scales = frozen(0, 2)
    with pytest.raises(ValueError, match=r"expected 2 patterns.*3 scales.*got 2 and 2"):
        path_sum(weights, tokens, patterns, scales[:-1])
    with pytest.raises(ValueError, match="layer 0 has 3 heads, but its pattern has 2"):
        path_sum(weights, tokens, [p[:, :2] for p in patterns], scales)
