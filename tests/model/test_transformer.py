"""The transformer of docs/framework.md §1.2. Sizes are distinct primes where they can be; identities are in float64."""

import itertools

import pytest
import torch

from pathsum.circuits.paths import exactness, path_sum
from pathsum.config import ModelConfig
from pathsum.model.fast import attention as fast_attention
from pathsum.model.transformer import Transformer
from tests.model.built import NORMS, POS, POSITIONS, build, config, sample

EVERY = list(itertools.product(POSITIONS, NORMS, (False, True)))


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_the_fast_forward_equals_the_trace(positions: str, norm: str, smeared: bool) -> None:
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    torch.testing.assert_close(model(tokens), model.trace(tokens).logits, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_the_logits_are_the_sum_over_all_paths(positions: str, norm: str, smeared: bool) -> None:
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    trace = model.trace(tokens)
    total = path_sum(model.weights(), tokens, trace.patterns, trace.scales)
    assert exactness(total, model(tokens)) < 1e-12
    other = model.trace(tokens.flip(0))  # patterns of another batch: the exactness check must fail
    assert exactness(path_sum(model.weights(), tokens, other.patterns, other.scales), model(tokens)) > 1e-3


@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_no_token_sees_its_future(positions: str, norm: str, smeared: bool) -> None:
    """By gradient, with exact zeros: the logits at ``query`` do not depend on later embeddings."""
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    query = 4
    embedded = model.embed(tokens).detach().requires_grad_()
    model.embed = lambda _: embedded  # type: ignore[method-assign, assignment]
    model(tokens)[:, query].square().sum().backward()
    assert embedded.grad is not None
    assert (embedded.grad[:, query + 1 :] == 0).all()
    assert (embedded.grad[:, : query + 1].abs().sum(-1) > 0).all()


def test_patterns_are_causal_distributions() -> None:
    for pattern in build(config()).trace(sample()).patterns:
        torch.testing.assert_close(pattern.sum(-1), torch.ones_like(pattern[..., 0]))
        assert (pattern.triu(1) == 0).all()


def test_relative_positions_are_seen_by_scores_alone() -> None:
    """In a window of one repeated token, the residual stream is the same at all positions, whatever the pattern is."""
    model = build(config())
    logits = model(torch.full((1, POS), 3))
    torch.testing.assert_close(logits, logits[:, :1].expand_as(logits))


def test_a_relative_bias_depends_on_distance_alone() -> None:
    """Without content, the patterns of two queries in a one-layer model agree after shifting and renormalizing."""
    model = build(config(n_layers=1))
    layer = model.layers[0]
    layer.W_Q.data.zero_()  # type: ignore[union-attr, operator]
    (pattern,) = model.trace(sample()).patterns
    early, late = pattern[0, 0, 5, :6], pattern[0, 0, 7, 2:8]
    torch.testing.assert_close(early, late / late.sum())


def test_zero_layers_are_a_bigram_table() -> None:
    """Elhage et al. 2021, "Zero-Layer Transformers": the logits are W_U W_E t, whatever the context is."""
    model, tokens = build(config(n_layers=0)), sample()
    table = (model.W_U @ model.W_E).mT
    torch.testing.assert_close(model(tokens), table[tokens])


@pytest.mark.parametrize("queries", [4, 128])  # in a block: several blocks, the last one cut; a single one
@pytest.mark.parametrize(("positions", "norm", "smeared"), EVERY)
def test_the_hand_written_gradients_are_autograds(
    monkeypatch: pytest.MonkeyPatch, positions: str, norm: str, smeared: bool, queries: int
) -> None:
    monkeypatch.setattr(fast_attention, "QUERIES", queries)
    model, tokens = build(config(2, positions, norm, smeared)), sample()
    names = dict(model.named_parameters())
    fast = torch.autograd.grad(model(tokens).square().sum(), list(names.values()))
    slow = torch.autograd.grad(model.trace(tokens).logits.square().sum(), list(names.values()))
    for name, a, b in zip(names, fast, slow, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9, msg=name)


@pytest.mark.parametrize(("batch", "n_heads"), [(1, 1), (1, 3), (2, 1)])
def test_one_window_and_one_head_are_no_special_case(batch: int, n_heads: int) -> None:
    """Guards against adding scores in place to one head's bias that is expanded over windows and shares its memory."""
    cell = ModelConfig(**{**config(2, norm="rms").model_dump(), "n_heads": n_heads})
    model, tokens = build(cell), sample()[:batch]
    names = dict(model.named_parameters())
    expected = model.trace(tokens).logits
    torch.testing.assert_close(model(tokens), expected, rtol=0, atol=1e-11)
    fast = torch.autograd.grad(model(tokens).square().sum(), list(names.values()))
    slow = torch.autograd.grad(expected.square().sum(), list(names.values()))
    for name, a, b in zip(names, fast, slow, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9, msg=name)


def test_smeared_keys_mix_in_their_predecessor() -> None:
    """k_j ← σ(α) k_j + (1 − σ(α)) k_{j−1} (docs/framework.md §1.5).

    For σ(α) → 0, the score of a key is that of the key before it.
    """
    plain, smeared = build(config(1, "none")), build(config(1, "none", smeared=True))
    smeared.load_state_dict(plain.state_dict(), strict=False)
    smeared.layers[0].smear.data.fill_(-1e9)  # type: ignore[union-attr, operator]
    tokens = sample()
    shifted = torch.cat([tokens[:, :1], tokens[:, :-1]], 1)
    query = POS - 1

    def scores(model: Transformer, read: torch.Tensor) -> torch.Tensor:
        return model.trace(read).patterns[0][:, :, query].log()

    # the same query token over keys moved by one: differences of log-attention between keys agree
    shifted[:, -1] = tokens[:, -1]
    a, b = scores(smeared, tokens)[..., 2:-1], scores(plain, shifted)[..., 2:-1]
    torch.testing.assert_close(a.diff(dim=-1), b.diff(dim=-1))


def test_too_long_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected windows of at most n_ctx = 13 tokens, got 14"):
        build(config())(torch.zeros(1, 14, dtype=torch.int64))


def test_a_clamped_head_attends_to_the_previous_token_and_its_scores_get_no_gradient() -> None:
    plain = config(norm="rms")
    clamped = build(ModelConfig(**{**plain.model_dump(), "clamp": "previous_token"}))
    tokens, layer = sample(), clamped.layers[0]
    previous = clamped.trace(tokens).patterns[0].diagonal(-1, -2, -1)
    assert previous[:, 0].eq(1).all()
    assert previous[:, 1:].lt(0.99).any()
    assert build(plain).trace(tokens).patterns[0].diagonal(-1, -2, -1)[:, 0].lt(0.99).any()
    clamped(tokens).square().sum().backward()
    for scores in (layer.W_Q, layer.W_K, layer.bias):  # type: ignore[union-attr]
        assert scores.grad[0].abs().max() == 0 < scores.grad[1].abs().max()  # type: ignore[index]
    assert layer.W_V.grad[0].abs().max() > 0  # type: ignore[union-attr, index]
