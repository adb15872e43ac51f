"""The chapter on one layer."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import plural, span
from pathsum.claims.one_layer import confirmed, copying_heads, copying_share
from pathsum.figures.detail import in_detail
from pathsum.figures.symbols import visible
from pathsum.page.document import Block, Column, Section, Table, Text
from pathsum.records.heads import COPYING
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramRow, SkipTrigramTallyRow
from pathsum.report.theme import Figures, drawn
from pathsum.report.themes import one_layer, softmax_competition

TITLE = "One layer: skip-trigrams, no induction"
LISTED = 6  # skip-trigrams in the table


def chapter(results: Results, figures: Figures) -> Section:
    """Describe what one layer of attention adds, and what it cannot do."""
    cells = results.with_layers(1)
    if not cells:
        return Section(TITLE, ("This sweep has no one-layer model.",))
    text = (_mechanism(), _skip_trigrams(cells), _surprise(cells))
    blocks: tuple[Block, ...] = (*drawn(figures, "mechanism_one"), _table(in_detail(results)[1]))
    return Section.of(TITLE, text, blocks, (one_layer.TITLE, softmax_competition.TITLE))


def _mechanism() -> str:
    return (
        "Each head adds skip-trigrams, source … destination → output: attention from the destination to an earlier "
        "source raises the logit of an output. A head sees earlier tokens, but not what preceded them, so it cannot do "
        "induction."
    )


def _skip_trigrams(cells: Sequence[Cell]) -> str:
    strongest = [r for c in cells for r in c.rows(SkipTrigramRow)]
    rows = [r for r in strongest if r.text_lift is not None]
    shares = [share for c in cells if (share := copying_share(c)) is not None]
    base = [t.base_rate for c in cells for t in c.rows(SkipTrigramTallyRow) if t.base_rate is not None]
    if not rows or not shares:
        return ""
    return (
        f"{len(strongest)} skip-trigrams are chosen on half of the documents: for each head, the strongest that "
        f"are more frequent than chance. In the other half, {len(rows)} are frequent enough for a test, and "
        f"{sum(r.confirmed for r in rows)} pass it. In each model, only {span(shares)} of these copy their source "
        f"(triples sampled from the text: {span(base)})."
    )


def _surprise(cells: Sequence[Cell]) -> str:
    found = [c for cell in cells for c in copying_heads(cell)]
    copying = [c for c in found if c.weights]
    behaviour, intervention = (sum(bool(getattr(c, kind)) for c in copying) for kind in ("behaviour", "intervention"))
    return (
        f"A surprise: by OV eigenvalues, AMF's evidence (positivity > {COPYING}, our cut), {len(copying)} of "
        f"{plural(len(found), 'head')} copy. Yet on repeated random tokens only {behaviour} of these raise the next "
        "token's logit significantly more often than that of another window's token, and resample ablation of "
        f"{intervention or 'none'} significantly raises the second copy's loss. Positive "
        "eigenvalues mean only that attention to a token raises its logit on average."
    )


def _table(cell: Cell) -> Table:
    return Table.of(
        confirmed(cell)[:LISTED],
        Text("source …", lambda r: visible(r.source), kind="token"),
        Text("destination", lambda r: visible(r.destination), kind="token"),
        Text("→ output", lambda r: visible(r.out), kind="token"),
        Column("raises log P(output) by (nats)", "change_nats"),
        Column("more often than by chance (×)", "text_lift", 1),
        caption=f"Confirmed skip-trigrams of {cell.name}, by total effect (mean effect on the logit × occurrences).",
        source="skip_trigrams",
        fold=False,
    )
