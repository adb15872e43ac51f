"""The exactness check of the path expansion (docs/framework.md §2.2). The words are in exactness.md."""

from typing import Any

import pandas as pd

from pathsum.report import told
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames

TITLE = "Reliability of the results"


def facts(t: Frames) -> dict[str, Any]:
    """Return the largest relative errors, as they are printed. Empty without models."""
    if t.cells.empty:
        return {}
    checks = t.exactness.astype({"scores_max_relative_error": float}).groupby("cell")
    by_model = {
        "checkpoints": checks.size(),
        "largest relative error, logits": checks["max_relative_error"].max().map(_error),
        "largest relative error, attention scores": checks["scores_max_relative_error"].max().map(_error),
        "hash of the weights": t.cells["weights_hash"].str[:12],
    }
    return {"worst": _error(t.cells["exactness"].max()), "models": pd.DataFrame(by_model).reindex(t.cells.index)}


def table(found: dict[str, Any]) -> Table:
    shown, caption = found["models"].rename_axis("model").reset_index(), "Largest errors over checkpoints."
    return told.table(shown, caption, kinds={"hash of the weights": "token"}, csv="exactness.csv")


def _error(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1e}".replace("-", "−")


section = told.from_facts(TITLE, "exactness", facts, exactness=table)
THEME = Theme(TITLE, section, tables=("exactness",))
