"""The paths of a model's tokens, positions and biases add up to its logits."""

from typing import Any

import pytest
import torch

from pathsum.circuits.bigram import direct_path
from pathsum.circuits.paths import constant_reads, exactness
from pathsum.circuits.score_paths import stream_paths
from pathsum.extraction import score_paths, weights_side
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.model.opened import Opened, biases, converted
from pathsum.model.transformer import Transformer
from tests.imported.models import D_VOCAB, POS, POSITIONS, some_tokens, written

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
            Opened,
            "constants",
            lambda net, pos, n=left_out: [v * (i != n) for i, v in enumerate(constants(net, pos) or [])],
        )
        assert error(whole) > 1e-3


@pytest.mark.parametrize("norm", ["LN", "RMSPre", None])
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("gone", [(), ("b_Q", "b_K"), ("b_Q", "b_K", "b_V", "b_O", "W_pos")])
def test_scores_are_sums_over_pairs_of_paths_positions_and_biases(
    norm: str | None, positions: dict[str, Any], gone: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, config = written(4, 2, normalization_type=norm, **positions)
    state = {name: 0 * t if gone and name.endswith(gone) else t for name, t in state.items()}
    found, tokens = from_transformer_lens(state, config), some_tokens()
    trace = found.trace(tokens)
    assert max(score_paths.path_pair_errors(found, trace, 1, tokens)) < 1e-10
    single = converted(found, torch.float32)
    names = ["direct", *"abc"]
    named = [*score_paths.pairs(single, single.trace(tokens), 1, stream(single, tokens), names, block=3)]
    constants = [p for p in named if "position" in (p.query, p.key)]
    assert (found.constants(POS) is None and biases(found.attention(1), 0, POS) is None) == (not constants)
    assert len({(p.head, p.query, p.key) for p in named}) == len(named)
    if constants:
        monkeypatch.setattr(score_paths, "constant_read", lambda *_: None)
        assert max(score_paths.path_pair_errors(found, trace, 1, tokens)) > 1e-3 or found.constants(POS) is None


def stream(found: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    """Return what the second layer reads of tokens, by path."""
    weights, trace = found.weights(), found.trace(tokens)
    return stream_paths(weights, 1, score_paths.paths_to(weights, 1), tokens, trace.patterns, trace.scales)


def test_the_parts_of_a_stream_add_up_to_it() -> None:
    whole = model(5, "LN", POSITIONS[1])
    trace = whole.trace(some_tokens())
    for layer in (1, 2):
        parts = dict(weights_side._parts(trace.streams[0], trace.streams[layer], trace.outputs[:layer], True))
        total = sum(part for name, part in parts.items() if "H" not in name)
        torch.testing.assert_close(total, trace.streams[layer], rtol=0, atol=EXACT)
        assert parts["biases"].abs().max() > 0.1


def test_the_direct_path_has_the_bias_of_the_unembedding() -> None:
    whole = model(6, None, POSITIONS[2], n_layers=0)
    direct = direct_path(whole.weights(), whole.b_U).dense()
    expected = whole.trace(torch.arange(D_VOCAB)[:, None]).logits[:, 0].mT
    torch.testing.assert_close(direct, expected, rtol=0, atol=EXACT)


def test_constants_are_what_the_model_reads_of_an_empty_embedding() -> None:
    """With frozen patterns and scales, by the model's own heads instead of folded weights."""
    found, tokens = model(3, "LN", POSITIONS[1]), some_tokens()
    trace, x = found.trace(tokens), torch.zeros(*tokens.shape, len(found.W_E)).double()
    x = found.joined(x, 0)
    for layer, (pattern, scale) in enumerate(zip(trace.patterns, trace.scales, strict=False)):
        heads = found.attention(layer)
        written_here = pattern @ heads.values(found.rescale(x, scale)) @ heads.W_O.mT
        x = found.joined(x + written_here.sum(1), layer + 1)
    joining = found.constants(POS)
    assert joining is not None
    *_, read = constant_reads(found.weights(), joining, trace.patterns, trace.scales)
    expected = x * trace.scales[-1][..., None]
    torch.testing.assert_close(read, expected, rtol=0, atol=EXACT)
