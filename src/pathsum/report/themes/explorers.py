"""The circuit explorer: the circuits of single tokens."""

from pathsum.records.explorers import TokenTableRow
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures.base import in_detail
from pathsum.report.page.document import Section, Widget
from pathsum.report.page.explorer import payload
from pathsum.report.theme import Figures, Theme

TITLE = "Circuits of single tokens"


def section(results: Results, _: Figures) -> Section:
    cells = [cell for cell in in_detail(results).values() if cell.rows(TokenTableRow)]
    if not cells:
        return told.absent(TITLE)
    explorer = Widget("explorers", "Circuit explorer", tuple(map(payload, cells)))
    return told.section(TITLE, "explorers", {}, {"explorer": explorer})


THEME = Theme(TITLE, section, sources={"explorers": ("token_tables",)})
