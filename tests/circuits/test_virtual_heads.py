"""Virtual heads: the pattern of two heads in succession, and the loss of the model without them."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from pathsum.circuits.paths import all_paths, path_logits, path_sum
from pathsum.circuits.virtual_heads import removal_costs, virtual_patterns
from tests import handmade

D_VOCAB, POS = 11, 7
VIRTUAL = ((0, 0), (1, 0))


def test_a_virtual_head_looks_two_steps_back_through_two_previous_token_heads() -> None:
    back = handmade.previous_token_pattern(POS)
    stay = torch.eye(POS, dtype=torch.float64)
    found = virtual_patterns(torch.stack([back, stay])[None], back[None])
    torch.testing.assert_close(found[0, 0, range(2, POS), range(POS - 2)], torch.ones(POS - 2).double())
    torch.testing.assert_close(found[0, 1], back)
    torch.testing.assert_close(found.sum(-1), torch.ones(1, 2, POS).double())


def test_the_later_pattern_stands_on_the_left() -> None:
    """The late head attends one position back, and the early head to position 0. Together they attend to position 0."""
    back, rest = handmade.previous_token_pattern(POS), torch.zeros(POS, POS, dtype=torch.float64)
    rest[2, 2] = 1
    rest[[0, 1, 3, 4, 5, 6], 0] = 1
    found = virtual_patterns(rest[None, None], back[None])[0, 0]
    assert found.argmax(-1).tolist() == [0, 0, 0, 2, 0, 0, 0]


def test_the_virtual_head_alone_carries_the_model_that_is_made_of_it() -> None:
    """Text of period two, with logits ten times as large: without the virtual head, the loss is that of a uniform
    guess. No other path changes the loss."""
    weights = handmade.virtual_head(D_VOCAB)
    windows = torch.tensor([[4, 7, 4, 7, 4, 7, 4, 7], [1, 9, 1, 9, 1, 9, 1, 9]])
    patterns = [handmade.previous_token_pattern(POS).expand(2, 1, POS, POS)] * 2
    steps = torch.eye(POS, dtype=torch.float64)
    patterns[1] = steps.expand(2, 1, POS, POS)  # one step back and then none: what follows in a text of period two
    scales = [torch.ones(2, POS, dtype=torch.float64)] * 2 + [torch.full((2, POS), 10.0, dtype=torch.float64)]
    logits = path_sum(weights, windows[:, :-1], patterns, scales)
    costs = removal_costs(weights, [VIRTUAL, ((0, 0),), ((1, 0),), ()], windows, logits, patterns, scales)
    even, first = torch.log(torch.tensor(11.0)).item(), cross_entropy(logits[0, :1], windows[0, 1:2]).item()
    rest = cross_entropy(logits[0, 1:], windows[0, 2:]).item()
    assert costs[0].tolist() == pytest.approx([even - (first + 6 * rest) / 7] * 2, abs=1e-6)
    assert costs[0].min() > 0.5
    assert costs[1:].abs().max() == 0


def test_a_cost_is_the_loss_of_the_other_paths_less_that_of_all() -> None:
    weights = handmade.random_weights(seed=1, n_layers=2, n_heads=2)
    g = torch.Generator().manual_seed(2)
    windows = torch.randint(23, (3, POS + 1), generator=g)
    patterns = [handmade.normal(g, 3, 2, POS, POS).exp().tril() for _ in range(2)]
    scales = [0.5 + torch.rand(3, POS, generator=g, dtype=torch.float64) for _ in range(3)]
    inputs, paths = windows[:, :-1], all_paths(weights)
    logits = path_sum(weights, inputs, patterns, scales)
    assert removal_costs(weights, [], windows, logits, patterns, scales).shape == (0, 3)
    for path, cost in zip(paths, removal_costs(weights, paths, windows, logits, patterns, scales), strict=True):
        others = sum(path_logits(weights, p, inputs, patterns, scales) for p in paths if p != path)
        for i in range(3):
            expected = cross_entropy(others[i], windows[i, 1:]) - cross_entropy(logits[i], windows[i, 1:])
            assert cost[i].item() == pytest.approx(expected.item(), abs=1e-10)


def test_logits_of_other_windows_are_refused() -> None:
    weights = handmade.virtual_head(D_VOCAB)
    windows = torch.zeros(3, 8, dtype=torch.int64)
    with pytest.raises(ValueError, match="expected logits for 3 × 7 inputs, got 3 × 5; give the logits"):
        removal_costs(weights, [VIRTUAL], windows, torch.zeros(3, 5, D_VOCAB).double(), [], [])
