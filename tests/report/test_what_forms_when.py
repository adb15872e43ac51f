"""The order in which parts of the mechanism form, also where it contradicts the claim."""

from __future__ import annotations

import dataclasses

from pathsum.claims.formation import CLAIMS
from pathsum.claims.judging import NOT, REPRODUCED, judge
from pathsum.claims.registry import claims
from pathsum.core.storage import frame
from pathsum.records.formation import ChangePointRow
from pathsum.report.chapters import learning
from pathsum.report.themes.formation import facts, formation, section, sequence
from pathsum.report.told import Frames, listed
from tests.report import synthetic

WORKS = synthetic.results()


def test_the_claim_s_value_is_the_lag_and_an_equal_time_is_not_before() -> None:
    found = judge(CLAIMS[0], WORKS)
    assert (found.verdict, found.value) == (REPRODUCED, 700_000)
    late = {
        name: c.having(
            changes=[
                dataclasses.replace(r, tokens_seen=5_000_000, low=4_900_000, high=5_100_000)
                for r in c.rows(ChangePointRow)
            ],
        )
        for name, c in WORKS.cells.items()
    }
    assert judge(CLAIMS[0], dataclasses.replace(WORKS, cells=late)).verdict == NOT


def test_the_facts_are_the_lags_the_orders_and_the_losses_that_bend() -> None:
    found = facts(Frames(WORKS.cells))
    assert found["lags"]["previous-token head"].tolist() == [-0.7] * 4
    assert found["lags"]["in-context loss drop"].tolist() == [0.1] * 4
    assert (found["edge_first"].tolist(), found["clear"]) == ([False] * 4, 0)
    formed, others = found["bends"]
    assert formed["millions"].isna().tolist() == [True] * 4
    assert (len(others), listed(others["millions"]), listed(others["low_documents"])) == (6, [4.0] * 2, [])
    told = section(WORKS, {}).paragraphs
    assert "previous-token head earlier in 4 of 4 models (−0.70 M tokens);" in told[1]
    assert "In 0 of 4 models, K-composition reaches half" in told[2]
    bends = "in 2 of 6 models (at 4.0 M tokens; 0 of them in at least 95 % of bootstrap samples). This is a negative"
    assert f"slope in 0 of 4 models; without such a rise, {bends} result" in told[3]


def test_an_edge_that_rises_before_its_head_is_said_to() -> None:
    """Guards against omitting that K-composition forms first in three of four models."""
    for high, clear in ((3_300_000, 4), (3_500_001, 0)):
        early = {
            name: c.having(
                changes=[
                    dataclasses.replace(r, tokens_seen=2_900_000, low=2_800_000, high=high)
                    if r.quantity == "k_composition"
                    else r
                    for r in c.rows(ChangePointRow)
                ],
            )
            for name, c in WORKS.cells.items()
        }
        found = facts(Frames(early))
        assert (found["edge_first"].tolist(), found["clear"]) == ([True] * 4, clear)
        told = section(dataclasses.replace(WORKS, cells=early), {}).paragraphs[2]
        assert f"head does, with an evaluation between the two in {clear} of these." in told
        assert ("formation does not follow the order of the mechanism" in told) == (clear > 0)


def test_the_chapter_says_where_intervals_do_not_order_loss_drop_and_matching() -> None:
    """Guards against an order of two dates whose intervals overlap."""

    def unordered(low: int | None, high: int | None) -> list[bool]:
        cells = {
            name: c.having(
                changes=[
                    dataclasses.replace(r, low_documents=low, high_documents=high)
                    if r.quantity == "loss_drop_nats" and name != "L2H4S0"
                    else r
                    for r in c.rows(ChangePointRow)
                ]
            )
            for name, c in WORKS.cells.items()
        }
        results = dataclasses.replace(WORKS, cells=cells)
        judged = {name: judge(claim, results) for name, claim in claims().items()}
        return list(learning.facts(results, judged)["open"])

    date = next(r for r in WORKS.cells["L2H2S0"].rows(ChangePointRow) if r.quantity == "prefix_matching").tokens_seen
    assert unordered(date - 500_000, date + 500_000) == [True] * 4
    assert sum(unordered(date + 5_000_000, date + 6_000_000)) == 1
    assert unordered(None, None) == [True] * 4  # between the same two evaluations


def test_without_two_layers_nothing_is_drawn() -> None:
    shallow = synthetic.results(layers=(0, 1))
    assert formation(shallow) is None
    assert facts(Frames(shallow.cells)) == {}
    assert section(shallow, {}).blocks == ()


def test_the_figure_draws_every_change_of_two_layer_models() -> None:
    drawn = formation(WORKS)
    assert drawn is not None
    assert len(drawn.data) == sum(len(c.rows(ChangePointRow)) for c in WORKS.with_layers(2)) == 20


def test_an_order_is_stated_only_where_an_evaluation_lies_between() -> None:
    cell = synthetic.results(heads=(2,), seeds=(0,)).cells["L2H2S0"]

    def order(changes: list[ChangePointRow]) -> str:
        return sequence(frame(changes, ChangePointRow))

    rows = cell.rows(ChangePointRow)
    assert order(rows) == "previous-token head together with key edge together with prefix matching"
    assert facts(Frames({cell.name: cell}))["orders"] == [(order(rows), [cell.name])]
    apart = [dataclasses.replace(c, low=c.tokens_seen - 10_000, high=c.tokens_seen + 10_000) for c in rows]
    assert order(apart) == "previous-token head, then key edge, then prefix matching"
    last = dataclasses.replace(apart[0], tokens_seen=9_000_000, low=8_000_000, high=9_000_001)
    assert order([last, *apart[1:]]) == "key edge, then prefix matching, then previous-token head"
    assert order([]) == ""
