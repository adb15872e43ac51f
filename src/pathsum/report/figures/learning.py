"""Figures of training: induction and in-context learning against tokens seen."""

from __future__ import annotations

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import layers_label
from pathsum.records.results import Results
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, layer_palette, legend_of_depths, picture, row

DOT: dict[str, Any] = {"ms": 5, "mec": "white", "mew": 0.7, "zorder": 4}


def headline(results: Results) -> Figure | None:
    """Draw prefix matching against tokens seen, and the final in-context loss drop of each model."""
    data = _training(results)
    if data.empty:
        return None
    heads = "prefix_matching" in _panels(data)
    curves = data[["cell", "layers", "heads", "tokens_millions", "prefix_matching"]].dropna()
    shown = pd.concat([curves, _final(results)])

    def paint(canvas: Canvas) -> None:
        *left, right = row(canvas, 1 + heads)
        for ax in left:
            _lines(ax, data, "prefix_matching", results, lw=1.0, alpha=0.35)
            _means(ax, data, "prefix_matching", results)
            _final_matching(ax, results)
            shade_led(ax, results)
            ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=symbols.PREFIX_MATCHING, title="Induction heads, in training")
        final_drops(right, results)
        right.set(xlabel="layers", ylabel=symbols.LOSS_DROP, title="In-context learning, after training")

    lines = (
        "Lines: models (thin) and their means (thick), on the few windows that are evaluated during training. "
        if heads
        else ""
    )
    caption = (
        f"{lines}Dots: final values of each model, on the windows of the verdicts. Bars: 95 % intervals of the loss "
        f"drop over documents.{led_caption(results) if heads else ''}"
    )
    title = "Prefix matching and in-context loss drop" if heads else "In-context loss drop"
    return picture("headline", title, caption, shown, (4.4 * (1 + heads), 4.1), paint)


def phase_change(results: Results) -> Figure | None:
    """Draw prefix matching (left out if no model has heads), the in-context loss drop, and the loss on each copy of
    repeated random tokens against tokens seen, with the onset of each model (docs/framework.md §6.3)."""
    data = _training(results)
    if data.empty:
        return None
    panels = {**_panels(data), "repeat": symbols.REPEAT_LOSS}

    def paint(canvas: Canvas) -> None:
        for ax, (column, label) in zip(row(canvas, len(panels)), panels.items(), strict=True):
            if column == "repeat":
                _lines(ax, data, "repeat_first_nats", results, lw=1.0, alpha=0.8, ls=(0, (4, 2)))
                _lines(ax, data, "repeat_second_nats", results, lw=1.6, alpha=0.9)
                for guessing in {c.summary.repeat_guessing_nats for c in results.cells.values()}:
                    ax.axhline(guessing, color=symbols.FAINT, ls=":", lw=1.4, zorder=0)
                ax.set_title("dashed: first copy; solid: second; dotted: guessing", fontweight="normal", fontsize=10)
            else:
                _lines(ax, data, column, results, lw=1.4, alpha=0.9)
            for s in (c.summary for c in results.cells.values()):
                if s.onset_tokens is not None:
                    ax.axvline(s.onset_tokens / 1e6, color=symbols.layer_colour(s.n_layers), lw=0.9, ls=":", zorder=0)
            shade_led(ax, results)
            ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=label)
        legend_of_depths(canvas.axes[-1], results.layer_counts(), lw=2)
        canvas.axes[0].set_title("dotted: onset of each model", fontweight="normal", fontsize=10)

    windows = "These are not the windows of the verdicts, so levels differ."
    caption = f"A line per model: means over a few windows. {windows}{led_caption(results)}"
    return picture("phase_change", "The phase change", caption, data, (4.6 * len(panels), 4.0), paint)


def _panels(data: pd.DataFrame) -> dict[str, str]:
    """Return the axis labels of the panels of prefix matching (left out without heads) and loss drop, by column."""
    matching = {"prefix_matching": symbols.PREFIX_MATCHING} if data["prefix_matching"].notna().any() else {}
    return {**matching, "loss_drop_nats": symbols.LOSS_DROP}


# ---- data -----------------------------------------------------------------------------------------------------------


def best(scores: list[list[float]]) -> float | None:
    """Return the largest score in ``scores[layer][head]``; None without heads."""
    return max((s for layer in scores for s in layer), default=None)


def _training(results: Results) -> pd.DataFrame:
    rows = [
        {
            "cell": c.name,
            "layers": layers_label(c.summary.n_layers),
            "heads": c.summary.n_heads,
            "tokens_millions": e.tokens_seen / 1e6,
            "prefix_matching": best(e.prefix_matching),
            "previous_token_first_layer": best(e.previous_token[:1]),
            "loss_drop_nats": e.in_context_loss_drop_nats,
            "repeat_first_nats": e.repeat_first_loss_nats,
            "repeat_second_nats": e.repeat_second_loss_nats,
        }
        for c in results.cells.values()
        for e in c.log
    ]
    floats = {"prefix_matching": float, "previous_token_first_layer": float}
    return pd.DataFrame(rows).astype(floats) if rows else pd.DataFrame()


