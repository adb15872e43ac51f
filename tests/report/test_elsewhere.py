"""The chapter on other texts has a column for each text, with the numbers of its models and its verdicts."""

from dataclasses import replace

from pathsum.claims.judging import NOT, REPRODUCED
from pathsum.claims.registry import claims, judge_all
from pathsum.report import elsewhere
from pathsum.report.page.document import Table
from tests.report import synthetic
from tests.report.conftest import prose, rows_of_others

RESULTS = replace(synthetic.results(), texts={"prose": prose()})
CHAPTER = elsewhere.chapter(RESULTS, judge_all(RESULTS), rows_of_others(), {})
BY_DEPTH, SKIP_TRIGRAMS, NAMES, BY_CLAIM = (block for block in CHAPTER.blocks if isinstance(block, Table))


def lines(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, (entry.text for entry in row), strict=True)) for row in table.rows]


def test_each_depth_has_the_range_of_its_models_on_each_text() -> None:
    shown = {(line["layers"], line["measure"]): line for line in lines(BY_DEPTH)}
    assert BY_DEPTH.columns[2:] == ("python", "prose")
    assert shown["0 layers", "loss (nats per token)"]["python"] == "3.42"
    assert shown["0 layers", "loss (nats per token)"]["prose"] == "3.90"
    assert ("0 layers", "prefix matching, best head (0..1)") not in shown
    matching = shown["2 layers", "prefix matching, best head (0..1)"]
    values = [c.summary.prefix_matching for c in RESULTS.of_depth(2)]
    assert set(values) == {0.7}
    assert matching["python"] == "0.700"
    onset = shown["2 layers", "onset (tokens)"]
    assert onset["prose"] == "–"
    assert "to" in onset["python"] or " M" in onset["python"]


def test_a_measure_that_some_models_lack_says_of_how_many_it_is() -> None:
    first, *others = RESULTS.of_depth(2)
    without = replace(first, summary=replace(first.summary, onset_tokens=None))
    some = replace(RESULTS, cells={**RESULTS.cells, without.name: without})
    shown = {(line["layers"], line["measure"]): line for line in lines(elsewhere.by_depth(some))}
    assert shown["2 layers", "onset (tokens)"]["python"].endswith(f"({len(others)} of {len(others) + 1})")


def test_each_claim_has_its_verdict_on_each_text() -> None:
    shown = {line["claim"]: line for line in lines(BY_CLAIM)}
    assert list(shown) == [claim.claim for claim in claims().values()]
    line = shown[claims()["two_layer_induction"].claim]
    verdicts = {c.id: c.verdict for c in judge_all(RESULTS)}, {c.id: c.verdict for c in judge_all(prose())}
    assert [v["two_layer_induction"] for v in verdicts] == [REPRODUCED, NOT]
    assert line["python"] == "✓ 0.70 (4 of 4)"
    assert line["prose"].startswith("✗ 0.0")


def test_the_chapter_says_which_texts_have_an_onset() -> None:
    assert "On prose, an onset of induction is found in 0 of 1 two-layer model;" in CHAPTER.paragraphs[0]
    assert {line["text"] for line in (*lines(SKIP_TRIGRAMS), *lines(NAMES))} == {"prose"}
    assert lines(NAMES)[0]["name"] == "D|urs|ley"


def test_a_grid_with_one_text_says_how_to_add_others() -> None:
    alone = elsewhere.chapter(synthetic.results(), [], [], {})
    assert not alone.blocks
    assert "make corpora" in alone.paragraphs[0]
