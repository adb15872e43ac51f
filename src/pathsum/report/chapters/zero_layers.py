"""The chapter on zero layers."""

from __future__ import annotations

from pathsum.claims import registry
from pathsum.claims.formatting import number, span
from pathsum.claims.preregistration import Preregistration
from pathsum.claims.zero_layers import BIGRAM
from pathsum.page.document import Section
from pathsum.records.logit_lens import LensRow
from pathsum.records.results import Results
from pathsum.report.theme import Figures, drawn
from pathsum.report.themes import zero_layers

TITLE = "Zero layers: a bigram table"


def chapter(results: Results, figures: Figures, registered: Preregistration) -> Section:
    """Compare zero-layer models with the bigram statistics of the text."""
    text: tuple[str, ...] = ()
    if results.with_layers(0):
        text = (_loss(results), _retrained(registered), _surprise(results))
    return Section.of(TITLE, text, drawn(figures, "mechanism_zero"), MORE)


MORE = (zero_layers.TITLE,)


def _loss(results: Results) -> str:
    cells = [c.summary for c in results.with_layers(0)]
    corpus = results.corpus
    return (
        "Without attention, a model sees only the current token, so W_U W_E can only be a table of "
        "log P(next | current). "
        f"The held-out loss is {span([s.val_loss_nats for s in cells], 3)} nats per token (best smoothed bigram model "
        f"{number(corpus.bigram_loss_nats, 3)}, unigram model {number(corpus.unigram_loss_nats, 3)})."
    )


def _retrained(registered: Preregistration) -> str:
    """State that the models were retrained after a verdict, with their excess losses before; empty if they were not."""
    before = [str(change.old) for change in registered.of(BIGRAM) if change.what == "retrained"]
    if not before:
        return ""
    return (
        "Not blind: these models were retrained with another recipe after a first verdict. Before that, their losses "
        f"exceeded that of the bigram model by {before[-1]}; needed: {registry.claims()[BIGRAM].threshold}."
    )


def _surprise(results: Results) -> str:
    cells = [c for c in results.cells.values() if c.summary.n_layers]
    if not cells:
        return ""
    deep, alone = [c.summary for c in cells], [r.loss_nats for c in cells for r in c.rows(LensRow) if r.layers == 0]
    cost = f" Alone, W_U W_E has a loss of {span(alone)} nats per token." if alone else ""
    start = "A surprise: also in" if all(s.bigram_correlation > s.unigram_correlation for s in deep) else "In"
    return (
        f"{start} models with attention heads, the correlation of W_U W_E with bigram statistics is "
        f"{span([s.bigram_correlation for s in deep])} (token frequencies alone: "
        f"{span([s.unigram_correlation for s in deep])}).{cost}"
    )
