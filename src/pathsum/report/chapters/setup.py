"""The chapter on what was trained, on what text, with the terms and the limits of the report."""

from __future__ import annotations

from pathsum.claims.formatting import plural, span
from pathsum.claims.preregistration import Preregistration
from pathsum.page.document import Section, Table, Text
from pathsum.probes.in_context import LONG_CONTEXT
from pathsum.records.results import Results
from pathsum.report.verdicts import PREREGISTRATION

TITLE = "Setup, terms and limits"
NORMS = {"none": "no norm", "rms": "RMS norm", "layer": "layer norm"}
DROP = "in-context loss drop"
TERMS = (
    (
        "prefix matching",
        "mean attention of a head to the token after an earlier occurrence of the current token, on repeated random "
        "tokens, 0–1",
    ),
    ("induction head", "a head with high prefix matching; it predicts that text continues as it did before"),
    (DROP, ""),  # defined by ``_drop``, because it depends on n_ctx
    ("onset", "tokens seen when the highest prefix matching of any head crosses half of its rise for the last time"),
    ("smeared keys", "a control: each key is mixed with the one before it, so that one layer can do induction"),
    ("QK and OV circuit", "W_QK decides where a head attends (query–key), W_OV what it then writes (output–value)"),
    ("OV positivity", "Σλ / Σ|λ| over the eigenvalues λ of W_U W_OV W_E, −1 to 1; above 0.5, a head copies by weights"),
    ("value-weighted", "attention weighted by the size of what the head moves from each key"),
    (
        "K-composition",
        "a later head's keys read an earlier head's output (K-edge, key edge); likewise Q for queries, V for values",
    ),
    ("ablation", "replacing a head's output: by zero, its mean, or its output on another window (resample)"),
    ("repeated random tokens", "a block of random tokens twice: bigrams cannot predict the second copy, induction can"),
    ("name of a model or head", "models: layers, heads per layer, seed; head 1.3: layer 1, head 3, counted from 0"),
)


def chapter(results: Results, registered: Preregistration) -> Section:
    """State what was trained and on what, define the terms, and name the limits."""
    corpus = results.corpus
    text = (
        "The induction head and the previous-token head of each model are chosen on random tokens and on windows "
        f"sampled from {corpus.tuning_documents:,} held-out documents. They are judged on other random tokens and on "
        f"up to {corpus.judged_windows:,} windows of {corpus.judged_documents:,} other documents."
    )
    return Section.of(
        TITLE,
        (text, _models(results), _tuned(registered), _limits(results)),
        (_terms(results),),
        (PREREGISTRATION,),
    )


def _terms(results: Results) -> Table:
    columns = (Text("term", lambda term, _: term), Text("meaning", lambda _, text: text))
    terms = dict(TERMS) | {DROP: _drop({c.summary.n_ctx >= LONG_CONTEXT for c in results.cells.values()})}
    return Table.of(terms.items(), *columns, caption="", title="Terms")


def _drop(long: set[bool]) -> str:
    """Define the in-context loss drop for models with short windows (False), with long windows (True) or with both."""
    kinds = (
        "loss at 8 to 12 % of the window minus loss in its last tenth",
        "loss near the 50th token minus loss near the 500th",
    )
    if len(long) > 1:
        return f"{kinds[0]} or, from n_ctx = {LONG_CONTEXT} on, {kinds[1]}, nats per token"
    return f"{kinds[any(long)]}, nats per token"


def _models(results: Results) -> str:
    deep = [c.summary for c in results.cells.values() if c.summary.n_layers]
    if not deep:
        return ""
    positions = ", ".join(sorted({s.positions for s in deep}))
    norms = ", ".join(sorted({NORMS[s.norm] for s in deep}))
    return (
        f"Models: no MLPs; d_model {span([s.d_model for s in deep], 0)}, d_head {span([s.d_head for s in deep], 0)}, "
        f"windows of {span([s.n_ctx for s in deep], 0)} tokens, {positions} positions, {norms}."
    )


def _tuned(registered: Preregistration) -> str:
    tuned = registered.protocol.statements.get("What was tuned", "")
    if not tuned:
        return ""
    late = sum(change.what == "retrained" for change in registered.changes)
    frozen = f"The claims were frozen on {registered.frozen}" if registered.frozen else "The claims are not frozen"
    changes = len(registered.changes)
    some = f"of {plural(changes, 'later change')}, {late} came after verdicts were seen (models retrained)"
    later = some if late else f"{plural(changes, 'change')} followed"
    what, _, purpose = tuned.removesuffix(".").partition(": for ")
    purpose = f", for {purpose}" if purpose else ""
    return f"Tuned on other seeds and documents{purpose}: {what[0].lower()}{what[1:]}. {frozen}; {later}."


def _limits(results: Results) -> str:
    widths = span([c.summary.d_model for c in results.cells.values()], 0)
    return (
        f"Limits: width {widths}, one corpus, tuned recipes. Square brackets give 95 % intervals unless noted, mostly "
        "by bootstrap over documents or windows; “a to b” is a range over models."
    )
