"""The labels of each head, and the scores from which they follow (docs/framework.md §5.7); words in behaviour.md."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import number, span
from pathsum.records.heads import COPYING
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, errors, legend_of_depths, picture, row
from pathsum.report.page.document import Table
from pathsum.report.theme import DetectorText, Theme
from pathsum.report.told import Frames, listed

TITLE = "What each head does"
HEAD = ["cell", "layer", "head"]
COLUMNS = ["model", "head", "labels", "previous token", "two tokens back", "offset", "duplicate token",
           "induction: uniform", "induction: by frequency", "induction: natural", "copies the next token",
           "attends to BOS (attention sink)", "OV positivity", "copies top-1 / top-5", "QK matching"]  # fmt: skip
RENAMED = {"cell": "model", "copying_positivity": "OV positivity", "qk_matching_positivity": "QK matching"}


def facts(t: Frames) -> dict[str, Any]:
    """Return the labels of all heads, value-weighted scores, and the loss by logit lens. Empty without labels."""
    if t.labels.empty:
        return {}
    labels = t.heads[[*HEAD, "n_layers"]].merge(_labels(t), "left", HEAD)
    score = t.labels.pivot(index=HEAD, columns="behaviour", values="score")
    induction = score.loc[pd.MultiIndex.from_frame(labels.loc[labels["label"] == "induction", HEAD])]
    return {
        "t": t,
        "labels": labels,
        "counts": {n: rows["label"].fillna("no label").value_counts() for n, rows in labels.groupby("n_layers")},
        "heads": t.heads.groupby("n_layers").size(),
        "sinks": (score["BOS, value-weighted"] - score["attends to BOS (attention sink)"]).abs().max(),
        "induction": induction,
        "lens": dict(list(t.lens.groupby(["n_layers", "layers"])["loss_nats"])),
    }


def _labels(t: Frames) -> pd.DataFrame:
    """Return a row for each label of each head, with the names of ``page.roles.names``."""
    rows = t.labels[t.labels["labelled"] & ~t.labels["distance"].isin((1, 2))]
    offsets = rows["distance"].map(lambda tokens: f"attends {tokens:.0f} back" if tokens else "attends to itself")
    names = rows["behaviour"].str.split(":").str[0].where(rows["distance"].isna(), offsets)
    return rows[HEAD].assign(label=names).drop_duplicates()


def table(found: dict[str, Any]) -> Table:
    t = found["t"]
    texts = t.labels.assign(text=t.labels.apply(_score, axis=1)).pivot(index=HEAD, columns="behaviour", values="text")
    labels = found["labels"].dropna().groupby(HEAD)["label"].agg(", ".join)
    rows = t.heads.merge(texts, left_on=HEAD, right_index=True).merge(labels, "left", left_on=HEAD, right_index=True)
    rows, copies = rows.rename(columns=RENAMED), rows["copying_positivity"] > COPYING
    rows["labels"] = rows["label"].fillna(copies.map({True: "– (copies, by weights)", False: "–"}))
    rows["copies top-1 / top-5"] = rows["copying_top1"].map(number) + " / " + rows["copying_top5"].map(number)
    rows["head"] = told.labels(rows)
    levels = t.labels.groupby("behaviour")[["chance", "threshold"]].agg(_span).T
    caption = "Labels and scores of every head, with 95 % intervals, after chance and threshold (ranges over heads)."
    shown = pd.concat([levels.rename_axis("model").reset_index(), rows]).reindex(columns=COLUMNS)
    return told.table(shown, caption, texts=["labels"], csv="labels.csv", levels=len(levels), fold=False)


def _span(values: pd.Series) -> str:
    return span(listed(values))


def _score(r: pd.Series) -> str:
    at = "" if pd.isna(r["distance"]) else f" at {r['distance']:.0f}"
    return f"{r['score']:.2f}{at} [{r['low']:.2f}, {r['high']:.2f}]".replace("-", "−").replace("−0.00", "0.00")


def logit_lens(results: Results) -> Figure | None:
    """Draw the held-out loss with the residual stream unembedded after 0, 1, … layers (docs/framework.md §3.17)."""
    data = Frames(results.cells).lens[["cell", "n_layers", "layers", "loss_nats", "low", "high"]]
    if not data["layers"].any():
        return None
    corpus = results.corpus

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        for model, loss in (("unigram", corpus.unigram_loss_nats), ("bigram", corpus.bigram_loss_nats)):
            ax.axhline(loss, color=symbols.FAINT, ls="--", lw=1.2, zorder=0)
            ax.annotate(f"{model} model", (1, loss), xycoords=("axes fraction", "data"), ha="right", va="bottom")
        for _, part in data.groupby("cell", sort=False):
            colour, bars = symbols.layer_colour(int(part["n_layers"].iloc[0])), errors(part, "loss_nats")
            ax.errorbar(part["layers"], part["loss_nats"], bars, color=colour, marker="o", alpha=0.7)
        ax.set(xlabel="layers before the unembedding", ylabel=symbols.LOSS, xticks=sorted(set(data["layers"])))
        legend_of_depths(ax, data["n_layers"].unique().tolist(), marker="o")

    caption = (
        "Held-out loss with the stream after each layer unembedded, a line per model; bars: 95 % intervals over "
        "documents."
    )
    return picture("logit_lens", "Loss by logit lens after each layer", caption, data, (6.6, 4.2), paint)


section = told.from_facts(TITLE, "behaviour", facts, table=table)
THEME = Theme(
    TITLE,
    section,
    figures=(logit_lens,),
    sources={"logit_lens": ("lens", "corpus"), "labels": ("labels", "heads")},
    detectors={
        "previous_token": DetectorText(
            "previous-token heads",
            "the next word depends on the word before the current one, so the only head must attend one token back; "
            "the head has this label",
        ),
        "induction": DetectorText(
            "induction heads",
            "stretches of text repeat, and only one layer can attend to what followed; one of its heads has this label",
        ),
        "copying": DetectorText(
            "copying heads",
            f"the heads of induction, which must copy what they attend to; OV eigenvalue positivity above {COPYING}",
        ),
    },
    relies_on=("previous_token", "induction"),
    tables=("labels", "heads", "lens"),
)
