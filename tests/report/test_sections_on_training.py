"""The sections on what forms when, on weighted repeats and on the loss by position."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from pathsum.behavior.in_context import LONG_CONTEXT, in_context_loss_drop
from pathsum.claims.formation import CLAIMS
from pathsum.claims.judging import NOT, REPRODUCED, judge
from pathsum.core.storage import frame
from pathsum.records.doses import read_doses
from pathsum.records.formation import ChangePointRow
from pathsum.records.results import Results
from pathsum.report.chapters import overlap, setup_chapter
from pathsum.report.story import UNFROZEN
from pathsum.report.themes import dose_response, formation
from pathsum.report.themes.phase_change import loss_drop_ends
from pathsum.report.told import Frames, listed
from tests.report import synthetic
from tests.report.synthetic import DOSES

WORKS = synthetic.results()


def changed(quantity: str = "", **values: int | None) -> Results:
    """Return WORKS with other dates of one quantity, or of all."""
    cells = {}
    for name, cell in WORKS.cells.items():
        rows = cell.rows(ChangePointRow)
        cells[name] = cell.having(changes=[replace(r, **values) if quantity in ("", r.quantity) else r for r in rows])
    return replace(WORKS, cells=cells)


def test_the_claim_s_value_is_the_lag_and_an_equal_time_is_not_before() -> None:
    found = judge(CLAIMS[0], WORKS)
    assert (found.verdict, found.value) == (REPRODUCED, 700_000)
    assert judge(CLAIMS[0], changed(tokens_seen=5_000_000, low=4_900_000, high=5_100_000)).verdict == NOT


def test_the_facts_are_the_lags_the_orders_and_the_losses_that_bend() -> None:
    found = formation.facts(Frames(WORKS.cells))
    assert found["lags"]["previous-token head"].tolist() == [-0.7] * 4
    assert found["lags"]["in-context loss drop"].tolist() == [0.1] * 4
    assert (found["edge_first"].tolist(), found["clear"]) == ([False] * 4, 0)
    formed, others = found["bends"]
    assert formed["millions"].isna().tolist() == [True] * 4
    assert (len(others), listed(others["millions"]), listed(others["low_documents"])) == (6, [4.0] * 2, [])


@pytest.mark.parametrize(("high", "clear"), [(3_300_000, 4), (3_500_001, 0)])
def test_an_edge_that_rises_before_its_head_is_said_to(high: int, clear: int) -> None:
    """Guards against omitting that K-composition forms first in three of four models."""
    early = changed("k_composition", tokens_seen=2_900_000, low=2_800_000, high=high)
    found = formation.facts(Frames(early.cells))
    assert (found["edge_first"].tolist(), found["clear"]) == ([True] * 4, clear)
    told = formation.section(early, {}).paragraphs[2]
    assert ("formation does not follow the order of the mechanism" in told) == (clear > 0)


def test_overlapping_intervals_do_not_order_loss_drop_and_matching() -> None:
    date = next(r for r in WORKS.cells["L2H2S0"].rows(ChangePointRow) if r.quantity == "prefix_matching").tokens_seen
    for low, high, same in (
        (date - 500_000, date + 500_000, [True] * 4),
        (date + 5_000_000, date + 6_000_000, [False] * 4),
        (None, None, [True] * 4),  # between the same two evaluations
    ):
        found = Frames(changed("loss_drop_nats", low_documents=low, high_documents=high).cells).changes
        assert overlap(found[found["n_layers"] == 2]).tolist() == same


def test_the_figure_draws_every_change_of_two_layer_models_and_without_any_nothing_is_shown() -> None:
    drawn, shallow = formation.formation(WORKS), synthetic.results(layers=(0, 1))
    assert drawn is not None
    assert len(drawn.data) == sum(len(c.rows(ChangePointRow)) for c in WORKS.of_depth(2)) == 20
    assert (formation.formation(shallow), formation.facts(Frames(shallow.cells))) == (None, {})


def test_an_order_is_stated_only_where_an_evaluation_lies_between() -> None:
    def order(changes: list[ChangePointRow]) -> str:
        return formation.sequence(frame(changes, ChangePointRow))

    rows = WORKS.cells["L2H2S0"].rows(ChangePointRow)
    assert order(rows) == "previous-token head together with key edge together with prefix matching"
    apart = [replace(c, low=c.tokens_seen - 10_000, high=c.tokens_seen + 10_000) for c in rows]
    assert order(apart) == "previous-token head, then key edge, then prefix matching"
    last = replace(apart[0], tokens_seen=9_000_000, low=8_000_000, high=9_000_001)
    assert order([last, *apart[1:]]) == "key edge, then prefix matching, then previous-token head"
    assert order([]) == ""


def test_rows_of_led_models_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "dose_response.csv"
    assert read_doses(path) == []
    pd.DataFrame([vars(row) for row in DOSES]).astype({"onset_tokens": "Int64"}).to_csv(path, index=False)
    assert read_doses(path) == DOSES


def test_models_with_an_onset_are_compared_with_those_never_led() -> None:
    found = dose_response.facts(DOSES)
    onsets = {weight: listed(tokens) for weight, tokens in found["onsets"].items()}
    assert onsets == {1: [], 3: [1_333_333] * 3, 5: []}
    names = ["matching", "matching_led", "cut_on_repeats_nats", "loss_above_never_led_nats"]
    assert found["led"][names].tolist() == pytest.approx([0.15, 0.3, 0.06, 0.02])
    assert found["all_led"]["loss_above_never_led_nats"] == pytest.approx((0.02 + 0.14) / 2)  # with those that lose
    assert found["faded"] == 3
    assert found["never"]["cut_on_repeats_nats"] == 0.02
    assert dose_response.facts([]) == {}
    assert not dose_response.facts([row for row in DOSES if row.weight == 1])["compared"]
    figure = dose_response.dose_response(WORKS)
    assert figure is not None
    assert figure.data["loss_above_never_led_nats"].tolist() == pytest.approx([0] * 3 + [0.02] * 3 + [0.14] * 3)
    assert dose_response.dose_response(replace(WORKS, doses=[])) is None


@pytest.mark.parametrize(
    ("n_ctx", "short", "long"),
    [
        ((LONG_CONTEXT - 1,), True, False),
        ((LONG_CONTEXT,), False, True),
        ((LONG_CONTEXT - 1, LONG_CONTEXT), True, True),
    ],
)
def test_the_terms_define_the_loss_drop_of_the_windows_at_hand(n_ctx: tuple[int, ...], short: bool, long: bool) -> None:
    cells = {
        f"{name}-{n}": replace(cell, summary=replace(cell.summary, n_ctx=n))
        for n in n_ctx
        for name, cell in WORKS.cells.items()
    }
    said = repr(setup_chapter(replace(WORKS, cells=cells), UNFROZEN))
    assert ("loss at 8 to 12 % of the window" in said, "loss near the 50th token" in said) == (short, long)


@pytest.mark.parametrize("n", [64, 256, LONG_CONTEXT - 1, LONG_CONTEXT, 2048])
def test_the_gray_bands_are_the_positions_of_the_loss_drop(n: int) -> None:
    losses = torch.eye(n, dtype=torch.float64)
    read = [position + 1 for position in range(n) if in_context_loss_drop(losses[position])]
    bands = loss_drop_ends(n)
    inside = [p for p in range(1, n + 1) if any(low <= p <= high for low, high in bands)]
    assert len(set(read) ^ set(inside)) <= 2 if n < LONG_CONTEXT else read == inside  # fractions of n are rounded
