"""The figure of subspaces shows what the records contain."""

from __future__ import annotations

from pathsum.figures.subspaces import subspaces
from tests.report import synthetic

TWO = synthetic.results(layers=(2,), heads=(3,), seeds=(0,))


def test_the_figure_marks_the_edge_from_the_previous_token_head_to_the_induction_head() -> None:
    figure = subspaces(TWO)
    assert figure is not None
    marked = figure.data[figure.data["induction"]]
    assert list(marked["kind"]) == ["Q", "K", "V"]
    assert set(zip(marked["early"], marked["late"], strict=True)) == {("L0H0", "L1H0")}
    assert subspaces(synthetic.results(layers=(0, 1))) is None
