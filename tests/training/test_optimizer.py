"""Muon's update, the parameter groups, and the schedule."""

import pytest
import torch

from pathsum.config import ModelConfig, TrainConfig
from pathsum.model.transformer import Transformer
from pathsum.training.optimizer import Muon, optimizers, orthogonalize, rate, set_rate
from tests.training.small import MODEL, TRAIN


def test_an_orthogonalised_update_moves_every_direction_about_equally() -> None:
    G = torch.randn(3, 29, 29, generator=torch.Generator().manual_seed(0))
    before, after = torch.linalg.svdvals(G), torch.linalg.svdvals(orthogonalize(G))
    assert before.max() / before.quantile(0.1) > 5
    assert after.quantile(0.1) > 0.6
    assert after.max() < 1.3


def test_orthogonalising_keeps_the_singular_vectors() -> None:
    U, S, Vh = torch.linalg.svd(torch.randn(7, 7, generator=torch.Generator().manual_seed(1)))
    core = U.mT @ orthogonalize(U @ torch.diag(S + 1) @ Vh) @ Vh.mT
    assert (core - torch.diag(core.diagonal())).abs().max() < 0.05


def test_muon_treats_the_heads_of_a_matrix_together_and_W_O_as_its_transpose() -> None:
    """Heads of W_V (d_head × d_model) and of W_O (d_model × d_head) with transposed gradients get the same update."""
    g = torch.Generator().manual_seed(2)
    grad = torch.randn(3, 5, 15, generator=g)
    W_V, W_O = torch.zeros(3, 5, 15, requires_grad=True), torch.zeros(3, 15, 5, requires_grad=True)
    W_V.grad, W_O.grad = grad.clone(), grad.mT.clone()
    Muon([W_V, W_O], lr=0.1, momentum=0.9, weight_decay=0.0).step()
    torch.testing.assert_close(W_V, W_O.mT)
    gram = W_V.detach().flatten(0, 1) @ W_V.detach().flatten(0, 1).mT / 0.01
    assert (gram - torch.diag(gram.diagonal())).abs().max() < 0.25  # all heads' rows orthogonal to one another
    assert gram.diagonal().min() > 0.4


def test_matrices_that_are_orthogonalised_together_keep_their_own_updates() -> None:
    g = torch.Generator().manual_seed(3)
    weights = [torch.zeros(2, 4, 12, requires_grad=True) for _ in range(3)]
    for W in weights:
        W.grad = torch.randn(2, 4, 12, generator=g)
    Muon(weights, lr=1.0, momentum=0.0, weight_decay=0.0).step()
    for W in weights:
        assert W.grad is not None
        torch.testing.assert_close(-W.detach().flatten(0, 1), orthogonalize(W.grad.flatten(0, 1)[None])[0])


def test_weight_decay_shrinks_what_the_gradient_leaves_alone() -> None:
    W = torch.ones(2, 3, 6, requires_grad=True)
    W.grad = torch.zeros_like(W)
    Muon([W], lr=0.1, momentum=0.9, weight_decay=0.5).step()
    torch.testing.assert_close(W.detach(), torch.full_like(W, 0.95))


def test_a_rate_in_a_tensor_as_on_a_gpu_gives_the_same_update() -> None:
    g = torch.Generator().manual_seed(4)
    start, gradients = torch.randn(2, 3, 6, generator=g), torch.randn(3, 2, 3, 6, generator=g)
    found = []
    for lr in (0.5, torch.tensor(0.5)):
        W = start.clone().requires_grad_()
        muon = Muon([W], lr=0.5, momentum=0.9, weight_decay=0.1)
        muon.param_groups[0] |= {"lr": lr, "peak_lr": 0.5}
        for step, gradient in enumerate(gradients):
            set_rate([muon], 1 / (1 + step))
            W.grad = gradient.clone()
            muon.step()
        assert float(muon.param_groups[0]["lr"]) == pytest.approx(0.5 / 3)
        assert (muon.param_groups[0]["lr"] is lr) == isinstance(lr, torch.Tensor)
        found.append(W.detach())
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-6)
    assert (found[0] - start).abs().max() > 0.1


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("n_layers", [0, 1, 2])
def test_every_parameter_is_in_exactly_one_group(optimizer: str, n_layers: int) -> None:
    shape = ModelConfig(**{**MODEL.model_dump(), "n_layers": n_layers, "smeared_keys": True})
    model = Transformer(shape, 17, torch.Generator())
    config = TrainConfig(**{**TRAIN.model_dump(), "optimizer": optimizer})
    grouped = [id(p) for o in optimizers(model, config) for g in o.param_groups for p in g["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters())


def test_positions_of_later_layers_embedding_and_unembedding_have_rates_of_their_own() -> None:
    shape = ModelConfig(**{**MODEL.model_dump(), "n_layers": 3, "smeared_keys": True})
    model = Transformer(shape, 17, torch.Generator())
    own = {"lr_embedding": 0.1, "lr_unembedding": 0.02, "lr_positions": 0.3, "lr_later_positions": 0.004}
    config = TrainConfig(**{**TRAIN.model_dump(), **own})
    rates = {id(p): g["lr"] for o in optimizers(model, config) for g in o.param_groups for p in g["params"]}
    assert [rates[id(layer.bias)] for layer in model.layers] == [0.3, 0.004, 0.004]
    assert [rates[id(layer.smear)] for layer in model.layers] == [0.3, 0.004, 0.004]
    assert [rates[id(layer.W_O)] for layer in model.layers] == [config.lr_attention] * 3
    assert (rates[id(model.W_E)], rates[id(model.W_U)]) == (0.1, 0.02)


def test_the_rate_warms_up_stays_and_decays_towards_zero() -> None:
    config = TrainConfig(**{**TRAIN.model_dump(), "warmup_steps": 10, "decay_share": 0.5})
    shares = [rate(step, 100, config) for step in range(1, 101)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[9:50] == [1.0] * 41
    assert shares[-1] == pytest.approx(0.02)
    opts = optimizers(Transformer(MODEL, 17, torch.Generator()), config)
    set_rate(opts, 0.5)
    assert opts[0].param_groups[0]["lr"] == pytest.approx(0.5 * config.lr_attention)
