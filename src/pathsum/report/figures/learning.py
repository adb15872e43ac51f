"""Figures of training: induction and in-context learning against tokens seen."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import layers_label
from pathsum.records.results import Results
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, layer_palette, legend_of_depths, of_models, picture, row
from pathsum.report.told import Frames

DOT: dict[str, Any] = {"ms": 5, "mec": "white", "mew": 0.7, "zorder": 4}
CURVES = {
    "matching": "prefix_matching",
    "previous": "previous_token_first_layer",
    "in_context_loss_drop_nats": "loss_drop_nats",
    "repeat_first_loss_nats": "repeat_first_nats",
    "repeat_second_loss_nats": "repeat_second_nats",
}
FINAL = {
    "prefix_matching": "final_prefix_matching",
    "in_context_loss_drop_nats": "final_loss_drop_nats",
    "in_context_loss_drop_low": "final_loss_drop_low_nats",
    "in_context_loss_drop_high": "final_loss_drop_high_nats",
}
PANELS = {
    "prefix_matching": symbols.PREFIX_MATCHING,
    "loss_drop_nats": symbols.LOSS_DROP,
    "repeat_second_nats": symbols.REPEAT_LOSS,
}


def headline(results: Results) -> Figure | None:
    """Draw prefix matching in training, and the final in-context loss drop of each model. None without heads or
    without curves."""
    t = Frames(results.cells)
    data = _training(t)
    if data["prefix_matching"].isna().all() or not results.has_curves:
        return None

    def paint(canvas: Canvas) -> None:
        left, right = row(canvas, 2)
        _lines(left, data, "prefix_matching", lw=1.0, alpha=0.35)
        _means(left, data, results)
        for s in (c.summary for c in results.cells.values()):
            if s.prefix_matching is not None:
                end, colour = ([s.tokens_seen / 1e6], [s.prefix_matching]), symbols.layer_colour(s.n_layers)
                of_models(left.plot(*end, "o", color=colour, **DOT), s.cell)
        shade_led(left, results)
        left.set(xlabel=symbols.TOKENS_SEEN, ylabel=symbols.PREFIX_MATCHING, title="Induction heads, in training")
        final_drops(right, results)
        right.set(xlabel="layers", ylabel=symbols.LOSS_DROP, title="In-context learning, after training")

    caption = (
        "Lines: models (thin) and their means (thick) during training. Dots: final values of each model, by heads and "
        f"seed, on the windows of the verdicts, with 95 % intervals over documents.{led_caption(results)}"
    )
    curves = data[["cell", "layers", "heads", "tokens_millions", "prefix_matching"]].dropna()
    shown = pd.concat([curves, _columns(t.cells.reset_index(), FINAL)])
    return picture(
        "headline", "Prefix matching and in-context loss drop", caption, shown, (8.8, 4.1), paint, (4.4, 7.4)
    )


def phase_change(results: Results) -> Figure | None:
    """Draw prefix matching, loss drop and loss on repeats in training (docs/framework.md §6.3). None without heads or
    without curves."""
    t = Frames(results.cells)
    data = _training(t)
    last = data.dropna(subset="prefix_matching")["tokens_millions"].max()  # of models with heads
    if data["prefix_matching"].isna().all() or not results.has_curves:
        return None

    def paint(canvas: Canvas) -> None:
        matching, drop, repeats = axes = row(canvas, len(PANELS))
        _lines(matching, data, "prefix_matching", lw=1.4, alpha=0.9)
        _lines(drop, data, "loss_drop_nats", lw=1.4, alpha=0.9)
        _lines(repeats, data, "repeat_first_nats", lw=1.0, alpha=0.8, ls=(0, (4, 2)))
        _lines(repeats, data, "repeat_second_nats", lw=1.6, alpha=0.9)
        for guessing in set(t.cells["repeat_guessing_nats"]):
            repeats.axhline(guessing, color=symbols.FAINT, ls=":", lw=1.4, zorder=0)
        for ax, label in zip(axes, PANELS.values(), strict=True):
            for n_layers, onset in t.cells[["n_layers", "onset_tokens"]].dropna().itertuples(index=False, name=None):
                ax.axvline(onset / 1e6, color=symbols.layer_colour(int(n_layers)), lw=0.9, ls=":", zorder=0)
            shade_led(ax, results)
            ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=label, xlim=(-0.02 * last, 1.02 * last))
        repeats.set_title("dashed: first copy; solid: second; dotted: guessing", fontweight="normal", fontsize=10)
        legend_of_depths(repeats, results.layer_counts(), lw=2)
        matching.set_title("dotted: onset of each model", fontweight="normal", fontsize=10)

    caption = f"A line per model: means over a few windows, not those of the verdicts.{led_caption(results)}"
    return picture("phase_change", "The phase change", caption, data, (4.6 * len(PANELS), 4.0), paint)


def _training(t: Frames) -> pd.DataFrame:
    log = t.log.drop(columns="prefix_matching").join(t.cells[["n_layers", "n_heads"]], on="cell")
    return _columns(log, CURVES)


def _columns(rows: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """Return the columns ``names`` of ``rows``, renamed, after those that name the model and the tokens seen."""
    about = {
        "cell": rows["cell"],
        "layers": rows["n_layers"].map(layers_label),
        "heads": rows["n_heads"],
        "tokens_millions": rows["tokens_seen"] / 1e6,
    }
    return pd.DataFrame(about | {name: rows[column].astype(float) for column, name in names.items()})


def _lines(ax: Axes, data: pd.DataFrame, column: str, **style: Any) -> None:
    """Draw one line per model, colored by depth."""
    for name, part in data.dropna(subset=column).groupby("cell", sort=False):
        colour = symbols.layer_colour(int(part["layers"].iloc[0].split()[0]))
        of_models(ax.plot(part["tokens_millions"], part[column], color=colour, **style), str(name), "both")


def final_drops(ax: Axes, results: Results) -> None:
    """Draw the final in-context loss drop of each model with its interval, by number of layers."""
    counts = results.layer_counts()
    for n_layers in counts:
        models = [c.summary for c in results.with_layers(n_layers)]
        for i, s in enumerate(models):
            at, colour = n_layers + 0.6 * ((i + 0.5) / len(models) - 0.5), symbols.layer_colour(n_layers)
            if (low := s.in_context_loss_drop_low) is not None and (high := s.in_context_loss_drop_high) is not None:
                ax.vlines(at, low, high, color=colour, lw=1.2, alpha=0.6)
            of_models(ax.plot([at], [s.in_context_loss_drop_nats], "o", color=colour, **DOT), s.cell)
    ax.set(xticks=counts, xlim=(min(counts) - 0.5, max(counts) + 0.5))


def _means(ax: Axes, data: pd.DataFrame, results: Results) -> None:
    """Draw the mean prefix matching of the models of each number of layers, if evaluated at the same tokens seen."""
    known = data.dropna(subset="prefix_matching")
    grids = known.groupby(["layers", "cell"])["tokens_millions"].agg(tuple).groupby("layers").nunique()
    shared, palette = known[known["layers"].map(grids) == 1], layer_palette(results)
    style = {"hue": "layers", "palette": palette, "hue_order": list(palette), "errorbar": None, "legend": False}
    if len(shared):
        sns.lineplot(shared, x="tokens_millions", y="prefix_matching", lw=2.6, ax=ax, **style)
    legend_of_depths(ax, [n for n in results.layer_counts() if layers_label(n) in set(known["layers"])], lw=2.6)


def _led(results: Results) -> pd.DataFrame:
    return Frames(results.cells).cells.query("repeat_weight > 1").sort_values("n_layers")


def shade_led(ax: Axes, results: Results) -> None:
    """Shade the tokens seen while repeats had a larger weight in the loss, on an axis in millions of tokens."""
    led = _led(results)
    for tokens in sorted(set(led["repeat_tokens"].where(led["repeat_tokens"] > 0, led["tokens_seen"]))):
        ax.axvspan(0, tokens / 1e6, color=symbols.FAINT, alpha=0.25, lw=0, zorder=0)


def led_caption(results: Results) -> str:
    """Describe the area that ``shade_led`` shades; empty if no model has one."""
    if not (depths := " and ".join(map(layers_label, _led(results)["n_layers"].unique().tolist()))):
        return ""
    return f" Shaded: repeated pairs have a larger weight in the training loss of models with {depths}."
