"""The exponents of a known law are recovered, and their intervals contain the true values."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import runs
from experiments.onset_law import CELLS, LAW, law


def test_a_law_is_found_again() -> None:
    found = law([(b, n, 1000.0 * (b * n) ** 0.5) for b, n in CELLS])
    for which in ("batch_times_context", "batch", "context"):
        assert found[which]["exponent"] == pytest.approx(LAW, abs=1e-6)
    assert found["points"] == len(CELLS)


def test_batch_and_context_are_told_apart_and_noise_widens_the_interval() -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, len(CELLS))
    found = law([(b, n, b**0.6 * n**0.2 * float(np.exp(e))) for (b, n), e in zip(CELLS, noise, strict=True)])
    for which, exponent in (("batch", 0.6), ("context", 0.2)):
        assert found[which]["exponent"] == pytest.approx(exponent, abs=0.08)
        assert 0.003 < found[which]["high"] - found[which]["exponent"] < 0.3
        assert found[which]["exponent"] - found[which]["low"] > 0.003


def test_a_grid_without_the_model_that_is_varied_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "params", lambda root: {"cells": {"L0S5": {}}})
    with pytest.raises(SystemExit, match=f"params.yaml: expected the model {runs.CELL}, got L0S5; run `make params`"):
        runs.default_cell()
