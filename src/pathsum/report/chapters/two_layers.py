"""The chapter on two layers: the induction mechanism, and what it matches. The words are in two_layers.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathsum.claims.sufficiency import MOST
from pathsum.records.results import Results
from pathsum.records.sufficiency import Kept
from pathsum.records.suffixes import Cut
from pathsum.records.verdicts import ClaimResult
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures
from pathsum.report.themes import behaviour, causal, content, sufficiency, suffixes, two_layers
from pathsum.report.told import Frames

TITLE = "Two layers: induction heads"


def facts(results: Results, claims: Mapping[str, ClaimResult]) -> dict[str, Any]:
    """Return the heads of two-layer models, and what claims about those with an induction head rest on."""
    t = Frames({cell.name: cell for cell in results.with_layers(2) if cell.has_induction_head()})
    kept = t.sufficiency[t.sufficiency["cell"].map(claims["circuit_suffices"].values).notna()]
    others = t.suffix_cuts["cut"].isin((Cut.QUERY_OTHERS, Cut.KEY_OTHERS)) & t.suffix_cuts["left"].notna()
    return {
        **two_layers.facts(Frames({cell.name: cell for cell in results.with_layers(2)})),
        "claims": claims,
        "kept": {kind.name: kept[kept["kept"] == kind] for kind in Kept},
        "needed": MOST,
        "suffix": suffixes.facts(t),
        "others": t.suffix_cuts[others],
    }


def chapter(results: Results, figures: Figures, claims: Mapping[str, ClaimResult]) -> Section:
    """Describe how the induction heads of two-layer models work."""
    if not results.with_layers(2):
        return told.absent(TITLE)
    more = (two_layers.TITLE, behaviour.TITLE, causal.TITLE, sufficiency.TITLE, content.TITLE, suffixes.TITLE)
    return told.section(TITLE, "chapters/two_layers", facts(results, claims), figures, *more)
