"""The tables of heads and edges and the figure of the grid show what the records contain, with their intervals."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace

import pytest

from pathsum.records.composition import CompositionRow
from pathsum.records.results import Results
from pathsum.report.page.document import Table
from pathsum.report.themes.sweep import FIXED, NAMELESS, interval, sweep, widths
from pathsum.report.themes.two_layers import composition, facts, section
from pathsum.report.told import Frames
from tests.report import synthetic
from tests.report.synthetic import only


def tables(results: Results) -> list[list[list[str]]]:
    """Return the entries of the tables on two layers."""
    blocks = [block for block in section(results, {}).blocks if isinstance(block, Table)]
    return [[[entry.text for entry in row] for row in block.rows] for block in blocks]


def test_the_heads_of_the_mechanism_and_the_edges_between_heads_stand_in_tables() -> None:
    results = synthetic.results()
    heads, edges = tables(results)
    assert heads[0] == ["L2H2S0", "L0H0", "0.90", "L1H0", "0.70", "0.27 (0.18)"]
    assert len(edges) == sum(e.composes for c in results.with_layers(2) for e in c.rows(CompositionRow))
    assert edges[0][:3] == ["L2H2S0", "L0H0 → L1H0", "keys"]


def test_the_heads_that_match_and_copy_by_weights_are_counted() -> None:
    found = facts(Frames(only(synthetic.cell(2, 3, 0)).cells))
    assert (found["formed"].tolist(), found["strong"].tolist(), found["weak"].tolist()) == ([True], [True], [False] * 2)
    found = facts(Frames(only(synthetic.cell(2, 3, 0, works=False)).cells))
    assert (found["formed"].tolist(), found["strong"].tolist(), found["weak"].tolist()) == ([False], [], [False] * 3)


def edges(*rows: tuple[float, float]) -> list[CompositionRow]:
    """Return an edge for each (value, p), with chance 0.18 and p-values from 9,999 rotations."""
    return [
        CompositionRow("K", 0, h, 1, h, value, value, 1.0, 0.18, p, 2e-4, p, p / 2, p)
        for h, (value, p) in enumerate(rows)
    ]


def test_the_edges_below_chance_are_counted_and_bounds_of_p_are_marked() -> None:
    """Guards against listing only edges above chance, and against printing the smallest possible p as its value."""
    cell = synthetic.cell(2, 2, 0).having(composition=edges((0.3, 2e-4), (0.28, 0.01), (0.1, 2e-4), (0.17, 0.6)))
    found = facts(Frames(only(cell).cells))
    assert found["edges"]["above"].tolist() == [True, True, False, False]
    assert found["edges"]["below"].tolist() == [False, False, True, False]
    said = section(only(cell), {}).paragraphs[0]
    assert "Of 4 edges of all two-layer models, 2 have a score above chance and 1 below it" in said
    assert "by a median of 0.100" in said
    assert [row[-1] for row in tables(only(cell))[1]] == ["≤ 0.001", "0.010"]


def test_no_count_of_composing_edges_stands_without_precision_and_recall() -> None:
    """Guards against a bare count: on synthetic corpora, three of ten K-edges that composed were not used."""
    results = synthetic.results()
    row = next(r for r in results.calibration if r.detector == "composition_k")
    weak = replace(row, precision=0.714, precision_low=0.5, precision_high=0.86)
    told = replace(results, calibration=[weak if r is row else r for r in results.calibration])
    figure = composition(told)
    assert figure is not None
    (counted,) = [text for text in section(told, {}).paragraphs if "edges compose" in text]
    assert "keys alone: precision 0.71 [0.50, 0.86], recall 1.00 [0.76, 1.00] on synthetic corpora" in counted
    assert "precision 1.00 [0.76, 1.00], recall 1.00" in figure.caption
    unknown = replace(results, calibration=[])
    assert "(precision and recall unknown; keys" in " ".join(section(unknown, {}).paragraphs)


def test_the_sweep_has_a_point_a_model() -> None:
    results = synthetic.results(seeds=(0, 1, 2))
    figure = sweep(results)
    assert figure is not None
    assert list(figure.data["cell"]) == list(results.cells)
    shares = figure.data.set_index("cell").loc["L2H4S0"]
    assert shares["induction"] == shares["previous token"] == 1 / 8
    assert shares[FIXED] == 1 / 8  # the head that looks at itself
    assert shares[NAMELESS] == 6 / 8


def test_no_phase_change_is_not_drawn() -> None:
    figure = sweep(synthetic.results(layers=(2,), heads=(2,), seeds=(0,), works=False))
    assert figure is not None
    assert math.isnan(figure.data["onset_millions"].iloc[0])


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
    return dataclasses.replace(results, cells=grid | beside)


def test_heads_of_other_widths_have_a_figure_of_their_own() -> None:
    results = of_widths(synthetic.results(layers=(1, 2), heads=(2, 4), seeds=(0, 1, 2)))
    figure, over_heads = widths(results), sweep(results)
    assert widths(synthetic.results()) is None
    assert figure is not None
    assert over_heads is not None
    assert set(zip(figure.data["heads"], figure.data["d_head"], strict=True)) == {(4, 32), (8, 16)}
    assert set(figure.data["layers"]) == {1, 2}
    assert "at a total width of 128 per layer" in figure.title
    assert set(over_heads.data["d_head"]) == {32}
    assert set(over_heads.data["heads"]) == {2, 4}
