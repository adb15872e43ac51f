"""The interventions of docs/interventions.md show what the page says.

That the page runs from top to bottom is tested in tests/docs/test_documents_run.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from tests.model.test_transformer import build, config, sample

PAGE = Path(__file__).resolve().parents[2] / "docs" / "interventions.md"


def test_the_interventions_change_what_the_page_says() -> None:
    names: dict[str, Any] = {"model": build(config(norm="rms")).float(), "tokens": sample()}
    names |= {"previous": (0, 1), "induction": (1, 0)}
    _load, _find, *interventions = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(interventions) == 3
    with torch.no_grad():
        for block in interventions:
            exec(block, names)
    model, run = names["model"], names["run"]
    torch.testing.assert_close(run.logits(), model(names["tokens"]))
    assert names["cost_nats"].abs() > 0
    assert not names["ablated"].logits().equal(run.logits())
    assert not names["pattern"].equal(run.patterns[1][0])
    assert names["forced"].patterns[0][1].equal(names["previous_token"].expand(2, -1, -1))
