"""The sections on heads, on edges between heads and on the sweep show what the records contain."""

import math
from dataclasses import replace

import pytest

from pathsum.claims.content import term
from pathsum.claims.softmax_competition import CLAIMS
from pathsum.records.ablations import AttentionSinkRow
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow, LabelRow
from pathsum.records.paths import ScorePathRow
from pathsum.records.results import Results
from pathsum.records.weights_side import DeletingRow, VirtualHeadRow
from pathsum.report.page.roles import names
from pathsum.report.themes import attention_sinks, behaviour, score_paths, softmax_competition, two_layers, weights_side
from pathsum.report.themes.sweep import FIXED, NAMELESS, interval, sweep, widths
from pathsum.report.told import Frames, labels
from tests.report import synthetic
from tests.report.synthetic import frames, only, texts

CELL = synthetic.cell(2, 3, 0)


def test_the_labels_are_those_of_the_explorer_and_a_copying_head_without_one_is_marked() -> None:
    """Guards against labels that differ between the table and the pages, which find them on their own."""
    rows = [replace(r, labelled=r.head > 0, distance=r.distance and 3 * r.head - 3) for r in CELL.rows(LabelRow)]
    cell = CELL.having(labels=rows)
    found = [", ".join(names(cell, h.layer, h.head)) for h in cell.rows(HeadRow)]
    assert {"attends to itself", "attends 3 back"} <= set(", ".join(found).split(", "))
    unlabelled = ["– (copies, by weights)" if h.copies else "–" for h in cell.rows(HeadRow)]
    (table,) = texts(behaviour.section(only(cell), {}))
    assert [row[2] for row in table[2:]] == [a or b for a, b in zip(found, unlabelled, strict=True)]
    counts = behaviour.facts(frames(cell))["counts"][2]
    assert (counts["induction"], counts["attends 3 back"], counts["no label"]) == (4, 2, 2)
    assert behaviour.facts(frames(CELL.having(labels=[]))) == {}


def test_only_heads_whose_interval_is_above_the_threshold_and_the_control_are_counted() -> None:
    heads = CELL.rows(AttentionSinkRow)

    def found(**change: float) -> tuple[int, int]:
        rows = [replace(heads[0], **change), *heads[1:]]
        facts = attention_sinks.facts(frames(CELL.having(attention_sinks=rows)))
        assert len(facts["sinks"]) == 6
        return facts["sinks"].sum(), facts["needing"].sum()

    before = found()
    assert found(attention_low=0.31) == (before[0] + 1, before[1])
    assert found(attention_low=0.3) == before
    assert found(forbidden_low=0.2, control_high=0.1) == (before[0], before[1] + 1)
    assert found(forbidden_low=-0.1, control_high=-0.2) == before


def test_the_table_has_the_head_with_most_attention_to_the_first_token_and_every_layer() -> None:
    rows = [replace(r, attention=float((r.layer, r.head) == (1, 2))) for r in CELL.rows(AttentionSinkRow)]
    (table,) = texts(attention_sinks.section(only(CELL.having(attention_sinks=rows)), {}))
    assert sorted(row[1] for row in table) == ["L1H2", "layer 0", "layer 1"]


def test_the_costliest_virtual_head_is_named_and_comes_first() -> None:
    costly = replace(CELL.rows(VirtualHeadRow)[4], cost_nats=0.5)
    cell = CELL.having(virtual_heads=[*CELL.rows(VirtualHeadRow)[:4], costly])
    found = weights_side.facts(frames(cell))
    assert found["tops"][["early", "late", "cost_nats"]].to_numpy().tolist() == [["L0H1", "L1H1", 0.5]]
    assert found["ends"].tolist() == [False]
    assert texts(weights_side.section(only(cell), {}))[-1][0][1] == "L0H1 → L1H1"


def test_heads_that_delete_are_counted_beyond_chance_only() -> None:
    rows = [replace(CELL.rows(DeletingRow)[0], alignment=a, spread=0.01) for a in (-0.9, -0.02, 0.9)]
    said = " ".join(weights_side.section(only(CELL.having(deleting=rows)), {}).paragraphs)
    assert "and more than 3 standard deviations below chance (0) in 1 of 3 heads" in said


