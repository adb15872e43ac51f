"""The section on softmax competition shows the head that the claim judges."""

from pathsum.claims.softmax_competition import CLAIMS
from pathsum.report.themes.softmax_competition import facts, section
from pathsum.report.told import Frames, labels
from tests.report import synthetic


def test_the_rows_are_those_of_the_head_that_the_claim_judges() -> None:
    results = synthetic.results(layers=(2, 0, 1), heads=(3,), seeds=(0,))
    found = facts(Frames(results.cells))
    (judged,) = CLAIMS[0].evaluate(results).values()
    (head, *_), (value, *_) = labels(found["after"]), found["after"]["preference_nats"]
    assert (f"head {head}", value) == (judged.note, judged.value)
    assert found["match"]["preference_nats"].tolist() == [0.3, 0.3]
    (table,) = section(results, {}).blocks
    assert [entry.text for entry in table.rows[1]][2:] == [  # type: ignore[union-attr]
        "8.00 [7.90, 8.10]", "0.30 [0.20, 0.40]", "0.10 [0.00, 0.20]", "−0.20",
    ]  # fmt: skip


def test_without_heads_nothing_is_shown() -> None:
    assert facts(Frames(synthetic.results(layers=(0,)).cells)) == {}
