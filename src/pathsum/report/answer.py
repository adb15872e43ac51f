"""The question of the report, and its answer: a paragraph per depth, and a sentence on the curriculum."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.formatting import millions, number, plural, span
from pathsum.claims.zero_layers import TOLERANCE
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report.themes.one_layer import counts

TITLE = "What zero, one and two layers of attention can do"
QUESTION = (
    "Do small attention-only transformers trained on real text learn what A Mathematical Framework for Transformer "
    "Circuits (AMF, Elhage et al. 2021) describes: bigrams with zero layers, skip-trigrams with one layer, induction "
    "heads with two layers?"
)
CORE = {  # claims that every model must meet, and the measured quantity in words
    "zero_layer_bigram": "loss minus that of the bigram model",
    "path_expansion_exact": "relative error of the sum over paths",
    "one_layer_no_induction": "best prefix matching with one layer",
    "two_layer_induction": "prefix matching with two layers",
    "previous_token_head": "attention of the previous-token head",
    "loss_drop_gap": "in-context loss drop beyond that with one layer",
}


def answer(results: Results) -> tuple[str, ...]:
    """Answer the question for zero, one and two layers, and describe the curriculum if models were trained with one."""
    return (_zero(results), _one(results), _two(results), *_curriculum(results))


def _zero(results: Results) -> str:
    models = results.with_layers(0)
    excess = [c.summary.bigram_excess_nats for c in models if c.summary.bigram_excess_nats is not None]
    if not excess:
        return "The bigram model was not measured." if models else "No zero-layer model was trained."
    worst = max(excess, key=abs)
    side = "above" if worst > 0 else "below"
    loss = (
        f"its held-out loss is up to {number(abs(worst), 3)} nats {side} that of the best smoothed bigram model of the "
        "same text"
    )
    if abs(worst) > TOLERANCE:
        return f"With zero layers, the model is not yet the best bigram table: {loss} (threshold: {TOLERANCE} nats)."
    return f"With zero layers, the model is a bigram table: it predicts from the current token alone, and {loss}."


def _one(results: Results) -> str:
    cells = results.with_layers(1)
    if not cells:
        return "No one-layer model was trained."
    scores = [c.summary.prefix_matching for c in cells if c.summary.prefix_matching is not None]
    return (
        f"With one layer, heads move information from earlier tokens to the current token. {counts(cells)}. "
        f"{'No head does' if max(scores, default=0) <= NOT_FORMED else 'Some heads do'} induction, that is, attention "
        f"to the token after an earlier occurrence of the current token: best prefix-matching score {span(scores, 3)} "
        "(mean attention, 0 to 1; range over models)."
    )


def _two(results: Results) -> str:
    cells = results.with_layers(2)
    if not cells:
        return "No two-layer model was trained."
    onsets = [c.summary.onset_tokens for c in cells if c.summary.onset_tokens is not None]
    scores = span([c.summary.prefix_matching for c in cells if c.summary.prefix_matching is not None])
    one = [c.summary.in_context_loss_drop_nats for c in results.with_layers(1)]
    gain = f", against {span(one)} nats with one layer" if one else ""
    drops = span([c.summary.in_context_loss_drop_nats for c in cells])
    context = f"the loss falls by {drops} nats per token within the window{gain}"
    if not onsets:
        budget = millions(max(c.summary.tokens_seen for c in cells))
        return (
            f"With two layers there is no phase change within {budget} tokens: prefix matching is {scores}, and "
            f"{context}."
        )
    return (
        "With two layers, heads of the second layer can read what heads of the first layer write. Induction heads form "
        f"in a phase change in {len(onsets)} of {plural(len(cells), 'model')}, half-way after "
        f"{millions(statistics.median(onsets))} tokens (median). They predict how earlier text continues: their prefix "
        f"matching is {scores}, and {context} (in-context loss drop). Two numbers are a range over models."
    )


def _curriculum(results: Results) -> tuple[str, ...]:
    """Describe each curriculum: its tokens, its share of windows, and its models unless all with layers had it."""
    cells = [c for c in results.cells.values() if c.summary.n_layers]
    kinds: dict[tuple[int, float], list[str]] = {}
    for summary in (c.summary for c in cells if c.summary.curriculum_tokens):
        kinds.setdefault((summary.curriculum_tokens, summary.curriculum_share), []).append(summary.cell)
    return tuple(
        f"The first {millions(tokens)} tokens of training{_of(names, len(cells))} came from the {100 * share:g} % of "
        "windows that repeat most: whether and when heads form therefore depends on this curriculum."
        for (tokens, share), names in sorted(kinds.items())
    )


def _of(names: Sequence[str], all_models: int) -> str:
    return "" if len(names) == all_models else f" of {', '.join(names)}"


def shortfall(claims: Sequence[ClaimResult]) -> tuple[str, ...]:
    """Name the models that miss the threshold of a core claim, with their values, in one sentence. Empty if no core
    claim was judged."""
    judged = [c for c in claims if c.id in CORE and c.values]
    if not judged:
        return ()
    missed = [
        f"{CORE[c.id]} ({c.threshold}): " + ", ".join(f"{name} at {number(c.values[name], 3)}" for name in c.short)
        for c in judged
        if c.short
    ]
    if not missed:
        return (f"Every model meets the threshold for {', '.join(CORE[c.id] for c in judged)}.",)
    return (
        f"Models that miss a threshold: {'; '.join(missed)}. A name gives layers (L), heads per layer (H) and seed "
        "(S).",
    )
