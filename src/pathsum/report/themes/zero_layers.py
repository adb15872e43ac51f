"""The section on zero layers: the direct path as a bigram table (docs/framework.md §3.1)."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import number, span
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row, stacked
from pathsum.figures.detail import in_detail
from pathsum.figures.symbols import visible
from pathsum.page.document import Column, Section, Table, Text
from pathsum.records.bigrams import BigramRow
from pathsum.records.results import Cell, Results
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "Zero layers"
BIGRAMS = 12  # rows of the table
POINTS, LABELS = 400, 5  # most frequent bigrams drawn, and labeled


def section(results: Results, figures: Figures) -> Section:
    """Describe the corpus, and compare its bigrams with W_U W_E, and its bigram loss with that of zero-layer models."""
    return Section.of(TITLE, _text(results), (*drawn(figures, "bigrams"), *map(_table, results.with_layers(0)[:1])))


def _text(results: Results) -> tuple[str, ...]:
    cells = results.with_layers(0)
    corpus = results.corpus
    about = (
        f"The corpus is {corpus.name}: {number(corpus.train_tokens)} training tokens of a {corpus.d_vocab:,}-token "
        f"vocabulary. Of its held-out documents, {corpus.tuning_documents:,} are used for evaluation during training "
        "and for choosing heads and the smoothing of bigrams. The other "
        f"{corpus.verdict_documents:,} are kept for the verdicts, which use up to {corpus.judged_windows:,} windows "
        f"from {corpus.judged_documents:,} of them; no document supplies more than "
        f"{number(100 * corpus.largest_document, 2)} % of the windows. On these windows a unigram model has a loss of "
        f"{number(corpus.unigram_loss_nats, 3)} nats per token, and the best smoothed bigram model "
        f"{number(corpus.bigram_loss_nats, 3)} (smoothing: {corpus.bigram_smoothing})."
    )
    model = (
        "With zero layers, the logits are W_U W_E applied to the current token, so the model can only be a bigram "
        f"table. Its held-out loss is {span([c.summary.val_loss_nats for c in cells], 3)} nats per token (range over "
        "models)."
    )
    return about, model if cells else "This sweep has no zero-layer model."


def _table(cell: Cell) -> Table:
    """Show the log-probabilities of the most frequent bigrams, in the corpus and by the direct path."""
    return Table.of(
        sorted(cell.rows(BigramRow), key=lambda b: -b.count)[:BIGRAMS],
        Text("token", lambda b: visible(b.token), kind="token"),
        Text("next", lambda b: visible(b.next), kind="token"),
        Column("count", "count"),
        Column("corpus log P (nats)", "corpus_log_prob_nats"),
        Column("W_U W_E log P (nats)", "model_log_prob_nats"),
        caption="The most frequent bigrams of the training text: count, and log-probability of the next token in the "
        f"corpus (from smoothed counts) and by the direct path of {cell.name}.",
        csv="bigrams.csv",
    )


def bigrams(results: Results) -> Figure | None:
    """Draw log P(next | token) by the direct path against that of the corpus for the POINTS most frequent bigrams, for
    the models of ``in_detail``, and the losses of zero-layer models. None without bigrams."""
    shown = [cell for cell in in_detail(results).values() if cell.rows(BigramRow)]
    if not shown:
        return None
    frequent = stacked(shown, BigramRow).sort_values("count", ascending=False, kind="stable")
    data = pd.concat([frequent[frequent["cell"] == c.name].head(POINTS) for c in shown], ignore_index=True)
    zero = results.with_layers(0)

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, len(shown) + bool(zero))
        for ax, cell in zip(axes, shown, strict=False):
            _scatter(ax, cell, data[data["cell"] == cell.name])
        _label(axes[0], data[data["cell"] == shown[0].name])
        if zero:
            _bars(axes[-1], results, zero)

    fits = "; ".join(
        f"{number(c.summary.bigram_correlation)} for {c.name} (unigram {number(c.summary.unigram_correlation)}, "
        f"partial {number(c.summary.bigram_partial_correlation)})"
        for c in shown
    )
    caption = (
        "Each dot is a frequent bigram. On the diagonal, its probability by the direct path W_U W_E equals that in the "
        "corpus. Correlation of the two log-probabilities over all bigrams of the training text, weighted by frequency "
        "(unigram: with log P(next) in place of the direct path; partial: given log P(next), 0 for a unigram model): "
        f"{fits}."
    )
    if zero:
        excess = [c.summary.val_loss_nats - results.corpus.bigram_loss_nats for c in zero]
        worst = number(max(map(abs, excess)), 3)
        caption += (
            f" Right: held-out loss. That of the zero-layer models differs from that of the best bigram model by at "
            f"most {worst} nats per token."
        )
    return picture(
        "bigrams",
        "The direct path and the corpus's bigrams",
        caption,
        data,
        (4.4 * (len(shown) + bool(zero)), 4.2),
        paint,
    )


def _scatter(ax: Axes, cell: Cell, pairs: pd.DataFrame) -> None:
    low = min(pairs["corpus_log_prob_nats"].min(), pairs["model_log_prob_nats"].min()) - 0.3
    ax.plot([low, 0], [low, 0], color=symbols.FAINT, lw=1, ls="--")
    colour = symbols.layer_colour(cell.summary.n_layers)
    sns.scatterplot(
        pairs, x="corpus_log_prob_nats", y="model_log_prob_nats", color=colour, s=18, alpha=0.5, linewidth=0, ax=ax
    )
    ax.set(xlabel="corpus log P(next | token) (nats)", ylabel=f"direct path log P (nats), {symbols.DIRECT_PATH}")
    ax.set_title(cell.name)


def _label(ax: Axes, pairs: pd.DataFrame) -> None:
    """Label the most frequent pairs at the right edge, below the diagonal."""
    low, high = ax.get_ylim()
    gap, at = 0.07 * (high - low), high
    for _, pair in pairs.head(LABELS).sort_values("model_log_prob_nats", ascending=False, kind="stable").iterrows():
        at = min(at - gap, pair["model_log_prob_nats"])
        ax.annotate(
            f"{symbols.drawable(pair['token'])} {symbols.drawable(pair['next'])}",
            (pair["corpus_log_prob_nats"], pair["model_log_prob_nats"]),
            xytext=(1.0, at),
            textcoords=("axes fraction", "data"),
            ha="right",
            va="center",
            fontsize=8.5,
            family="DejaVu Sans",
            parse_math=False,
            arrowprops={"arrowstyle": "-", "color": symbols.FAINT, "lw": 0.7},
        )


def _bars(ax: Axes, results: Results, zero: list[Cell]) -> None:
    losses = pd.DataFrame(
        [
            ("unigram", results.corpus.unigram_loss_nats),
            ("bigram", results.corpus.bigram_loss_nats),
            *((c.name, c.summary.val_loss_nats) for c in zero),
        ],
        columns=["model", "loss"],
    )
    palette = {name: symbols.layer_colour(0) for name in losses["model"]} | {"unigram": "#c9c9c9", "bigram": "#c9c9c9"}
    sns.barplot(losses, x="loss", y="model", hue="model", palette=palette, errorbar=None, ax=ax)
    for place, loss in enumerate(losses["loss"]):
        ax.annotate(f"{loss:.3f}", (loss, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set(xlabel=symbols.LOSS, ylabel="", xlim=(0, losses["loss"].max() * 1.2))
    ax.set_title("corpus models and zero layers")
    ax.grid(False, axis="y")


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
