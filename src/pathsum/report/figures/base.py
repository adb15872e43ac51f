"""The type of a figure, the style that all figures share, and helpers for panels. Equal records give equal bytes."""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import matplotlib
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Text

from pathsum.claims.formatting import layers_label, number, spelled
from pathsum.records.results import Cell, Results
from pathsum.report.figures import symbols

STYLE = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("notebook", font_scale=0.95),
    "svg.hashsalt": "pathsum",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "figure.facecolor": "white",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
}


NARROW = 5.0  # inches
Said = Literal["x", "y", "both"]  # the coordinates that are values
_models: WeakKeyDictionary[Line2D | PathCollection, tuple[Sequence[str], Said]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Points:
    """Points of a model in a figure, for the pointer: shares of its width and height, from the top left, with values
    in words."""

    model: str
    label: str  # of the values
    at: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class Figure:
    """A figure as SVG and PNG, with its title, its caption and a table that has at least the numbers shown."""

    name: str
    title: str
    caption: str
    svg: bytes
    png: bytes
    data: pd.DataFrame
    wide: bool  # whether the page shows it at full width
    points: tuple[Points, ...] = ()
    narrow: bytes = b""  # SVG for a phone, if there is one


def picture(
    name: str,
    title: str,
    caption: str,
    data: pd.DataFrame,
    size_inches: tuple[float, float],
    paint: Callable[[Canvas], None],
    stacked: tuple[float, float] | None = None,
) -> Figure:
    """Paint a new canvas in the shared style, with names of models and heads spelled out, and return the figure.
    ``stacked``: its size on a phone, if ``paint`` knows narrow canvases, as ``row`` does."""

    def painted(size: tuple[float, float]) -> tuple[Canvas, bytes]:
        canvas = Canvas(figsize=size, layout="constrained")
        paint(canvas)
        _spell_names(canvas)
        return canvas, _bytes(canvas, "svg", {"Date": None, "Creator": None})

    with matplotlib.rc_context(STYLE):
        canvas, svg = painted(size_inches)
        canvas.set_layout_engine(None)  # the PNG reuses the layout of the SVG, which takes time to compute
        return Figure(
            name=name,
            title=title,
            caption=caption,
            svg=svg,
            png=_bytes(canvas, "png", {"Software": None}),
            data=data,
            wide=size_inches[0] > 8,
            points=tuple(_points(canvas)),
            narrow=painted(stacked)[1] if stacked else b"",
        )


def _spell_names(canvas: Canvas) -> None:
    for text in canvas.findobj(Text):
        text.set_text(spelled(text.get_text()))
    for axis in (axis for ax in canvas.axes for axis in (ax.xaxis, ax.yaxis)):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        if labels != (names := [spelled(label) for label in labels]):
            axis.set_ticks(axis.get_ticklocs(), names)


def _bytes(canvas: Canvas, kind: str, metadata: dict[str, str | None]) -> bytes:
    buffer = io.BytesIO()
    canvas.savefig(buffer, format=kind, metadata=metadata, dpi=160)
    return buffer.getvalue()


def of_models(drawn: Iterable[Line2D | PathCollection], models: str | Iterable[str], said: Said = "y") -> None:
    """Note the model of each point of ``drawn``, or one for all, which the page names at the pointer."""
    for artist in drawn:
        _models[artist] = ([models] if isinstance(models, str) else list(models)), said


def _points(canvas: Canvas) -> Iterable[Points]:
    for artist in canvas.findobj(lambda artist: artist in _models):
        assert isinstance(artist, Line2D | PathCollection)
        (names, said), ax = _models[artist], artist.axes
        assert isinstance(ax, Axes)
        data = np.asarray(artist.get_xydata() if isinstance(artist, Line2D) else artist.get_offsets(), np.float64)
        shares = ax.transData.transform(data) / (canvas.bbox.width, canvas.bbox.height)
        labels = (ax.get_xlabel(), ax.get_ylabel())
        for name in dict.fromkeys(names):
            mine = [i for i in range(len(data)) if names[i % len(names)] == name and np.isfinite(data[i]).all()]
            values = [(number(x), number(y)) for x, y in data]
            words = [{"x": x, "y": y, "both": f"{y} at {x}"}[said] for x, y in values]
            at = tuple((round(float(shares[i, 0]), 4), round(1 - float(shares[i, 1]), 4), words[i]) for i in mine)
            yield Points(name, " ".join(labels[said != "x"].split()), at)


def row(canvas: Canvas, n: int, *, sharey: bool = False, widths: Sequence[float] | None = None) -> list[Axes]:
    """Add ``n`` panels side by side to ``canvas``, or on a narrow one below each other, and return them."""
    if canvas.get_figwidth() < NARROW:
        return list(canvas.subplots(n, 1, squeeze=False)[:, 0])
    return list(canvas.subplots(1, n, squeeze=False, sharey=sharey, width_ratios=widths)[0])


def layer_palette(results: Results) -> dict[str, str]:
    """Return the color of each number of layers, by its label."""
    return {layers_label(n): symbols.layer_colour(n) for n in results.layer_counts()}


def legend_of_depths(ax: Axes, depths: Iterable[int], style: str = "-", **line: Any) -> None:
    """Add a legend that names the color of each number of layers."""
    for n in depths:
        ax.plot([], [], style, color=symbols.layer_colour(n), label=layers_label(n), **line)
    ax.legend(loc="best")


def axes_through_zero(ax: Axes) -> None:
    """Draw thin lines through x = 0 and y = 0."""
    ax.axhline(0, color=symbols.FAINT, lw=0.8)
    ax.axvline(0, color=symbols.FAINT, lw=0.8)


def errors(data: pd.DataFrame, value: str = "value", low: str = "low", high: str = "high") -> list[pd.Series]:
    """Return the lengths of the lower and upper error bars, from the columns of the value and its interval."""
    return [data[value] - data[low], data[high] - data[value]]


def side_by_side(groups: pd.Series, order: Sequence[object], width: float) -> list[float]:
    """Return a position on an axis for each entry of ``groups``."""
    within, sizes = groups.groupby(groups).cumcount(), groups.map(groups.value_counts())
    return [order.index(g) + width * ((i + 0.5) / n - 0.5) for g, i, n in zip(groups, within, sizes, strict=True)]


def in_detail(results: Results) -> dict[int, Cell]:
    """Return, by number of layers, the model to show in detail: of the models with the middle number of heads (the
    larger of two), the one with the lowest held-out loss."""
    found = {}
    for n_layers in results.layer_counts():
        cells = results.with_layers(n_layers)
        counts = sorted({c.summary.n_heads for c in cells})
        middle = [c for c in cells if c.summary.n_heads == counts[len(counts) // 2]]
        found[n_layers] = min(middle, key=lambda c: c.summary.val_loss_nats)
    return found


def deep_in_detail(results: Results) -> Cell | None:
    """Return the model to show in detail of those with two layers or, without one, with the fewest layers past two."""
    return next((cell for n_layers, cell in in_detail(results).items() if n_layers > 1), None)
