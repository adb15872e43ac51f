"""The section with the explorers: attention and paths of every model on a few passages, and the circuits of tokens."""

from __future__ import annotations

from pathsum.records.explorers import PassageRow, TokenTableRow
from pathsum.records.results import Results
from pathsum.report.document import Explorer, ExplorerCell, Section
from pathsum.report.explorer import in_detail, payload
from pathsum.report.theme import Figures, Theme

TITLE = "Explorers"


def section(results: Results, _: Figures) -> Section:
    """Pack the data that the explorers show of each model, and describe how to use them."""
    cells = [c for c in (*results.cells.values(), *results.controls.values()) if c.rows(PassageRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model to explore.",))
    detailed = in_detail(results)
    with_tables = {c.name for c in detailed.values() if c.rows(TokenTableRow)}
    blocks = tuple(ExplorerCell(c.name, payload(c, tables=c.name in with_tables)) for c in cells)
    deepest = detailed.get(max(detailed, default=0))
    first = deepest.name if deepest is not None and deepest.rows(PassageRow) else cells[0].name
    return Section(TITLE, _paragraphs(with_tables), (Explorer(first, blocks),))


def _paragraphs(with_tables: set[str]) -> tuple[str, ...]:
    attention = (
        "The attention explorer shows where each head attends. Point at a token of the passage, or move with the arrow "
        "keys; change the checkpoint to follow training. There are three passages: one of held-out text, the one of "
        "held-out text with the most repeated pairs of tokens, and a block of random tokens given twice, on which an "
        "induction head shows as a stripe. Value-weighted attention multiplies each attention weight by the norm of "
        "the vector that it moves. Choose a token to split its logit at the final checkpoint, with patterns and norm "
        "scales frozen, into the direct path, single heads and virtual heads (L0H1→L1H2: L1H2 reads the output of "
        "L0H1). The parts are rounded so that they add up as shown."
    )
    if not with_tables:
        return (attention,)
    circuits = (
        "The circuit explorer shows circuits computed from the weights alone, for one model of each layer count: the "
        "lowest held-out loss among those with the middle number of heads. OV: which outputs a head raises when it "
        "attends to a token (above the mean over outputs; if there is a norm, before its final scale). QK: which "
        "destinations attend to a token most (above the destination's mean over keys, without positions; for later "
        "layers, the part that reads tokens directly). Direct path: which tokens it predicts next, compared with the "
        "training text."
    )
    return (attention, circuits)


THEME = Theme(TITLE, section, sources={"explorers": ("passages", "patterns", "splits", "token_tables")})
