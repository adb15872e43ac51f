"""The chapter on why to believe the results. The words are in trust.md."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures, calibrated, detectors
from pathsum.report.themes import agreement, calibration, controls, exactness, provenance
from pathsum.report.themes.agreement import EDGES, QUESTIONS, SAYS, evidence
from pathsum.report.themes.calibration import TRUSTED, certain, trusted
from pathsum.report.told import Frames
from pathsum.report.verdicts import PREREGISTRATION

TITLE = "Why believe it"


def facts(results: Results) -> dict[str, Any]:
    """Return errors of the path expansion, outcomes of the controls, agreement of evidence, and tests of detectors."""
    cells, rows = Frames(results.cells).cells, calibrated(results)
    return {
        "error": cells.loc[cells["n_layers"] > 0, "exactness"].max(),
        "outcomes": controls.facts(Frames(results.controls)),
        "tested": rows,
        "weak": [detectors()[row.detector].name for row in rows if not trusted(row)],
        "certain": sum(map(certain, rows)),
        "trusted": TRUSTED,
        **agreeing(evidence(Frames(results.cells))),
    }


def agreeing(items: pd.DataFrame) -> dict[str, Any]:
    """Return, by question, heads and edges that at least one kind of evidence finds, if all three were measured; and
    whether composition scores find the edges that the second copy needs."""
    known = items.dropna(subset=SAYS).astype(dict.fromkeys(SAYS, bool))
    early = (known["n_layers"] > 1) & known["name"].astype(str).str.startswith("L0")
    known = known.assign(all_say=known[SAYS].all(axis=1), early=early)[known[SAYS].any(axis=1)]
    found = {q: rows for q in QUESTIONS if len(rows := known[known["question"] == q])}
    needed = {q: found[q].query("intervention_says")["weights_says"] for q in EDGES if q in found}
    return {"found": found, "needed": {q: rows for q, rows in needed.items() if len(rows)}}


def chapter(results: Results, figures: Figures) -> Section:
    """Show exactness, the controls, the agreement of three kinds of evidence, and the calibration of the detectors."""
    themes = (calibration.TITLE, agreement.TITLE, controls.TITLE, exactness.TITLE, PREREGISTRATION, provenance.TITLE)
    return told.section(TITLE, "chapters/trust", facts(results), figures, *themes)
