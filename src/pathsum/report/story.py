"""What the report says, in its order, every number from the records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pathsum.claims.formatting import layers_label, number, plural, span
from pathsum.claims.preregistration import Preregistration
from pathsum.records.results import Results
from pathsum.records.verdicts import ClaimResult
from pathsum.report import preregistration, rows, verdicts
from pathsum.report.answer import QUESTION, TITLE, answer, shortfall
from pathsum.report.document import Document, Entry, Section, Table
from pathsum.report.figures import Figure
from pathsum.report.sections import (
    agreement,
    atlas,
    attention_sinks,
    behaviour,
    calibration,
    causal,
    composition,
    content,
    controls,
    copying,
    explorers,
    formation,
    fuzzy_matching,
    joint_ablation,
    mechanism,
    norm_scales,
    onset_twins,
    origins,
    score_paths,
    softmax_competition,
    sufficiency,
    suffixes,
    weights_side,
)

ZERO, ONE, TWO, LEARNING, SWEEP = "Zero layers", "One layer", "Two layers", "Learning", "The sweep"
REFERENCES, TRUST, PROVENANCE = "Against the papers' numbers", "Why to trust it", "Provenance"
PARTS = (ZERO, ONE, TWO, LEARNING, SWEEP, TRUST, PROVENANCE)
EVIDENCE = {
    "zero_layer_bigram": ZERO,
    "direct_path_bigram": ZERO,
    "path_expansion_exact": TRUST,
    "one_layer_copying_heads": ONE,
    "one_layer_skip_trigrams": ONE,
    "one_layer_no_induction": ONE,
    "loss_drop_gap": LEARNING,
    "phase_change_two_layer": LEARNING,
    "phase_change_coincides": LEARNING,
    "previous_token_first": formation.TITLE,
    "virtual_heads_little": content.TITLE,
    "induction_key_edge": causal.TITLE,
    "induction_scores_k": content.TITLE,
    "two_token_matching": suffixes.TITLE,
    "two_token_edges": suffixes.TITLE,
    "smeared_keys_induction": controls.TITLE,
    "smeared_keys_earlier": onset_twins.TITLE,
    "circuit_suffices": sufficiency.TITLE,
    "one_layer_no_successor": softmax_competition.TITLE,
    "joint_ablation": joint_ablation.TITLE,
}  # every other claim: two layers
DETECTORS = {  # by whose word each section speaks
    ZERO: ("bigram",),
    ONE: ("skip_trigram", "skip_trigram_model", "copying"),
    TWO: ("composition_q", "composition_k", "composition_v", "composition", "previous_token", "induction"),
    behaviour.TITLE: ("previous_token", "induction"),
    LEARNING: ("phase_change",),
    content.TITLE: ("keys_of_previous_token",),
    formation.TITLE: ("phase_change", "composition_k"),
    agreement.TITLE: (
        "copying",
        "previous_token",
        "induction",
        "composition_q",
        "composition_k",
        "composition_v",
        "composition",
    ),
    SWEEP: ("phase_change",),
}


UNFROZEN = Preregistration()


def story(
    results: Results,
    claims: Sequence[ClaimResult],
    figures: Mapping[str, Figure],
    registered: Preregistration = UNFROZEN,
) -> Document:
    """The whole report. Sections whose models are absent say so."""

    def drawn(*names: str) -> tuple[Figure, ...]:
        return tuple(figures[n] for n in names if n in figures)

    sections = _sections(results, figures, drawn)
    return Document(
        title=TITLE,
        question=QUESTION,
        answer=(*answer(results), *shortfall(claims)),
        shortcuts=(behaviour.TITLE, explorers.TITLE, REFERENCES, origins.TITLE),
        warnings=_warnings(results),
        opening=(
            *drawn("headline"),
            verdicts.table(claims, results, lambda claim: EVIDENCE.get(claim, TWO), registered),
            *preregistration.tables(registered, results),
            verdicts.measures(claims),
        ),
        parts=_parts([calibration.marked(s, DETECTORS.get(s.title, ()), results) for s in sections]),
    )


def _parts(sections: Sequence[Section]) -> tuple[tuple[Section, ...], ...]:
    """A part begins with each of PARTS; a section in between belongs to the part before it."""
    begins = [i for i, section in enumerate(sections) if i == 0 or section.title in PARTS]
    return tuple(tuple(sections[a:b]) for a, b in zip(begins, [*begins[1:], len(sections)], strict=True))


def _sections(
    results: Results, figures: Mapping[str, Figure], drawn: Callable[..., tuple[Figure, ...]]
) -> tuple[Section, ...]:
    return (
        Section(ZERO, _zero(results), (*drawn("bigrams"), *rows.bigrams(results.with_layers(0)))),
        Section(
            ONE,
            (*_one(results), *atlas.paragraphs(results.with_layers(1))),
            (*drawn("eigenvalues"), *copying.table(results), *atlas.tables(results.with_layers(1))),
        ),
        _two(results, drawn),
        explorers.section(results),
        behaviour.section(results, figures),
        causal.section(results, figures),
        sufficiency.section(results),
        score_paths.section(results, figures),
        content.section(results, figures),
        suffixes.section(results, figures),
        fuzzy_matching.section(results, figures),
        norm_scales.section(results),
        softmax_competition.section(results),
        attention_sinks.section(results),
        weights_side.section(results, figures),
        Section(LEARNING, _learning(results), drawn("phase_change", "loss_by_position", "trajectories")),
        formation.section(results, figures),
        joint_ablation.section(results, figures),
        Section(SWEEP, _sweep(results), (*drawn("sweep", "widths"), *rows.sweep(results))),
        controls.section(results, figures),
        onset_twins.section(results),
        Section(TRUST, _trust(results), rows.exactness(results)),
        agreement.section(results),
        calibration.section(results, figures),
        Section(REFERENCES, (), (rows.references(results),)),
        Section(PROVENANCE, _provenance_text(), (_provenance(results),)),
        origins.section(),
    )


def _warnings(results: Results) -> tuple[str, ...]:
    if not results.missing:
        return ()
    names = ", ".join(results.missing)
    count = plural(len(results.missing), "declared model")
    return (f"{count} left no records and {'is' if len(results.missing) == 1 else 'are'} not in this report: {names}.",)


def _absent(what: str) -> tuple[str, ...]:
    return (f"This sweep has no {what} model.",)


def _zero(results: Results) -> tuple[str, ...]:
    cells = results.with_layers(0)
    corpus = results.corpus
    about = (
        f"The corpus is {corpus.name}: {number(corpus.train_tokens)} training tokens of a "
        f"{corpus.d_vocab:,}-token vocabulary. Of its held-out documents {corpus.tuning_documents:,} are for "
        f"training's evaluations and for whatever is chosen, {corpus.verdict_documents:,} others for the verdicts: "
        f"models are judged on {corpus.judged_windows:,} windows of {corpus.judged_documents:,} of these, the largest "
        f"of which has {number(100 * corpus.largest_document, 1)} % of the windows. On them a unigram model loses "
        f"{number(corpus.unigram_loss_nats, 3)} nats per token, the best smoothed bigram model "
        f"{number(corpus.bigram_loss_nats, 3)} ({corpus.bigram_smoothing})."
    )
    if not cells:
        return (about, *_absent("zero-layer"))
    losses = span([c.summary.val_loss_nats for c in cells], 3)
    return (
        about,
        "Without layers the logits are W_U W_E applied to the present token: the model can only be a bigram table. "
        f"Its held-out loss is {losses} nats.",
    )


def _one(results: Results) -> tuple[str, ...]:
    cells = results.with_layers(1)
    if not cells:
        return _absent("one-layer")
    best = span([c.summary.prefix_matching for c in cells if c.summary.prefix_matching is not None], 3)
    return (
        "One layer adds a table of skip-trigrams for each head: a source, seen from a destination, raises an output. "
        "A head of one layer sees which tokens came before but not what "
        f"preceded them, so it cannot look for what followed the present token last time: best prefix matching {best}.",
        *copying.paragraph(cells),
    )


def _two(results: Results, drawn: Callable[..., tuple[Figure, ...]]) -> Section:
    cells, figures = results.with_layers(2), drawn("attention_by_distance", "composition", "induction_corner")
    if not cells:
        return Section(TWO, _absent("two-layer"), figures)
    return Section(
        TWO, (*mechanism.paragraphs(cells), *composition.paragraphs(cells)), (*figures, *mechanism.tables(cells))
    )


def _learning(results: Results) -> tuple[str, ...]:
    return (
        "The in-context loss drop is the loss early in the window minus the loss late in it: positive means that the "
        "model learns from its context. The onset is where prefix matching is half-way up.",
        *_two_loss_drops(results),
    )


def _two_loss_drops(results: Results) -> tuple[str, ...]:
    """Give the loss drop at the suite's ends of the window beside that at the positions of ICL."""
    told = []
    for n in results.layer_counts():
        known = [c.summary for c in results.with_layers(n) if c.summary.icl_loss_drop_nats is not None]
        if known:
            ours = span([s.in_context_loss_drop_nats for s in known])
            icl = span([s.icl_loss_drop_nats for s in known if s.icl_loss_drop_nats is not None])
            told.append(f"{layers_label(n)} {ours} and {icl}")
    if not told:
        return ()
    late = span(sorted({c.summary.icl_late_token or 0 for c in results.cells.values()}), 0)
    return (
        "The loss drop is given at two pairs of positions. The suite's own: 8 to 12 % of the window against its last "
        f"tenth. ICL takes the 50th token against the 500th, here 50 ± 5 against {late} ± 5, as far as the window "
        "reaches. The loss falls fastest in the first tokens, so the two differ, and only the second can be compared "
        f"with the paper's. Nats per token, range over models, ours and at ICL's positions: {'; '.join(told)}.",
    )


