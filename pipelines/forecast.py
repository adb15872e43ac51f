"""What a run says about a text before training: when to expect induction heads (docs/framework.md §6.8)."""

from typing import Any

from pathsum.claims.formatting import millions, spelled
from pathsum.records.corpus import CorpusSummary
from pathsum.records.onsets import TextOnsets
from pathsum.report.corpora import FILE, read_onsets
from pathsum.text.onset_law import forecast
from pipelines import grid
from pipelines.paths import REPORTS


def said(values: dict[str, Any], about: CorpusSummary) -> str:
    """Return the forecast for the two-layer models of ``values``; an empty string if there are none, or if too few
    texts are known."""
    two = [c for c in grid.cells(values).values() if c["model"]["n_layers"] == 2 and c["train"]["tokens"]]
    if not two:
        return ""
    budget, batch = min(c["train"]["tokens"] for c in two), max(c["train"]["batch"] for c in two)
    offered, weight = about.induction_saving_nats, values["train"]["repeat_weight"]
    text = TextOnsets(about.name, about.corpus_hash[:12], offered, weight, batch, about.n_ctx, budget)
    if not (found := forecast(text, read_onsets(REPORTS / FILE))):
        return ""
    when = f"{millions(found.tokens)} tokens ({millions(found.low)} to {millions(found.high)}, 95 % interval)"
    late = (
        f", not within the {millions(budget)} of training; what helps: train.tokens={found.high:.0f}, or for prose "
        "the profile prose (512 tokens of context, wider, repeats weighted)"
        if found.tokens > budget
        else ""
    )
    return (
        f"{spelled(about.name)}: an ideal induction head could save {offered:.2f} nats per token; induction heads "
        f"expected at {when}{late}"
    )