def test_the_figure_marks_the_edge_from_the_previous_token_head_to_the_induction_head() -> None:
    figure = weights_side.subspaces(only(CELL))
    assert figure is not None
    marked = figure.data[figure.data["induction"]]
    assert list(marked["kind"]) == ["Q", "K", "V"]
    assert set(zip(marked["early"], marked["late"], strict=True)) == {("L0H0", "L1H0")}


@pytest.mark.parametrize(
    ("query", "key", "expected"),
    [
        ("direct", "direct", "direct"),
        ("L0H1", "direct", "Q"),
        ("direct", "L0H1", "K"),
        ("L0H1 L1H0", "L0H1", "Q&K"),
        ("position", "L0H1", "position"),
        ("direct", "position", "position"),
    ],
)
def test_a_pair_is_named_by_the_sides_that_read_an_earlier_head(query: str, key: str, expected: str) -> None:
    assert term(ScorePathRow(1, 0, query, key, 0.0, 0.0, 0.0, 0.0)) == expected


def test_the_score_of_the_ground_truth_goes_through_keys() -> None:
    found = score_paths.facts(frames(CELL))
    assert found["through"].tolist() == pytest.approx([8], abs=0.1)  # planted, with a little noise
    assert found["strongest"].index.tolist() == [("L2H3S0", "direct")]
    ((row,),) = texts(score_paths.section(only(CELL), {}))
    assert (row[1], float(row[4][:3])) == ("L1H0", pytest.approx(8, abs=0.3))


def test_softmax_competition_is_shown_for_the_head_that_the_claim_judges() -> None:
    results = synthetic.results(layers=(2, 0, 1), heads=(3,), seeds=(0,))
    found = softmax_competition.facts(Frames(results.cells))
    (judged,) = CLAIMS[0].evaluate(results).values()
    (head, *_), (value, *_) = labels(found["after"]), found["after"]["preference_nats"]
    assert (f"head {head}", value) == (judged.note, judged.value)
    assert found["match"]["preference_nats"].tolist() == [0.3, 0.3]


def test_the_heads_of_the_mechanism_and_the_edges_between_heads_stand_in_tables() -> None:
    results = synthetic.results()
    heads, edges = texts(two_layers.section(results, {}))
    assert heads[0] == ["L2H2S0", "L0H0", "0.90", "L1H0", "0.70", "0.27 (0.18)"]
    assert len(edges) == sum(e.composes for c in results.of_depth(2) for e in c.rows(CompositionRow))
    assert edges[0][:3] == ["L2H2S0", "L0H0 → L1H0", "keys"]
    figure = two_layers.composition(results)
    assert figure is not None
    assert len(figure.data) == sum(len(c.rows(CompositionRow)) for c in results.cells.values())
    assert set(figure.data.loc[figure.data["composes"], "kind"]) == {"K"}


def test_a_graph_of_a_deeper_model_has_edges_that_skip_a_layer() -> None:
    third = [replace(h, layer=2) for h in CELL.rows(HeadRow) if h.layer == 1]
    over = [replace(e, late_layer=2) for e in CELL.rows(CompositionRow)]
    deep = replace(CELL, summary=replace(CELL.summary, n_layers=3))
    deep = deep.having(heads=[*CELL.rows(HeadRow), *third], composition=[*CELL.rows(CompositionRow), *over])
    assert two_layers.composition(only(deep)) is not None


def test_the_heads_that_match_and_copy_by_weights_are_counted() -> None:
    for works, formed, strong, weak in ((True, [True], [True], [False] * 2), (False, [False], [], [False] * 3)):
        found = two_layers.facts(frames(synthetic.cell(2, 3, 0, works=works)))
        assert [found[name].tolist() for name in ("formed", "strong", "weak")] == [formed, strong, weak]


