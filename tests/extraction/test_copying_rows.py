"""The rows on copying: a copying head passes, and heads that write a constant or attend to nothing of use do not."""

import torch

from pathsum.core.weights import Head, Weights
from pathsum.extraction.copying import tables
from pathsum.extraction.inputs import EvalData, trace_trained
from pathsum.model.transformer import Transformer
from pathsum.records.heads import CopyingRow
from tests.extraction.small import plain_text
from tests.random_models import D_VOCAB, HOW, LOG, N_CTX, cell_of, loaded, random_model


def evidence() -> EvalData:
    """Return windows of few tokens each, so that the tokens of a window recur in it and not in the next one."""
    g = torch.Generator().manual_seed(1)
    topics = 2 + torch.stack([torch.randperm(D_VOCAB - 2, generator=g)[:4] for _ in range(41)])
    windows = topics.gather(1, torch.randint(4, (41, N_CTX + 1), generator=g))
    windows[:, 0] = 0
    return plain_text(windows, ["w"] * D_VOCAB)


def rows_of(model: Transformer) -> list[CopyingRow]:
    trained = trace_trained(model, cell_of(model), LOG, evidence(), HOW)
    return tables(trained, evidence(), HOW)["copying"]


def three_heads() -> Transformer:
    """Return heads that attend uniformly: one copies, one always writes token 1, and one writes the next token."""
    eye = torch.eye(D_VOCAB, dtype=torch.float64)
    constant = torch.zeros_like(eye)
    constant[1] = 1
    heads = tuple(Head(0 * eye, 0 * eye, eye, 3 * out) for out in (eye, constant, eye.roll(1, 0)))
    shape = {"n_layers": 1, "d_head": D_VOCAB, "d_model": D_VOCAB}
    return loaded(random_model(5, **shape), Weights(eye, eye, (heads,))).float()


def test_only_the_copying_head_copies_on_text() -> None:
    copying, constant, shifted = rows_of(three_heads())
    assert copying.copies
    assert copying.removal_low > 0.01
    assert not constant.copies
    assert abs(constant.attended_nats) < 1e-5
    assert not shifted.copies
    assert max(constant.removal_high, shifted.removal_high) < 0  # their own entries are below the mean over outputs


def test_heads_of_random_weights_do_not_copy() -> None:
    """Guards against comparing with 0 alone, which a random head passes in some three of ten cases."""
    found = [row for seed in range(20) for row in rows_of(random_model(seed, n_layers=1, norm="rms"))]
    plain = sum(row.attended_low > 0 for row in found)
    assert sum(row.copies for row in found) <= 0.1 * len(found) < plain


def test_there_is_a_row_for_each_head_and_none_without_layers() -> None:
    assert [(r.layer, r.head) for r in rows_of(random_model(3))] == [(at, h) for at in (0, 1) for h in range(3)]
    assert rows_of(random_model(3, n_layers=0)) == []
