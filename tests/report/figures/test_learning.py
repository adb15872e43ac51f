"""The first figure and the curves over training draw what the summaries and the logs contain."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from pathsum.records.summary import CellSummary
from pathsum.report.figures.learning import final_drops, headline, shade_led
from pathsum.report.figures.symbols import drawable, visible
from tests.report import synthetic


def between(s: CellSummary, i: int) -> CellSummary:
    """Return the summary ``s`` of the ``i``-th model, with an interval unless it is the first."""
    low, high = (s.in_context_loss_drop_nats - i / 7, s.in_context_loss_drop_nats + i / 9) if i else (None, None)
    return replace(s, in_context_loss_drop_low=low, in_context_loss_drop_high=high)


PLAIN = synthetic.results(heads=(2, 3), seeds=(0,))
CELLS = {name: replace(c, summary=between(c.summary, i)) for i, (name, c) in enumerate(PLAIN.cells.items())}
FOUND = replace(PLAIN, cells=CELLS)


def test_each_model_is_a_dot_with_its_interval_above_its_number_of_layers() -> None:
    ax = Canvas().subplots()
    final_drops(ax, FOUND)
    summaries = [c.summary for n in FOUND.layer_counts() for c in FOUND.with_layers(n)]
    dots = [tuple(line.get_xydata()[0]) for line in ax.lines]
    assert [y for _, y in dots] == [s.in_context_loss_drop_nats for s in summaries]
    assert [round(x) for x, _ in dots] == [s.n_layers for s in summaries]
    assert len({x for x, _ in dots}) == len(dots)
    bars = [bar.get_segments()[0][:, 1].tolist() for bar in ax.collections]  # the first model has no interval
    assert bars == [[s.in_context_loss_drop_low, s.in_context_loss_drop_high] for s in summaries[1:]]


def test_the_data_have_the_curves_and_the_final_values_that_are_drawn() -> None:
    figure = headline(FOUND)
    assert figure is not None
    final = figure.data[figure.data["final_loss_drop_nats"].notna()].set_index("cell")
    assert set(final.index) == set(CELLS)
    for name, s in ((name, cell.summary) for name, cell in CELLS.items()):
        drop = (s.in_context_loss_drop_nats, s.in_context_loss_drop_low, s.in_context_loss_drop_high)
        row = final.loc[name, [c for c in final if c.startswith("final_")]]
        assert [None if pd.isna(value) else value for value in row] == [s.prefix_matching, *drop]
    curves = figure.data[figure.data["final_loss_drop_nats"].isna()]
    assert len(curves) == sum(len(cell.log) for cell in CELLS.values() if cell.summary.n_layers)
    assert curves["prefix_matching"].notna().all()


def test_without_curves_or_without_heads_there_is_no_first_figure() -> None:
    for few in (0, 1):
        assert headline(replace(FOUND, cells={n: replace(c, log=c.log[:few]) for n, c in CELLS.items()})) is None
    assert headline(synthetic.results(layers=(0,))) is None


def test_the_tokens_of_weighted_repeats_are_shaded() -> None:
    """Repeats have a larger weight in the models with heads, and none in the zero-layer model."""
    cells = {
        name: replace(c, summary=replace(c.summary, repeat_weight=3.0, repeat_tokens=2_400_000))
        if c.summary.n_layers
        else c
        for name, c in CELLS.items()
    }
    for results, patches in ((FOUND, []), (replace(FOUND, cells=cells), [(0, 2.4)])):
        ax = Canvas().subplots()
        shade_led(ax, results)
        assert [(p.get_x(), p.get_width()) for p in ax.patches if isinstance(p, Rectangle)] == patches
        figure = headline(results)
        assert figure is not None
        assert ("Shaded:" in figure.caption) == bool(patches)


def test_characters_of_tokens_that_cannot_be_seen_are_printed_so_that_they_can() -> None:
    assert visible(" a\n\t") == "␣a↵⇥"
    assert visible("\u202e\x00\u0301") == "\\u{202e}\\x00\\u{301}"
    assert visible("c\u030cas हिन्दी \u030c") == "c\u030cas␣हिन्दी␣\\u{30c}"  # marks are seen on letters
    assert visible(visible(" \u202e")) == visible(" \u202e")
    assert drawable("🙂") in {"🙂", "\\u{1f642}"}
    assert len(visible("x" * 10_000)) == 48
