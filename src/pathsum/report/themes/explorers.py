"""The section with the circuit explorer: the circuits of single tokens."""

from __future__ import annotations

from pathsum.figures.detail import in_detail
from pathsum.page.document import Explorer, ExplorerCell, Section
from pathsum.page.explorer import payload
from pathsum.records.explorers import TokenTableRow
from pathsum.records.results import Results
from pathsum.report.theme import Figures, Theme

TITLE = "Circuits of single tokens"
TEXT = (
    "OV: the output tokens whose logits a head raises most when it attends to the chosen token (final norm left out). "
    "QK: the destinations that attend most to this token, without positions. In later layers, both ignore earlier "
    "heads. Direct path: the likeliest next tokens by W_U W_E. Numbers: logits above the mean over outputs (OV), "
    "scores above the query's mean over keys (QK), and probabilities (direct path)."
)


def section(results: Results, _: Figures) -> Section:
    """Pack the data of the circuit explorer for the models of ``in_detail``, and describe what it shows."""
    cells = [c for c in in_detail(results).values() if c.rows(TokenTableRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no model to explore.",))
    return Section(TITLE, (TEXT,), (Explorer(cells[-1].name, tuple(ExplorerCell(c.name, payload(c)) for c in cells)),))


THEME = Theme(TITLE, section, sources={"explorers": ("token_tables",)})
