"""Zero layers: the direct path as a bigram table (docs/framework.md §3.1)."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.records.corpus import BigramRow
from pathsum.records.results import Cell, Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, in_detail, picture, row
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Kind, Table
from pathsum.report.theme import DetectorText, Theme
from pathsum.report.told import Frames

TITLE = "Zero layers"
BIGRAMS = 12  # rows of the table
COLUMNS = {"corpus_log_prob_nats": "corpus log P (nats)", "model_log_prob_nats": "W_U W_E log P (nats)"}
POINTS, LABELS = 400, 5  # most frequent bigrams drawn, and labeled


def facts(results: Results) -> dict[str, Any]:
    cells, detailed = Frames(results.cells).cells, [c for c in in_detail(results).values() if c.rows(BigramRow)]
    losses = cells.loc[cells["n_layers"] == 0, "val_loss_nats"].astype(float)
    return {
        "corpus": results.corpus,
        "losses": losses,
        "shown": cells.loc[[cell.name for cell in detailed]],
        "pairs": _frequent(detailed, POINTS),
        "frequent": _frequent(results.of_depth(0)[:1], BIGRAMS),
    }


def table(found: dict[str, Any]) -> Table:
    rows = found["frequent"]
    shown = rows.drop(columns="cell").assign(token=rows["token"].map(visible), next=rows["next"].map(visible))
    caption = f"The most frequent bigrams of the training text, in the corpus (smoothed) and in {rows['cell'].max()}."
    kinds: dict[str, Kind] = {"token": "token", "next": "token"}
    return told.table(shown.rename(columns=COLUMNS), caption, kinds=kinds, csv="bigrams.csv")


def _frequent(cells: Sequence[Cell], n: int) -> pd.DataFrame:
    rows = Frames({cell.name: cell for cell in cells}).bigrams.drop(columns=["n_layers", "n_heads"])
    rows = rows.sort_values("count", ascending=False, kind="stable").groupby("cell").head(n)
    return rows[["cell", *rows.columns.drop("cell")]]


def bigrams(results: Results) -> Figure | None:
    """Draw log P(next | token) by the direct path against the corpus, and the losses of zero-layer models."""
    found = facts(results)
    shown, pairs = found["shown"], found["pairs"]
    if shown.empty:
        return None
    panels = len(shown) + (len(found["losses"]) > 0)

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, panels)
        for ax, (name, n_layers) in zip(axes, shown["n_layers"].items(), strict=False):
            _scatter(ax, name, pairs[pairs["cell"] == name], symbols.layer_colour(n_layers))
        _label(axes[0], pairs[pairs["cell"] == shown.index[0]])
        if panels > len(shown):
            _bars(axes[-1], found)

    caption = "On the diagonal, a frequent bigram is as probable by the direct path W_U W_E as in the corpus."
    title = "The direct path and the corpus's bigrams"
    return picture("bigrams", title, caption, pairs, (4.4 * panels, 4.2), paint)


def _scatter(ax: Axes, name: str, pairs: pd.DataFrame, colour: str) -> None:
    x, y = pairs["corpus_log_prob_nats"], pairs["model_log_prob_nats"]
    low = min(x.min(), y.min()) - 0.3
    ax.plot([low, 0], [low, 0], color=symbols.FAINT, lw=1, ls="--")
    sns.scatterplot(x=x, y=y, color=colour, s=18, alpha=0.5, linewidth=0, ax=ax)
    ax.set(xlabel="corpus log P(next | token) (nats)", ylabel=f"direct path log P (nats), {symbols.DIRECT_PATH}")
    ax.set_title(name)


def _label(ax: Axes, pairs: pd.DataFrame) -> None:
    """Label the most frequent pairs at the right edge, below the diagonal."""
    low, high = ax.get_ylim()
    gap, at = 0.07 * (high - low), high
    arrow = {"arrowstyle": "-", "color": symbols.FAINT, "lw": 0.7}
    for _, pair in pairs.head(LABELS).sort_values("model_log_prob_nats", ascending=False, kind="stable").iterrows():
        at = min(at - gap, pair["model_log_prob_nats"])
        words = f"{symbols.drawable(pair['token'])} {symbols.drawable(pair['next'])}"
        place = (pair["corpus_log_prob_nats"], pair["model_log_prob_nats"])
        ax.annotate(words, place, (1.0, at), textcoords=("axes fraction", "data"), ha="right", va="center",
                    fontsize=8.5, family="DejaVu Sans", parse_math=False, arrowprops=arrow)  # fmt: skip


def _bars(ax: Axes, found: dict[str, Any]) -> None:
    corpus = {"unigram": found["corpus"].unigram_loss_nats, "bigram": found["corpus"].bigram_loss_nats}
    losses = pd.DataFrame([*corpus.items(), *found["losses"].items()], columns=["model", "loss"])
    palette = {name: "#c9c9c9" if name in corpus else symbols.layer_colour(0) for name in losses["model"]}
    sns.barplot(losses, x="loss", y="model", hue="model", palette=palette, errorbar=None, ax=ax)
    for place, loss in enumerate(losses["loss"]):
        ax.annotate(f"{loss:.3f}", (loss, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set(xlabel=symbols.LOSS, ylabel="", xlim=(0, losses["loss"].max() * 1.2))
    ax.set_title("corpus models and zero layers")
    ax.grid(False, axis="y")


section = told.from_results(TITLE, "zero_layers", facts, most_frequent=table)
THEME = Theme(
    TITLE,
    section,
    (bigrams,),
    {"bigrams": ("bigrams", "corpus", "summary")},
    {
        "bigram": DetectorText(
            "bigrams", "the five likeliest successors of each word; those of the direct path of a zero-layer model"
        )
    },
    ("bigram",),
    tables=("bigrams", "corpus", "ngrams"),
)
