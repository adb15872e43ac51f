"""Zero layers: the direct path as a bigram table."""

from __future__ import annotations

from pathsum.claims.formatting import number, span
from pathsum.records.bigrams import BigramRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import Column, Section, Table, Text
from pathsum.report.figures.bigrams import bigrams
from pathsum.report.symbols import visible
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "Zero layers"

BIGRAMS = 12


def section(results: Results, figures: Figures) -> Section:
    """The corpus, and how close models without layers are to its bigrams."""
    return Section.of(TITLE, _text(results), (*drawn(figures, "bigrams"), *map(_table, results.with_layers(0)[:1])))


def _text(results: Results) -> tuple[str, ...]:
    cells = results.with_layers(0)
    corpus = results.corpus
    about = (
        f"The corpus is {corpus.name}: {number(corpus.train_tokens)} training tokens of a {corpus.d_vocab:,}-token "
        f"vocabulary. Of its held-out documents, {corpus.tuning_documents:,} are used for evaluation during training "
        f"and for choosing heads; the other {corpus.verdict_documents:,} are kept for the verdicts. Verdicts use "
        f"{corpus.judged_windows:,} windows from {corpus.judged_documents:,} of these documents, and no document "
        f"supplies more than {number(100 * corpus.largest_document, 1)} % of the windows. On these windows a unigram "
        f"model has a loss of {number(corpus.unigram_loss_nats, 3)} nats per token, and the best smoothed bigram model "
        f"{number(corpus.bigram_loss_nats, 3)} ({corpus.bigram_smoothing})."
    )
    if not cells:
        return (about, "This sweep has no zero-layer model.")
    losses = span([c.summary.val_loss_nats for c in cells], 3)
    return (
        about,
        "Without layers the logits are W_U W_E applied to the current token: the model can only be a bigram table. Its "
        f"held-out loss is {losses} nats.",
    )


def _table(cell: Cell) -> Table:
    """The most frequent bigrams."""
    return Table.of(
        sorted(cell.rows(BigramRow), key=lambda b: -b.count)[:BIGRAMS],
        Text("token", lambda b: visible(b.token), kind="token"),
        Text("next", lambda b: visible(b.next), kind="token"),
        Column("count", "count"),
        Column("corpus log P (nats)", "corpus_log_prob_nats"),
        Column("W_U W_E log P (nats)", "model_log_prob_nats"),
        caption=f"The most frequent bigrams, corpus against {cell.name}.",
        csv="bigrams.csv",
    )


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
    opens_part=True,
    tables=("bigrams", "corpus", "ngrams"),
)
