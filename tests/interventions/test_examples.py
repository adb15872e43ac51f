"""The examples of docs/interventions.md run and show what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from tests.model.test_transformer import build, config, sample

PAGE = Path(__file__).resolve().parents[2] / "docs" / "interventions.md"


def test_the_examples_run_in_order() -> None:
    names: dict[str, Any] = {"model": build(config(norm="rms")).float(), "tokens": sample()}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    with torch.no_grad():
        for block in blocks:
            exec(block, names)
    model, run = names["model"], names["run"]
    torch.testing.assert_close(run.logits(), model(names["tokens"]))
    assert names["cost_nats"].abs() > 0
    assert not names["ablated"].logits().equal(run.logits())
    assert not names["pattern"].equal(run.patterns[1][0])
    assert names["forced"].patterns[0][1].equal(names["previous_token"].expand(2, -1, -1))
