"""The first screen of the report: the question, its answer, and what was trained."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.formatting import millions, number, plural, span
from pathsum.claims.one_layer import copying_heads, count, highest_matching
from pathsum.claims.suffixes import uncut
from pathsum.claims.zero_layers import TOLERANCE
from pathsum.records.results import Results
from pathsum.report.corpora import Row, on_other_text

TITLE = "What zero, one and two layers of attention learn"
QUESTION = (
    "Do small attention-only transformers, trained on real text, learn the circuits that A Mathematical Framework for "
    "Transformer Circuits describes?"
)


def answer(results: Results, texts: Sequence[Row] = ()) -> tuple[str, ...]:
    """Answer the question in one sentence, if all models agree (``_short``), and for zero, one and two layers."""
    layers = (_zero(results), _one(results), _two(results))
    return (*_short(results), *layers, *_surprise(results), _text(results, texts), *_led(results))


def _short(results: Results) -> tuple[str, ...]:
    """State in one sentence what each number of layers learns."""
    zero, two = ([c.summary for c in results.with_layers(n)] for n in (0, 2))
    bigrams = [abs(s.bigram_excess_nats) <= TOLERANCE for s in zero if s.bigram_excess_nats is not None]
    none = [score <= NOT_FORMED for score in highest_matching(results.with_layers(1))]
    if not (bigrams and none and two and all((*bigrams, *none, *(s.onset_tokens is not None for s in two)))):
        return ()
    return ("Largely: zero layers learn bigrams, one layer skip-trigrams, two layers induction.",)


def _text(results: Results, texts: Sequence[Row]) -> str:
    """State on which text the answer holds, on which the recipe was tuned, and the onsets on other text."""
    where = (
        f"All of this is for {corpus_name(results)}. The default recipe was tuned on Python source code, docstrings, "
        "C++ headers and a manual."
    )
    return f"{where} {on_other_text(texts, results.corpus.name)}".strip()


def setup(results: Results) -> str:
    """Describe in one line what was trained, on what text, on what machine and, if it is known, when."""
    summaries = [c.summary for c in (*results.cells.values(), *results.controls.values())]
    if not summaries:
        return "No model was trained."
    grid, about = [c.summary for c in results.cells.values()], results.provenance
    heads = sorted({s.n_heads for s in grid if s.n_layers})
    seeds = ", ".join(str(seed) for seed in sorted({s.seed for s in grid}))
    still = sum(not c.summary.tokens_seen for c in results.controls.values())
    untrained = f" ({still} untrained)" if still else ""
    parts = (
        f"{plural(len(grid), 'model')}, {plural(len(results.controls), 'control')}{untrained}",
        f"{span([s.n_layers for s in grid], 0)} layers of {', '.join(map(str, heads)) or 'no'} heads, d_model "
        f"{span([s.d_model for s in summaries], 0)}, seeds {seeds}",
        f"{corpus_name(results)}: {number(results.corpus.train_tokens)} training tokens, vocabulary "
        f"{results.corpus.d_vocab:,}",
        f"{span([s.tokens_seen / 1e6 for s in grid], 1)} M tokens seen by each model",
        f"computed {when}" if (when := about.get("computed")) else str(about.get("trained_on", "unknown machine")),
    )
    return "Trained here: " + " · ".join(parts) + "."


def corpus_name(results: Results) -> str:
    """Name the corpus and, if they are known, the Python packages whose source code it contains."""
    sources = results.provenance.get("corpus_sources")
    return f"corpus “{results.corpus.name}”" + (f" (source code of {sources})" if sources else "")


def _zero(results: Results) -> str:
    models = results.with_layers(0)
    excess = [c.summary.bigram_excess_nats for c in models if c.summary.bigram_excess_nats is not None]
    if not excess:
        return "The bigram model was not measured." if models else "No zero-layer model was trained."
    worst = max(excess, key=abs)
    side = "above" if worst > 0 else "below"
    loss = f"up to {number(abs(worst), 3)} nats per token {side} that of the best smoothed bigram model"
    if abs(worst) > TOLERANCE:
        return f"Zero layers do not reach a bigram table: their loss is {loss} (threshold: {TOLERANCE})."
    return f"Zero-layer models learn a bigram table: their held-out loss is {loss}."


def _one(results: Results) -> str:
    cells = results.with_layers(1)
    if not cells:
        return "No one-layer model was trained."
    scores = highest_matching(cells)
    none, found = max(scores, default=0) <= NOT_FORMED, [c for cell in cells for c in copying_heads(cell)]
    return (
        f"One layer learns skip-trigrams and {'no induction' if none else 'some induction'}: the highest prefix "
        "matching of any head (mean attention to the token after an earlier copy of the current one, 0 to 1) is "
        f"{number(max(scores), 3)}. By OV eigenvalues, the paper's evidence, {count(found, 'weights')} heads copy; on "
        f"text, {count([c for c in found if c.weights], 'behaviour')} of these raise the tokens that they attend to."
        if scores
        else "One layer: no head was measured."
    )


def _two(results: Results) -> str:
    cells = results.with_layers(2)
    if not cells:
        return "No two-layer model was trained."
    onsets = [c.summary.onset_tokens for c in cells if c.summary.onset_tokens is not None]
    scores = span([c.summary.prefix_matching for c in cells if c.summary.prefix_matching is not None])
    if not onsets:
        budget = millions(max(c.summary.tokens_seen for c in cells))
        return f"Two layers show no phase change within {budget} tokens; prefix matching is {scores}."
    one = [c.summary.in_context_loss_drop_nats for c in results.with_layers(1)]
    gain = f", against {span(one)} with one layer" if one else ""
    drops = span([c.summary.in_context_loss_drop_nats for c in cells])
    return (
        f"Two layers form induction heads in {len(onsets)} of {plural(len(cells), 'model')}, after "
        f"{millions(statistics.median(onsets))} tokens (median). Prefix matching ends at {scores}. Within a window, "
        f"the loss falls by {drops} nats per token from early to late tokens{gain}."
    )


def _surprise(results: Results) -> tuple[str, ...]:
    """State how many two-layer models have an induction head that prefers a match of two tokens; empty if none has."""
    rows = [row for cell in results.with_layers(2) if cell.has_induction_head() and (row := uncut(cell)) is not None]
    longer = sum(row.low > 0 for row in rows)
    if not longer:
        return ()
    return (
        f"A surprise: in {longer} of {plural(len(rows), 'two-layer model')}, the induction head attends more to the "
        "token after an earlier match of two tokens than to the token after a match of only one.",
    )


def _led(results: Results) -> tuple[str, ...]:
    """Describe each weight of repeats in the training loss: the weight, its tokens, and its models."""
    cells = [c for c in results.cells.values() if c.summary.n_layers]
    kinds: dict[tuple[float, int], list[str]] = {}
    for summary in (c.summary for c in cells if c.summary.repeat_weight > 1):
        kinds.setdefault((summary.repeat_weight, summary.repeat_tokens), []).append(summary.cell)
    return tuple(
        f"In training{_of(names, len(cells))}, tokens that complete a pair seen before in the window had a weight of "
        f"{weight:g} in the loss{f', which fell to 1 by {millions(tokens)} tokens' if tokens else ''}, so whether and "
        "when heads form may depend on it."
        for (weight, tokens), names in sorted(kinds.items())
    )


def _of(names: Sequence[str], all_models: int) -> str:
    return "" if len(names) == all_models else f" of {', '.join(names)}"
