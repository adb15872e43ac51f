"""The order in which parts of the mechanism form, also where it contradicts the claim."""

from __future__ import annotations

import dataclasses

import pytest

from pathsum.claims.formation import CLAIMS
from pathsum.claims.judging import NOT, REPRODUCED, judge
from pathsum.core.storage import frame
from pathsum.records.formation import ChangePointRow
from pathsum.records.results import Results
from pathsum.report.chapters import overlap
from pathsum.report.themes.formation import facts, formation, section, sequence
from pathsum.report.told import Frames, listed
from tests.report import synthetic

WORKS = synthetic.results()


def changed(quantity: str = "", **values: int | None) -> Results:
    """Return WORKS with other dates of one quantity, or of all."""
    cells = {
        name: c.having(
            changes=[
                dataclasses.replace(r, **values) if quantity in ("", r.quantity) else r for r in c.rows(ChangePointRow)
            ]
        )
        for name, c in WORKS.cells.items()
    }
    return dataclasses.replace(WORKS, cells=cells)


def test_the_claim_s_value_is_the_lag_and_an_equal_time_is_not_before() -> None:
    found = judge(CLAIMS[0], WORKS)
    assert (found.verdict, found.value) == (REPRODUCED, 700_000)
    assert judge(CLAIMS[0], changed(tokens_seen=5_000_000, low=4_900_000, high=5_100_000)).verdict == NOT


def test_the_facts_are_the_lags_the_orders_and_the_losses_that_bend() -> None:
    found = facts(Frames(WORKS.cells))
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
    found = facts(Frames(early.cells))
    assert (found["edge_first"].tolist(), found["clear"]) == ([True] * 4, clear)
    told = section(early, {}).paragraphs[2]
    assert f"head does, with an evaluation between the two in {clear} of these." in told
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
    drawn, shallow = formation(WORKS), synthetic.results(layers=(0, 1))
    assert drawn is not None
    assert len(drawn.data) == sum(len(c.rows(ChangePointRow)) for c in WORKS.with_layers(2)) == 20
    assert (formation(shallow), facts(Frames(shallow.cells)), section(shallow, {}).blocks) == (None, {}, ())


def test_an_order_is_stated_only_where_an_evaluation_lies_between() -> None:
    def order(changes: list[ChangePointRow]) -> str:
        return sequence(frame(changes, ChangePointRow))

    rows = WORKS.cells["L2H2S0"].rows(ChangePointRow)
    assert order(rows) == "previous-token head together with key edge together with prefix matching"
    apart = [dataclasses.replace(c, low=c.tokens_seen - 10_000, high=c.tokens_seen + 10_000) for c in rows]
    assert order(apart) == "previous-token head, then key edge, then prefix matching"
    last = dataclasses.replace(apart[0], tokens_seen=9_000_000, low=8_000_000, high=9_000_001)
    assert order([last, *apart[1:]]) == "key edge, then prefix matching, then previous-token head"
    assert order([]) == ""
