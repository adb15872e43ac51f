"""The composition graph shows what the records contain."""

from __future__ import annotations

import dataclasses

from pathsum.records.composition import CompositionRow
from pathsum.records.heads import HeadRow
from pathsum.report.themes.two_layers import composition, section
from tests.report import synthetic


def test_the_graph_has_every_edge_of_every_model_and_draws_the_best_model_of_each_width() -> None:
    results = synthetic.results()
    figure = composition(results)
    assert figure is not None
    assert len(figure.data) == sum(len(c.rows(CompositionRow)) for c in results.cells.values())
    assert set(figure.data.loc[figure.data["composes"], "kind"]) == {"K"}
    counts = (f"{kind}: 40 edges, {n} composing and 0 below chance" for kind, n in (("Q", 0), ("K", 4), ("V", 0)))
    assert f"{'; '.join(counts)}." in " ".join(section(results, {}).paragraphs)


def test_a_deeper_model_has_a_graph_too() -> None:
    """An edge may skip a layer."""
    results = synthetic.results(layers=(2,), heads=(3,), seeds=(0,))
    (name, cell), *_ = results.cells.items()
    deep = dataclasses.replace(cell.summary, n_layers=3)
    third = [dataclasses.replace(h, layer=2) for h in cell.rows(HeadRow) if h.layer == 1]
    over = [dataclasses.replace(e, late_layer=2) for e in cell.rows(CompositionRow)]
    changed = dataclasses.replace(cell, summary=deep).having(
        heads=[*cell.rows(HeadRow), *third], composition=[*cell.rows(CompositionRow), *over]
    )
    assert composition(dataclasses.replace(results, cells={name: changed})) is not None


def test_without_composition_there_is_no_graph() -> None:
    assert composition(synthetic.results(layers=(0, 1))) is None