def _sweep(results: Results) -> tuple[str, ...]:
    counts = [f"{len(results.with_layers(n))} with {layers_label(n)}" for n in results.layer_counts()]
    missing = ", ".join(results.missing) or "none"
    return (f"{plural(len(results.cells), 'model')}: {', '.join(counts) or 'none'}. Declared but missing: {missing}.",)


def _trust(results: Results) -> tuple[str, ...]:
    if not results.cells:
        return ()
    worst = max(c.summary.exactness for c in results.cells.values())
    return (
        "With attention patterns and norm scales fixed, the sum over all paths is the logits, and the sum over pairs "
        "of paths the attention scores of every later head: the largest relative error over all checkpoints of all "
        f"models, in float64, is {worst:.1e}. Tables over tokens read each embedding at its own scale, which is exact "
        "without a norm or without layers, and an approximation elsewhere.",
    )


def _provenance_text() -> tuple[str, ...]:
    return ("The command make repro makes this report again; dvc repro reruns only what changed.",)


def _provenance(results: Results) -> Table:
    fields = tuple((Entry(name), Entry(value, "token")) for name, value in _flat(results.provenance))
    return Table("What this was made from.", ("what", "value"), fields)


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for key in sorted(values):
        value = values[key]
        if isinstance(value, Mapping):
            flat += _flat(value, f"{prefix}{key} ")
        else:
            flat.append((f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, default=str)))
    return flat