def _final(results: Results) -> pd.DataFrame:
    """Return a row per model with its final scores on the windows of the verdicts."""
    rows = [
        {
            "cell": c.name,
            "layers": layers_label(c.summary.n_layers),
            "heads": c.summary.n_heads,
            "tokens_millions": c.summary.tokens_seen / 1e6,
            "final_prefix_matching": c.summary.prefix_matching,
            "final_loss_drop_nats": c.summary.in_context_loss_drop_nats,
            "final_loss_drop_low_nats": c.summary.in_context_loss_drop_low,
            "final_loss_drop_high_nats": c.summary.in_context_loss_drop_high,
        }
        for c in results.cells.values()
    ]
    maybe = ("final_prefix_matching", "final_loss_drop_low_nats", "final_loss_drop_high_nats")
    return pd.DataFrame(rows).astype(dict.fromkeys(maybe, float))


# ---- painting -------------------------------------------------------------------------------------------------------


def _lines(ax: Axes, data: pd.DataFrame, column: str, results: Results, **style: Any) -> None:
    """Draw one line per model, colored by depth."""
    for n_layers in results.layer_counts():
        for cell in results.with_layers(n_layers):
            part = data[data["cell"] == cell.name].dropna(subset=[column])
            if not part.empty:
                ax.plot(part["tokens_millions"], part[column], color=symbols.layer_colour(n_layers), **style)


def _final_matching(ax: Axes, results: Results) -> None:
    """Draw the prefix matching of each model on the windows of the verdicts, at the end of its line."""
    for s in (c.summary for c in results.cells.values()):
        if s.prefix_matching is not None:
            ax.plot([s.tokens_seen / 1e6], [s.prefix_matching], "o", color=symbols.layer_colour(s.n_layers), **DOT)


def final_drops(ax: Axes, results: Results) -> None:
    """Draw the in-context loss drop of each model with its interval, on the windows of the verdicts, by number of
    layers."""
    for n_layers in results.layer_counts():
        models = [c.summary for c in results.with_layers(n_layers)]
        for i, s in enumerate(models):
            at, colour = n_layers + 0.6 * ((i + 0.5) / len(models) - 0.5), symbols.layer_colour(n_layers)
            if (low := s.in_context_loss_drop_low) is not None and (high := s.in_context_loss_drop_high) is not None:
                ax.vlines(at, low, high, color=colour, lw=1.2, alpha=0.6)
            ax.plot([at], [s.in_context_loss_drop_nats], "o", color=colour, **DOT)
    ax.set(xticks=results.layer_counts(), xlim=(min(results.layer_counts()) - 0.5, max(results.layer_counts()) + 0.5))


def _means(ax: Axes, data: pd.DataFrame, column: str, results: Results) -> None:
    """Draw the mean of ``column`` over the models of each number of layers, if all were evaluated at the same tokens
    seen. Add the legend."""
    known = data.dropna(subset=[column])
    grids = known.groupby(["layers", "cell"])["tokens_millions"].agg(tuple).groupby("layers").nunique()
    shared, palette = known[known["layers"].map(grids) == 1], layer_palette(results)
    style = {"hue": "layers", "palette": palette, "hue_order": list(palette), "errorbar": None, "legend": False}
    sns.lineplot(shared, x="tokens_millions", y=column, lw=2.6, ax=ax, **style)
    depths = [n for n in results.layer_counts() if layers_label(n) in set(known["layers"])]
    legend_of_depths(ax, depths, lw=2.6)


def shade_led(ax: Axes, results: Results) -> None:
    """Shade the tokens seen while repeats had a larger weight in the loss, on an axis in millions of tokens."""
    led = [c.summary for c in results.cells.values() if c.summary.repeat_weight > 1]
    for tokens in sorted({s.repeat_tokens or s.tokens_seen for s in led}):
        ax.axvspan(0, tokens / 1e6, color=symbols.FAINT, alpha=0.25, lw=0, zorder=0)


# ---- captions -------------------------------------------------------------------------------------------------------


def led_caption(results: Results) -> str:
    """Describe the area that ``shade_led`` shades; empty if no model has one."""
    of = [n for n in results.layer_counts() if any(c.summary.repeat_weight > 1 for c in results.with_layers(n))]
    depths = " and ".join(map(layers_label, of))
    if not of:
        return ""
    return f" Shaded: repeated pairs have a larger weight in the training loss of models with {depths}."
