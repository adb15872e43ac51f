"""The section with the circuit explorer: the circuits of tokens."""

from __future__ import annotations

from pathsum.records.explorers import TokenTableRow
from pathsum.records.results import Results
from pathsum.report.document import Explorer, ExplorerCell, Section
from pathsum.report.explorer import in_detail, payload
from pathsum.report.theme import Figures, Theme

TITLE = "Circuits of single tokens"
TEXT = (
    "From the weights alone. OV: outputs that a head raises when it attends to a token. QK: destinations that attend "
    "to a token most (without positions; in later layers, the part that reads tokens directly). Direct path: the next "
    "tokens it predicts. Values: minus their mean over outputs (OV) or keys (QK); no final norm."
)


def section(results: Results, _: Figures) -> Section:
    """Pack the data that the circuit explorer shows of each model, and describe how to use it."""
    cells = [c for c in in_detail(results).values() if c.rows(TokenTableRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model to explore.",))
    return Section(TITLE, (TEXT,), (Explorer(cells[-1].name, tuple(ExplorerCell(c.name, payload(c)) for c in cells)),))


THEME = Theme(TITLE, section, sources={"explorers": ("token_tables",)})
