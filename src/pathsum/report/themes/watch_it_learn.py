"""The section that shows how attention patterns form: every checkpoint of a few models, with learning curves."""

from __future__ import annotations

from pathsum.page.document import Section, Watch
from pathsum.page.watch_it_learn import payload, watched
from pathsum.records.results import Results
from pathsum.report.theme import Figures, Theme

TITLE = "Watch it learn"


def section(results: Results, _: Figures) -> Section:
    """Pack the patterns of the models to watch, and say what to look for."""
    models = tuple(payload(cell) for cell in watched(results))
    if not models:
        return Section(TITLE, ("This sweep has no model to watch.",))
    text = (
        "On repeated random tokens, an induction head attends from each token of the second copy to the token after "
        "its earlier occurrence, which shows as a stripe. Dotted: the onset, where prefix matching last crosses half "
        "of its rise.",
    )
    return Section(TITLE, text, (Watch(TITLE, models),))


THEME = Theme(TITLE, section, sources={"watch_it_learn": ("patterns", "passages", "log", "summary")})
