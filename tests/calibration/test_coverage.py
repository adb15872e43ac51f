"""Coverage counts how often intervals from few windows hold the value on many."""

from dataclasses import replace

import pytest
import torch

from pathsum.calibration import coverage as room
from pathsum.calibration.coverage import COPIES, SAMPLES, TEXT, Held, benches, coverage, effects, held
from pathsum.calibration.score import interval
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.extraction.causal import intervened
from pathsum.records.ablations import AblationRow
from pathsum.statistics import bootstrap
from tests import handmade
from tests.calibration.synthetic import HELD_OUT, N_WORDS, config, stand_in, untrained

MANY = HELD_OUT  # no more held-out windows are made here


@pytest.fixture(scope="module")
def model() -> SyntheticModel:
    return stand_in(untrained(config(2, 1, repeat_share=0.6)), handmade.induction_pair(N_WORDS + 1), (30.0, 0.0))


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MANY", MANY)


def test_the_effects_are_those_that_the_extraction_records(model: SyntheticModel) -> None:
    """Identity: the means over windows are those of the record ``ablations`` on the same windows."""
    text, copies = benches(model, torch.Generator().manual_seed(1)).values()
    block, generator = (copies.clean.tokens.shape[1] - 1) // 2, torch.Generator().manual_seed(0)
    rows = intervened((text, copies), block, torch.arange(MANY), generator)
    rows = [r for r in rows if (r.method, r.patterns) == ("resample", "recomputed")]
    for bench, loss in ((text, "loss_nats"), (copies, "second_copy_nats")):
        heads, edges = effects(bench)
        recorded: dict[object, float] = {}
        for r in rows:
            assert isinstance(r, AblationRow)
            place = (r.layer, r.head) if r.target == "head" else (r.kind, r.early_head, r.head)
            recorded[place] = getattr(r, loss)
        assert {key: values.mean().item() for key, values in (heads | edges).items()} == pytest.approx(recorded)
    assert heads[1, 0].mean() > 0.5  # the induction head predicts the second copy


def test_every_interval_is_counted(model: SyntheticModel) -> None:
    found = held(model)
    n = {"head": 2, "edge": 3, "share": 1}
    assert {key: len(values) for key, values in found.items()} == {
        (text, quantity, size): SAMPLES * n[quantity]
        for text in (TEXT, COPIES)
        for size in room.SIZES
        for quantity in n
    }


@pytest.mark.parametrize("change", ["seed", "edges", "learned"])
def test_models_that_are_left_out_have_no_intervals(model: SyntheticModel, change: str) -> None:
    """Every fourth seed is measured, if the model has learned its text and has edges."""
    other = {
        "seed": lambda: replace(model, text=replace(model.text, seed=1)),
        "edges": lambda: replace(model, edges={}),
        "learned": lambda: replace(model, curve=replace(model.curve, losses={"copied": [2.0, 1.9]})),
    }[change]()
    assert held(other) == {}


def test_too_narrow_intervals_hold_less_often(model: SyntheticModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: of five windows, the percentile interval holds the value in at most some 83 % of cases."""
    monkeypatch.setattr(room, "SIZES", (5,))
    monkeypatch.setattr(room, "SAMPLES", 60)
    wide = held(model)[COPIES, "head", 5]
    monkeypatch.setattr(bootstrap, "widening", lambda _: 1.0)
    narrow = held(model)[COPIES, "head", 5]
    assert sum(narrow) < 0.9 * len(narrow) < sum(wide)


def test_a_row_counts_intervals_over_models() -> None:
    key = (TEXT, "head", 12)
    models: list[Held] = [{key: [True, True, False]}, {}, {key: [True, True, True, True]}]
    (row,) = coverage(models)
    assert (row.text, row.quantity, row.windows, row.many) == (*key, MANY)
    assert (row.n, row.held, row.models) == (7, 6, 2)
    assert (row.share, row.share_low, row.share_high) == interval([2, 4], [3, 4])
    assert coverage([{}, {}]) == []
