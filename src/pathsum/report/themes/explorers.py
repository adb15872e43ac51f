"""The explorers: attention and paths of every model on a few passages, and the circuits of every token."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.records.explorers import PassageRow, TokenTableRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import Explorer, ExplorerCell, Section
from pathsum.report.explorer import payload
from pathsum.report.theme import Figures, Theme

TITLE = "Explorers"


def section(results: Results, _: Figures) -> Section:
    """Pack what the explorers show of each model, and say how to use them."""
    cells = [c for c in (*results.cells.values(), *results.controls.values()) if c.rows(PassageRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model to explore.",))
    best = {n: _best(results.with_layers(n)) for n in results.layer_counts()}
    with_tables = {c.name for c in best.values() if c is not None}
    blocks = tuple(ExplorerCell(c.name, payload(c, tables=c.name in with_tables)) for c in cells)
    deepest = best.get(max(best, default=0))
    first = deepest.name if deepest is not None and deepest.rows(PassageRow) else cells[0].name
    return Section(TITLE, _paragraphs(with_tables), (Explorer(first, blocks),))


def _best(cells: Sequence[Cell]) -> Cell | None:
    """Return the model with the lowest loss, of those with tables over tokens."""
    return min((c for c in cells if c.rows(TokenTableRow)), key=lambda c: c.summary.val_loss_nats, default=None)


def _paragraphs(with_tables: set[str]) -> tuple[str, ...]:
    attention = (
        "Attention: point at a token of the passage, or move with the arrow keys, to see where each head attends; move "
        "the checkpoint to follow training. There are three passages: a held-out one, the held-out one with the most "
        "repeated pairs of tokens, and a block of random tokens given twice, on which an induction head shows as a "
        "stripe. Value-weighted attention multiplies each weight by the norm of the vector that is moved. Choose a "
        "token to split its logit at the final checkpoint, with patterns and norm scales frozen, into the direct path, "
        "single heads, and virtual heads (L0H1→L1H2: L1H2 reads the output of L0H1). Parts are rounded so that they "
        "add up as shown."
    )
    if not with_tables:
        return (attention,)
    circuits = (
        "Circuits, by the weights alone, of the lowest-loss model of each layer count: which outputs a head raises "
        "when it attends to a token (OV, over the mean output; where there is a norm, before its final scale), which "
        "destinations attend to it most (QK, over their mean key, without positions; of later layers the part that "
        "reads tokens directly), and what comes next by the direct path alone and in the training text."
    )
    return (attention, circuits)


THEME = Theme(TITLE, section, sources={"explorers": ("passages", "patterns", "splits", "token_tables")})