def test_the_edges_below_chance_are_counted_and_bounds_of_p_are_marked() -> None:
    """Guards against listing only edges above chance, and against printing the smallest possible p as its value."""
    edges = [  # with p-values from 9,999 rotations
        CompositionRow("K", 0, h, 1, h, value, value, 1.0, 0.18, p, 2e-4, p, p / 2, p)
        for h, (value, p) in enumerate([(0.3, 2e-4), (0.28, 0.01), (0.1, 2e-4), (0.17, 0.6)])
    ]
    cell = synthetic.cell(2, 2, 0).having(composition=edges)
    found = two_layers.facts(frames(cell))
    assert found["edges"]["above"].tolist() == [True, True, False, False]
    assert found["edges"]["below"].tolist() == [False, False, True, False]
    assert [row[-1] for row in texts(two_layers.section(only(cell), {}))[1]] == ["≤ 0.001", "0.010"]


def test_no_count_of_composing_edges_stands_without_precision_and_recall() -> None:
    """Guards against a bare count: on synthetic corpora, three of ten K-edges that composed were not used."""
    results = synthetic.results()
    row = next(r for r in results.calibration if r.detector == "composition_k")
    weak = replace(row, precision=0.714, precision_low=0.5, precision_high=0.86)
    told = replace(results, calibration=[weak if r is row else r for r in results.calibration])
    (counted,) = [text for text in two_layers.section(told, {}).paragraphs if "edges compose" in text]
    assert "keys alone: precision 0.71 [0.50, 0.86], recall 1.00 [0.76, 1.00] on synthetic corpora" in counted
    unknown = two_layers.section(replace(results, calibration=[]), {})
    assert "(precision and recall unknown; keys" in " ".join(unknown.paragraphs)


def test_the_sweep_has_a_point_a_model() -> None:
    results = synthetic.results(seeds=(0, 1, 2))
    figure = sweep(results)
    assert figure is not None
    assert list(figure.data["cell"]) == list(results.cells)
    shares = figure.data.set_index("cell").loc["L2H4S0"]
    assert shares["induction"] == shares["previous token"] == 1 / 8
    assert shares[FIXED] == 1 / 8  # the head that looks at itself
    assert shares[NAMELESS] == 6 / 8
    none = sweep(synthetic.results(layers=(2,), heads=(2,), seeds=(0,), works=False))
    assert none is not None
    assert math.isnan(none.data["onset_millions"].iloc[0])


def test_the_interval_is_students() -> None:
    """For 1, 2, 3: t(0.975, 2) = 4.302653 times 1 / √3."""
    low, high = interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), rel=1e-6)
    assert interval([1.0, 4.0]) == (1.0, 4.0)


def of_widths(results: Results) -> Results:
    """Return heads of width 32 in the grid, and a model with eight heads of width 16 where the grid has four of width
    32."""
    grid = {n: synthetic.with_width(c, n, 32) for n, c in results.cells.items()}
    beside = {
        name.replace("H4", "H8D16"): synthetic.with_width(c, name.replace("H4", "H8D16"), 16, n_heads=8)
        for name, c in results.cells.items()
        if "H4" in name
    }
    return replace(results, cells=grid | beside)


def test_heads_of_other_widths_have_a_figure_of_their_own() -> None:
    results = of_widths(synthetic.results(layers=(1, 2), heads=(2, 4), seeds=(0, 1, 2)))
    figure, over_heads = widths(results), sweep(results)
    assert widths(synthetic.results()) is None
    assert figure is not None
    assert over_heads is not None
    assert set(zip(figure.data["heads"], figure.data["d_head"], strict=True)) == {(4, 32), (8, 16)}
    assert set(figure.data["layers"]) == {1, 2}
    assert set(over_heads.data["d_head"]) == {32}
    assert set(over_heads.data["heads"]) == {2, 4}


def test_without_heads_of_a_second_layer_nothing_is_shown() -> None:
    shallow = synthetic.results(layers=(0, 1))
    none = Frames(synthetic.results(layers=(0,)).cells)
    assert (two_layers.composition(shallow), weights_side.subspaces(shallow)) == (None, None)
    assert attention_sinks.facts(none) == softmax_competition.facts(none) == {}
    for cell in (synthetic.cell(0, 0, 0), synthetic.cell(1, 3, 0), CELL.having(score_paths=[])):
        assert score_paths.facts(frames(cell)) == {}
        assert score_paths.score_paths(only(cell)) is None
