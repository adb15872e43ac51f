"""The training steps that are compared train the same model, in one type of products, and leave out what cannot run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed

from bench import contenders, measuring, train_step
from bench.contenders import autocast, ours, products_alone, reference, reference_loss, untrained
from bench.shapes import DEFAULT, Shape, products
from pathsum.training.device import product_dtype

TINY = Shape("tiny", 2, 2, n_heads=2, d_head=3, d_model=6, n_ctx=11, d_vocab=13)


def fails(_: Shape) -> contenders.Step:
    def step() -> None:
        raise BackendCompilerFailed(lambda: None, RuntimeError("no compiler"), None)

    return step


def test_the_reference_step_is_our_step_without_kernels_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses before and after two updates agree, so loss, gradients and optimizers do."""
    monkeypatch.setattr(contenders, "autocast", lambda device: False)
    steps = []
    for make in (ours, lambda shape: reference(shape, reference_loss)):
        torch.manual_seed(0)
        steps.append(make(TINY))
    mine, theirs = ([step() for _ in range(3)] for step in steps)
    assert mine == pytest.approx(theirs, rel=1e-5)
    assert mine[2] < mine[0]


def test_the_reference_uses_no_kernel_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = untrained(TINY)
    for kernel in ("transformer.rms_normalised", "positions.biased_attention"):
        monkeypatch.setattr(f"pathsum.model.{kernel}", None)
    assert reference_loss(model, TINY.windows()).isfinite()
    with pytest.raises(TypeError):
        model(TINY.windows()[:, :-1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_have_the_type_that_training_chooses(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "product_dtype", lambda device: dtype)
    held: list[torch.dtype] = []
    monkeypatch.setattr(torch, "mm", lambda a, b, out: held.append(a.dtype))
    monkeypatch.setattr(torch, "bmm", lambda a, b, out: held.append(a.dtype))
    products_alone(TINY)()
    assert held == [dtype] * len(products(TINY))
    assert autocast("cpu") == (dtype == torch.bfloat16)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: True)
    assert ("transformerlens_autocast" in train_step.contenders(DEFAULT)) == (dtype == torch.bfloat16)


def test_training_chooses_as_the_benchmark_says() -> None:
    assert autocast("cpu") == (product_dtype("cpu") == torch.bfloat16)


def test_without_a_compiler_torch_compile_is_left_out_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = train_step.warm({"ours": lambda shape: lambda: None, "compiled": fails}, TINY)
    assert list(found) == ["ours"]
    assert "torch.compile is left out" in capsys.readouterr().out
    with pytest.raises(BackendCompilerFailed):
        train_step.warm({"ours": fails}, TINY)


def test_without_transformerlens_it_is_no_contender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert list(train_step.contenders(DEFAULT)) == ["ours", "matmul_peak", "plain_loop", "compiled"]


def test_a_run_writes_all_rows_of_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "RESULTS", tmp_path / "results.json")
    measuring.record("train_step.", {"train_step.a.compiled": {"ratio": 1}, "train_step.a.matmul_peak": {"ratio": 2}})
    measuring.record("extract.", {"extract.b": {"ratio": 3}})
    measuring.record("train_step.", {"train_step.a.matmul_peak": {"ratio": 4, "machine": "a GPU"}})
    found = json.loads((tmp_path / "results.json").read_text())
    assert {name: row["ratio"] for name, row in found.items()} == {"train_step.a.matmul_peak": 4, "extract.b": 3}
    assert found["train_step.a.matmul_peak"]["machine"] == "a GPU"
    assert str(product_dtype("cpu")).removeprefix("torch.") in found["extract.b"]["machine"]
