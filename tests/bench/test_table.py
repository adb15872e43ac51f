"""The page of benchmarks shows every row that was measured."""

from __future__ import annotations

import json

from bench.table import page
from pipelines.paths import ROOT

STEP = {"ours": 72011, "theirs": 25185, "ratio": 2.86, "unit": "tokens/s", "machine": "a CPU"}


def test_every_row_is_shown_under_its_title() -> None:
    grown = {"sizes": "2 to 8", "seconds": "0.100 to 0.400", "time": "1.00 (0.90 to 1.10)", "MiB": "3 to 9"}
    text = page(
        {
            "train_step.L2H4_batch8.transformerlens_float32": STEP,
            "gpu_step.paper.compiled": STEP | {"machine": "a GPU"},
            "growth.extract.n_heads": grown | {"machine": "a CPU"},
        }
    )
    assert "Measured on: a CPU.\n" in text
    assert "Measured on: a GPU.\n" in text
    assert "| 2 layers, 4 heads, batch 8 | TransformerLens 3 in float32, its default: attention" in text
    assert "AdamW | 72,011 | 25,185 | 2.86 | tokens/s |" in text
    assert "| profile `paper`, on a GPU | `torch.compile` of" in text
    assert "| extraction | n_heads | 2 to 8 | 0.100 to 0.400 | 1.00 (0.90 to 1.10) | 3 to 9 |" in text


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    results = json.loads((ROOT / "bench" / "results.json").read_text())
    assert (ROOT / "bench" / "README.md").read_text() == page(results)
    assert all(row["ratio"] > 1 for name, row in results.items() if name.endswith(("plain_loop", "_float32")))
