"""The chapter on zero layers."""

from __future__ import annotations

from pathsum.claims.formatting import number, span
from pathsum.records.results import Results
from pathsum.report.document import Section
from pathsum.report.theme import Figures, drawn
from pathsum.report.themes import zero_layers

TITLE = "Zero layers: a bigram table"


def chapter(results: Results, figures: Figures) -> Section:
    """Compare zero-layer models with the bigram statistics of the text."""
    cells = results.with_layers(0)
    return Section.of(
        TITLE, (_loss(results), _surprise(results)) if cells else (), drawn(figures, "mechanism_zero"), MORE
    )


MORE = (zero_layers.TITLE,)


def _loss(results: Results) -> str:
    cells = [c.summary for c in results.with_layers(0)]
    corpus = results.corpus
    return (
        "Without attention, a model sees only the current token: W_U W_E is a table of log P(next | current). Its "
        f"held-out loss is {span([s.val_loss_nats for s in cells], 3)} nats per token, that of the best smoothed "
        f"bigram model {number(corpus.bigram_loss_nats, 3)}, of a unigram model "
        f"{number(corpus.unigram_loss_nats, 3)}."
    )


def _surprise(results: Results) -> str:
    deep = [c.summary for c in results.cells.values() if c.summary.n_layers]
    if not deep:
        return ""
    return (
        "A surprise: with attention heads, W_U W_E still correlates with bigram statistics "
        f"({span([s.bigram_correlation for s in deep])}), but word frequencies alone reach "
        f"{span([s.unigram_correlation for s in deep])}: chance is that, not 0."
    )
