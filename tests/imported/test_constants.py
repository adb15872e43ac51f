"""The paths of a model's tokens, positions and biases add up to its logits."""

from typing import Any

import pytest
import torch

from pathsum.circuits.paths import constant_reads, exactness
from pathsum.extraction import score_paths
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.model.opened import Opened
from tests.imported.models import POS, POSITIONS, some_tokens, written

EXACT = 1e-12


def model(seed: int, norm: str | None, positions: dict[str, Any], n_layers: int = 2) -> Opened:
    return from_transformer_lens(*written(seed, n_layers, normalization_type=norm, **positions))


def error(found: Opened) -> float:
    tokens, trace = some_tokens(), found.trace(some_tokens())
    return exactness(score_paths.logits_by_paths(found, tokens, trace), found(tokens))


@pytest.mark.parametrize("most", [10_000, 1])
@pytest.mark.parametrize("n_layers", [0, 1, 3])
@pytest.mark.parametrize("norm", ["LN", "RMS", None])
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_paths_of_tokens_positions_and_biases_are_the_model(
    n_layers: int, norm: str | None, positions: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Path by path and, with more paths than ``most``, layer by layer."""
    monkeypatch.setattr(score_paths, "MOST_PATHS", most)
    assert error(model(1, norm, positions, n_layers)) < EXACT


def test_a_constant_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without position vectors or without the biases of a layer, the sum clearly differs."""
    whole, constants = model(2, "LN", POSITIONS[1]), Opened.constants
    for left_out in range(3):
        monkeypatch.setattr(
            Opened, "constants", lambda net, pos, n=left_out: [v * (i != n) for i, v in enumerate(constants(net, pos))]
        )
        assert error(whole) > 1e-3


def test_constants_are_what_the_model_reads_of_an_empty_embedding() -> None:
    """With frozen patterns and scales, by the model's own heads instead of folded weights."""
    found, tokens = model(3, "LN", POSITIONS[1]), some_tokens()
    trace, x = found.trace(tokens), torch.zeros(*tokens.shape, len(found.W_E)).double()
    x = found.joined(x, 0)
    for layer, (pattern, scale) in enumerate(zip(trace.patterns, trace.scales, strict=False)):
        heads = found.attention(layer)
        written_here = pattern @ heads.values(found.rescale(x, scale)) @ heads.W_O.mT
        x = found.joined(x + written_here.sum(1), layer + 1)
    *_, read = constant_reads(found.weights(), found.constants(POS), trace.patterns, trace.scales)
    expected = x * trace.scales[-1][..., None]
    torch.testing.assert_close(read, expected, rtol=0, atol=EXACT)
