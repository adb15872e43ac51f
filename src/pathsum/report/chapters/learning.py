"""The chapter on learning: the phase change. The words are in learning.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures
from pathsum.report.themes import dose_response, formation, joint_ablation, phase_change
from pathsum.report.told import Frames

TITLE = "Learning: a phase change"


def facts(results: Results, claims: Mapping[str, ClaimResult]) -> dict[str, Any]:
    """Return onsets by number of layers, what claims on learning rest on, and models led to induction on prose."""
    t = Frames(results.cells)
    onsets = [t.cells.loc[t.cells["n_layers"] == n, "onset_tokens"].astype(float) for n in range(3)]
    open_order = _overlap(t.changes[t.changes["n_layers"] == 2])
    return {"onsets": onsets, "open": open_order, "claims": claims, "doses": dose_response.facts(results.doses)}


def _overlap(changes: pd.DataFrame) -> pd.Series:
    """Return, for each model with both, whether the intervals of the rises of loss drop and prefix matching overlap:
    95 % bootstrap intervals or, without them, the evaluations before and after."""
    known = changes[["low_documents", "high_documents"]].notna().all(axis=1)
    ends = {end: changes[f"{end}_documents"].where(known, changes[end]).astype(float) for end in ("low", "high")}
    rows = changes.assign(**ends).pivot(index="cell", columns="quantity", values=["low", "high"])
    rows = rows.reindex(columns=[(e, q) for e in ends for q in ("loss_drop_nats", "prefix_matching")]).dropna()
    low, high = (pd.DataFrame(rows[end]) for end in ends)
    return low.max(axis=1) <= high.min(axis=1)


def chapter(results: Results, figures: Figures, claims: Mapping[str, ClaimResult]) -> Section:
    """Describe when induction heads form, what forms before them, and how much of the loss drop depends on them."""
    more = (phase_change.TITLE, formation.TITLE, joint_ablation.TITLE, dose_response.TITLE)
    return told.section(TITLE, "chapters/learning", facts(results, claims), figures, *more)
