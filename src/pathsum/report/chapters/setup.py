"""The chapter on what was trained, on what text, with the terms and limits. The words are in setup.md and terms.md."""

from __future__ import annotations

import pandas as pd

from pathsum.behavior.in_context import LONG_CONTEXT
from pathsum.claims.preregistration import Preregistration
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.told import Frames
from pathsum.report.verdicts import PREREGISTRATION

TITLE = "Setup, terms and limits"


def chapter(results: Results, registered: Preregistration) -> Section:
    """State what was trained and on what, define the terms, and name the limits."""
    cells = Frames(results.cells).cells
    found = {"cells": cells, "corpus": results.corpus, "registered": registered, "long": cells["n_ctx"] >= LONG_CONTEXT}
    meanings = [text.split(": ", 1) for text in told.paragraphs("chapters/terms", found | {"long_from": LONG_CONTEXT})]
    shown = pd.DataFrame(meanings, columns=["term", "meaning"])
    terms = told.table(shown, "", kinds={"term": "text", "meaning": "text"}, title="Terms")
    return told.section(TITLE, "chapters/setup", found, {"terms": terms}, PREREGISTRATION)
