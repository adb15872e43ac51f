"""How attention patterns form: every checkpoint of a few models, with learning curves."""

from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section, Widget
from pathsum.report.page.watch_it_learn import payload, watched
from pathsum.report.theme import Figures, Theme

TITLE = "Watch it learn"


def section(results: Results, _: Figures) -> Section:
    if not (models := tuple(map(payload, watched(results)))):
        return told.absent(TITLE)
    return told.section(TITLE, "watch_it_learn", {}, {"watch": Widget("watch_it_learn", TITLE, models)})


THEME = Theme(TITLE, section, sources={"watch_it_learn": ("patterns", "passages", "log", "summary")})
