"""What is compared trains alike, memory is measured beyond the start, and the page shows what was measured."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench import table, train_step
from bench.growth import CELL, FLOOR, exponent, extraction
from bench.train_step import Shape, ours, plain_loop, products, products_alone
from pipelines.paths import ROOT

TINY = Shape(2, 2, n_heads=2, d_head=3, d_model=6, n_ctx=11, d_vocab=13)


@pytest.mark.parametrize("make", [ours, plain_loop])
def test_each_step_reduces_the_loss_of_its_batch(make: Callable[[Shape], Callable[[], float]]) -> None:
    torch.manual_seed(0)
    step = make(TINY)
    losses = [step() for _ in range(60)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_peak_is_that_of_the_products_of_a_step_in_the_type_of_training(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_step, "product_dtype", lambda device: dtype)
    held: list[torch.dtype] = []
    monkeypatch.setattr(torch, "mm", lambda a, b, out: held.append(a.dtype))
    monkeypatch.setattr(torch, "bmm", lambda a, b, out: held.append(a.dtype))
    products_alone(TINY)()
    assert held == [dtype] * len(products(TINY))


def test_an_exponent_is_the_slope_with_its_interval() -> None:
    assert exponent((16, 32, 64), [0.1 * n**1.5 for n in (16, 32, 64)]) == "1.50 (1.50 to 1.50)"
    noisy = exponent((1, 2, 4, 8), (1.0, 2.5, 3.5, 9.0))
    slope, low, high = (float(part.strip("()")) for part in noisy.replace("to", "").split())
    assert low < 1 < high
    assert abs(slope - 1.03) < 0.05


def test_what_extraction_takes_is_what_it_takes_beyond_the_smallest_model() -> None:
    assert 40 < extraction(replace(CELL, n_ctx=256))[1] < 600  # MiB; the whole process takes 730
    assert extraction(FLOOR)[1] < 10


def test_a_run_replaces_all_rows_of_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "RESULTS", tmp_path / "results.json")
    table.RESULTS.write_text('{"train_step.a": {"ratio": 1}, "growth.b": {"ratio": 3}}')
    table.record("train_step.", {"train_step.c": {"ratio": 4}})
    assert json.loads(table.RESULTS.read_text()) == {"train_step.c": {"ratio": 4}, "growth.b": {"ratio": 3}}


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    results = json.loads(table.RESULTS.read_text())
    assert (ROOT / "bench" / "README.md").read_text() == table.page(results)
    assert all(row["ratio"] > 1 for name, row in results.items() if name.endswith(("plain_loop", "_float32")))
