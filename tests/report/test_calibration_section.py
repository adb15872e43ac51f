"""The table of detectors warns where precision, recall or their lower bounds are too low."""

from dataclasses import replace

import pytest

from pathsum.report.story import section_of
from pathsum.report.themes.calibration import doubts, facts, section
from tests.report import synthetic

RESULTS = synthetic.results()


UNKNOWN = {"precision": None, "precision_low": None, "precision_high": None}


@pytest.mark.parametrize(
    ("changes", "weak", "unsure"),
    [({}, 0, 0), ({"recall_low": 0.86}, 0, 1), ({"recall": 0.5, "recall_low": 0.3}, 1, 0), (UNKNOWN, 1, 0)],
)
def test_a_share_under_the_aim_or_not_measured_is_a_caution_and_so_is_a_lower_bound(
    changes: dict[str, float | None], weak: int, unsure: int
) -> None:
    first, *others = [r for r in RESULTS.calibration if r.detector != "induction"]
    good = replace(first, detector="induction", precision_low=0.93, recall_low=0.93)
    rows = [replace(r, precision_low=0.95, recall_low=0.95) for r in (first, *others)]
    results = replace(RESULTS, calibration=[*rows, replace(good, **changes)])  # type: ignore[arg-type]
    found = facts(results)
    assert (found["weak"], found["unsure"]) == (["induction heads"] * weak, ["induction heads"] * unsure)
    assert bool("".join(doubts(["induction"], results))) == bool(changes)


def test_intervals_from_few_windows_carry_their_measured_coverage() -> None:
    """The note quotes the smallest number of windows, and the range over quantities."""
    row = RESULTS.coverage[0]
    rows = [row, replace(row, quantity="edge", share=0.912), *RESULTS.coverage[1:]]
    results = replace(RESULTS, coverage=rows)
    said = "95 % intervals from 12 windows held the value on many windows in 91 to 94 % of cases"
    board = section(results, {})
    assert any(said in text for text in board.paragraphs)
    (table,) = [block for block in board.blocks if getattr(block, "csv", "") == "coverage.csv"]
    assert [entry.text for entry in table.rows[1]][1:] == ["effect of an edge", *["12"] * 3, "0.91 [0.91, 0.97]"]
    for name in ("causal", "content", "norm_scales", "attention_sinks", "agreement"):
        assert section_of(name, results, {}).paragraphs[-1].startswith(f"On synthetic corpora, {said}")
    assert said not in str(section_of("causal", replace(results, coverage=[]), {}).paragraphs)
