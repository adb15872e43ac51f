"""The first figure shows final in-context loss drops with their intervals, each above its number of layers."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure as Canvas

from pathsum.records.summary import CellSummary
from pathsum.report.figures.learning import final_drops, headline
from tests.report import synthetic


def between(s: CellSummary, i: int) -> CellSummary:
    """Return the summary ``s`` of the ``i``-th model, with an interval unless it is the first."""
    low, high = (s.in_context_loss_drop_nats - i / 7, s.in_context_loss_drop_nats + i / 9) if i else (None, None)
    return replace(s, in_context_loss_drop_low=low, in_context_loss_drop_high=high)


def test_each_model_is_a_dot_with_its_interval_above_its_number_of_layers() -> None:
    plain = synthetic.results(heads=(2, 3), seeds=(0,))
    cells = {name: replace(c, summary=between(c.summary, i)) for i, (name, c) in enumerate(plain.cells.items())}
    found = replace(plain, cells=cells)
    ax = Canvas().subplots()
    final_drops(ax, found)
    summaries = [c.summary for n in found.layer_counts() for c in found.with_layers(n)]
    dots = [tuple(line.get_xydata()[0]) for line in ax.lines]
    assert [y for _, y in dots] == [s.in_context_loss_drop_nats for s in summaries]
    assert [round(x) for x, _ in dots] == [s.n_layers for s in summaries]
    assert len({x for x, _ in dots}) == len(dots)
    bars = [bar.get_segments()[0][:, 1].tolist() for bar in ax.collections]  # the first model has no interval
    assert bars == [[s.in_context_loss_drop_low, s.in_context_loss_drop_high] for s in summaries[1:]]


def test_the_data_have_the_curves_and_the_final_values_that_are_drawn() -> None:
    plain = synthetic.results(heads=(2, 3), seeds=(0,))
    cells = {name: replace(c, summary=between(c.summary, i)) for i, (name, c) in enumerate(plain.cells.items())}
    found = replace(plain, cells=cells)
    figure = headline(found)
    assert figure is not None
    final = figure.data[figure.data["final_loss_drop_nats"].notna()].set_index("cell")
    assert set(final.index) == set(found.cells)
    for name, s in ((name, cell.summary) for name, cell in found.cells.items()):
        given = (
            s.prefix_matching,
            s.in_context_loss_drop_nats,
            s.in_context_loss_drop_low,
            s.in_context_loss_drop_high,
        )
        row = final.loc[name, [c for c in final if c.startswith("final_")]]
        assert [None if pd.isna(value) else value for value in row] == list(given)
    curves = figure.data[figure.data["final_loss_drop_nats"].isna()]
    with_heads = [c for c in found.cells.values() if c.summary.n_layers]
    assert len(curves) == sum(len(cell.log) for cell in with_heads)
    assert curves["prefix_matching"].notna().all()
    assert not {"loss_drop_nats", "repeat_first_nats"} & set(figure.data)


def test_without_logs_or_without_heads_there_is_no_first_figure() -> None:
    found = synthetic.results(heads=(2,), seeds=(0,))
    assert headline(replace(found, cells={n: replace(c, log=[]) for n, c in found.cells.items()})) is None
    assert headline(synthetic.results(layers=(0,))) is None
