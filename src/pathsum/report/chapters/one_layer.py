"""The chapter on one layer."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import plural, span
from pathsum.claims.one_layer import confirmed, copying_heads, copying_share, count
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
    text = (_mechanism(), _skip_trigrams(cells), _copying(cells))
    blocks: tuple[Block, ...] = (*drawn(figures, "mechanism_one"), _table(in_detail(results)[1]))
    return Section.of(TITLE, text, blocks, (one_layer.TITLE, softmax_competition.TITLE))


def _mechanism() -> str:
    return (
        "Each head adds skip-trigrams, source … destination → output: attention from the destination to an earlier "
        "source raises the logit of an output. In one layer, a key contains its own token but not the token before it, "
        "so a head cannot do induction."
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
        f"are more frequent than chance. In the other half, {len(rows)} are frequent enough for the same test, and "
        f"{sum(r.confirmed for r in rows)} pass it. Of these, a share of {span(shares)} (range over "
        f"models) copy, which means that the output is the source, up to case and a leading space. Of triples sampled "
        f"from the text that pass the test in both halves, the share is {span(base)}."
    )


def _copying(cells: Sequence[Cell]) -> str:
    found = [c for cell in cells for c in copying_heads(cell)]
    copying = [c for c in found if c.weights]
    others = [c for c in found if not c.weights]
    return (
        f"By OV eigenvalues, AMF's evidence (positivity > {COPYING}, our threshold), {len(copying)} of "
        f"{plural(len(found), 'head')} copy. On text, the output of {count(copying, 'behaviour')} of these raises the "
        "tokens that the head attends to clearly more than those that it attends to in another window, and so does "
        f"that of {count(others, 'behaviour')} others."
    )


def _table(cell: Cell) -> Table:
    return Table.of(
        confirmed(cell)[:LISTED],
        Text("source …", lambda r: visible(r.source), kind="token"),
        Text("destination", lambda r: visible(r.destination), kind="token"),
        Text("→ output", lambda r: visible(r.out), kind="token"),
        Column("raises log P(output) by (nats)", "change_nats"),
        Column("more often than by chance (×)", "text_lift", 1),
        caption=f"Skip-trigrams of {cell.name} that both halves of the documents confirm, with the largest total "
        "effects (mean effect on the logit × occurrences).",
        source="skip_trigrams",
        fold=False,
    )
