"""The chapter on other texts: what the same models do on each text of the grid, and all verdicts by text."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pathsum.claims import registry
from pathsum.claims.formatting import layers_label
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import chapters, corpora, told
from pathsum.report.figures.base import in_detail
from pathsum.report.page.document import Section, Table
from pathsum.report.theme import Figures
from pathsum.report.themes import forecast, repeated_names
from pathsum.report.told import Frames

TITLE = "On other text"
MEASURES = {  # by heading: the column, and its decimals
    "loss (nats per token)": ("val_loss_nats", 2),
    "prefix matching, best head (0..1)": ("prefix_matching", 3),
    "previous-token head (0..1)": ("previous_token", 2),
    "in-context loss drop (nats per token)": ("in_context_loss_drop_nats", 2),
    "onset (tokens)": ("onset_tokens", 0),
}


def chapter(results: Results, claims: Sequence[ClaimResult], rows: Sequence[corpora.Row], figures: Figures) -> Section:
    """Compare the texts of the grid, and list the verdicts on all texts (``rows``: those on all but the first)."""
    if not rows:
        return Section(TITLE, ("There is one text here; “make corpora” compares several.",))
    own = corpora.row(results.corpus.name, results, claims)
    names = repeated_names.table(results.texts, "text", source="repeated_names", fold=False)
    found = {
        "main": results.corpus.name,
        "texts": {text: Frames(found.cells).cells for text, found in results.texts.items()},
        "rows": rows,
        "names": names.rows,
        "forecast": forecast.facts(results),
    }
    blocks = {
        "by_depth": by_depth(results),
        "by_claim": by_claim([own, *rows]),
        "skip_trigrams": skip_trigrams(results.texts),
        "repeated_names": names,
    }
    return told.section(TITLE, "chapters/elsewhere", found, {**figures, **blocks}, forecast.TITLE)


def by_depth(results: Results) -> Table:
    """Return the range of each measure over the models of each depth, with a column for each text."""
    texts = {results.corpus.name: results, **results.texts}
    frames = {text: Frames(found.cells).cells for text, found in texts.items()}
    shown = [
        {"layers": layers_label(depth), "measure": heading}
        | {text: _range(cells[cells["n_layers"] == depth][column], digits) for text, cells in frames.items()}
        for depth in results.layer_counts()
        for heading, (column, digits) in MEASURES.items()
        if depth or column in ("val_loss_nats", "in_context_loss_drop_nats")
    ]
    caption = "Range over the models of each depth; an onset is that of the best head's prefix matching."
    return told.table(pd.DataFrame(shown), caption, texts=["layers", "measure"], source="cells", fold=False)


def _range(values: pd.Series, digits: int) -> str:
    having = values.dropna()
    said = told.FILTERS["span"](having, digits)
    return said if len(having) in (0, len(values)) else f"{said} ({len(having)} of {len(values)})"


def by_claim(rows: Sequence[corpora.Row]) -> Table:
    """Return the verdict on each claim, with a column for each text."""
    shown = [
        {"claim": claim.claim}
        | {row["corpus"]: corpora.verdict(row, claim.id, claim.digits, short=True) for row in rows}
        for claim in registry.claims().values()
    ]
    caption = (
        "Verdict on each claim (✓: reproduced; ◐: partly; ✗: not; –: not judged here), its median over models, and how "
        "many of the judged models pass."
    )
    return told.table(pd.DataFrame(shown), caption, texts=list(shown[0]), source="claims")


def skip_trigrams(texts: Mapping[str, Results]) -> Table:
    """Return the strongest skip-trigrams of a one-layer model on each further text."""
    cells = {text: cell for text, found in texts.items() if (cell := in_detail(found).get(1))}
    shown: list[dict[str, Any]] = [
        {"text": text, **row} for text, cell in cells.items() for row in chapters.strongest(cell)
    ]
    caption = "Skip-trigrams of one-layer models that both halves of the documents confirm, largest total effect first."
    return chapters.skip_trigrams(shown, caption)
