"""What a run says about a text before training: when to expect induction heads (docs/framework.md §6.8)."""

from typing import Any

from pathsum.claims.corpora import FILE, read_onsets
from pathsum.claims.formatting import millions
from pathsum.records.corpus import CorpusSummary
from pathsum.records.onsets import TextOnsets
from pathsum.text.onset_law import forecast
from pipelines import grid
from pipelines.paths import REPORTS

LONG = 512  # tokens of context, as in the profile prose


def said(values: dict[str, Any], about: CorpusSummary) -> str:
    """Return the forecast for the two-layer models of ``values``; an empty string if there are none, or if too few
    texts are known."""
    controls = values["sweep"]["controls"]
    two = [c for name, c in grid.cells(values).items() if c["model"]["n_layers"] == 2 and name not in controls]
    if not two:
        return ""
    budget, batch = min(c["train"]["tokens"] for c in two), max(c["train"]["batch"] for c in two)
    offered, weight = about.induction_saving_nats, values["train"]["repeat_weight"]
    text = TextOnsets(about.name, about.corpus_hash[:12], offered, weight, batch, about.n_ctx, budget)
    if not (found := forecast(text, read_onsets(REPORTS / FILE))):
        return ""
    when = f"at {millions(found.tokens)} tokens"
    if weight == 1:  # weights of repeats are outside the law
        when += f" (95 % interval {millions(found.low)} to {millions(found.high)})"
    if found.tokens > budget:
        when += f", not within the {millions(budget)} of training. What helps (docs/your-text.md): more tokens"
        when += "" if about.n_ctx >= LONG else ", or for prose the profile prose"
    return (
        f"{about.name}: {about.repeated_pairs:.0%} of tokens complete a repeated pair, with a reliability of "
        f"{about.repeat_reliability:.2f}; an ideal induction head could save {offered:.2f} nats per token; induction "
        f"heads expected {when}"
    )
