"""Each operation of a training step belongs to one part, and shares are those of medians."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from bench import step_profile
from bench.contenders import ours
from bench.shapes import Shape
from bench.step_profile import MODEL, REST, microseconds, part, shares


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (("aten::mm", "_NextTokenLoss"), MODEL),
        (("aten::addmm_", "aten::baddbmm_", "_BiasedAttentionBackward"), MODEL),
        (("aten::bmm", "Optimizer.step#Muon.step"), "Muon"),
        (("aten::_fused_adamw_", "Optimizer.step#AdamW.step"), "AdamW"),
        (("aten::_softmax", "aten::softmax", "_BiasedAttention"), "softmax of attention"),
        (("aten::_softmax", "aten::softmax", "_NextTokenLoss"), "loss"),
        (("aten::sum", "_BiasedAttentionBackward"), "masks"),
        (("aten::add_", "autograd::engine::evaluate_function: _RMSNormBackward"), "RMS norm"),
        (("aten::embedding_dense_backward", "EmbeddingBackward0"), "embedding"),
        (("aten::add",), REST),
    ],
)
def test_an_operation_belongs_to_the_part_that_calls_it(names: tuple[str, ...], title: str) -> None:
    assert title in part(names)


def test_one_interrupted_step_does_not_change_the_shares() -> None:
    product, copy, add = ("aten::mm",), ("aten::copy_",), ("aten::add",)
    usual = Counter({product: 60, copy: 30, add: 10})
    interrupted = Counter({product: 60, copy: 3000, add: 10})
    assert shares([usual, interrupted, usual]) == {MODEL: 0.6, REST: 0.4}


def test_every_part_of_a_step_takes_time() -> None:
    torch.set_num_threads(1)  # threads of a pool have no caller
    steps = microseconds(ours(Shape("tiny", 1, 2, n_heads=2, d_head=3, d_model=6, n_ctx=11, d_vocab=13)), 2)
    assert len(steps) == 2
    for found in steps:
        assert set(map(part, found)) == {MODEL, REST, *(title for _, title in step_profile.WITHIN)}
        assert min(found.values()) > 0
