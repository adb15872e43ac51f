"""Where each number comes from: the record that holds it, its equation, the code that computes it, what makes it again.

Every figure and table names its records, and each record has a row in one table of the report.
"""

from __future__ import annotations

from dataclasses import dataclass

TITLE = "Where each number comes from"


@dataclass(frozen=True)
class Origin:
    """A record: what it holds, how that is computed, where it lies. ``code`` is a path under src/pathsum/."""

    record: str
    holds: str
    equation: str
    code: str
    stored: str = ""  # empty: CELL/<record>.parquet
    stage: str = "extract@CELL"


SUMMARY, LOG = "CELL/summary.json", "CELL/log.jsonl"
ORIGINS = (
    Origin(
        "summary",
        "a model's losses, best head scores and onset",
        "loss drop = loss at 8 to 12 % of the window − loss in its last tenth; of 512 tokens: near the 50th − near the "
        "500th",
        "extraction/cell.py",
        SUMMARY,
    ),
    Origin("log", "the same at every evaluation of training", "as summary", "training/evaluate.py", LOG),
    Origin(
        "corpus",
        "tokens, unigram and bigram loss",
        "mean −log P(next | token) of the smoothed corpus model on held-out text",
        "ngrams/statistics.py",
        "data/statistics/summary.json",
        "statistics",
    ),
    Origin(
        "ngrams", "frequent n-grams", "counts", "ngrams/statistics.py", "data/statistics/ngrams.parquet", "statistics"
    ),
    Origin(
        "heads",
        "prefix matching, previous token, copying (by behaviour and by weights), QK matching of each head",
        "mean A[p, p − block + 1]; mean A[i, i − 1]; mean sign of what is written for the token to come; "
        "Σ Re λ / Σ |λ| of W_U W_OV W_E and of W_Eᵀ W_QK W_OV^prev W_E",
        "extraction/framework.py",
    ),
    Origin("eigenvalues", "OV eigenvalues", "λ of W_U W_OV W_E", "circuits/eigenvalues.py"),
    Origin(
        "composition",
        "Q-, K- and V-composition of each pair of heads, its chance and p",
        "‖R W_OV^early‖ / (‖R‖ ‖W_OV^early‖), R = W_QKᵀ (Q), W_QK (K), W_OV (V); chance: random rotations between",
        "circuits/composition.py",
    ),
    Origin("distances", "attention by distance", "mean A[i, i − distance]", "probes/positional.py"),
    Origin(
        "labels",
        "behaviours of each head, with interval, chance and threshold",
        "means of A over windows, bootstrapped",
        "behaviour/labels.py",
    ),
    Origin("bigrams", "frequent bigrams, corpus and model", "softmax of W_U W_E", "circuits/bigram.py"),
    Origin(
        "exactness",
        "certificate of the path sums at every checkpoint, of logits and of scores",
        "max |Σ paths − logits| / max |logits|; max |Σ pairs of paths − log A| / max |log A|",
        "circuits/paths.py",
    ),
    Origin(
        "skip_trigrams",
        "source … destination → out, by the sum of effects on documents that choose; counts of documents that judge",
        "s_final Σ_k A[q, k] s_read[k] · (W_U W_OV W_E)[out, source]",
        "extraction/atlas.py",
    ),
    Origin(
        "skip_trigram_tallies",
        "of each head's strongest before the text chooses: how many copy, how many the text bears out",
        "hits − expected hits > 3 √expected, in documents that judge",
        "extraction/atlas.py",
    ),
    Origin(
        "skip_trigram_bugs",
        "triples that come of factorising, and their price",
        "rise of −log P of what follows instead",
        "extraction/atlas.py",
    ),
    Origin(
        "ablations",
        "losses without a head, an edge or a pattern",
        "loss with something else in its place − loss as it is; later layers computed again",
        "extraction/causal.py",
    ),
    Origin(
        "joint_ablation",
        "both gains from context without all induction heads, through training",
        "gain with the heads − gain with zeros, a mean or another window's writes in their place",
        "extraction/joint_ablation.py",
    ),
    Origin(
        "sufficiency",
        "prefix matching and second-copy gain of the circuit alone",
        "of the circuit with all else resampled / of the whole model",
        "extraction/sufficiency.py",
    ),
    Origin(
        "softmax_competition",
        "keys that a repetition makes heads prefer",
        "log A[p, p − block + n] − its mean over keys near, repeated − not; Δ log A_k = −log(1 + A_j (e^δ − 1))",
        "behaviour/softmax_competition.py",
    ),
    Origin(
        "attention_sinks",
        "attention on the first token, and the loss without it",
        "mean A[i, 0]; loss with A[·, 0] = 0, the rest as it is or scaled to sum to 1 − loss as it is",
        "behaviour/attention_sinks.py",
    ),
    Origin(
        "norm_scales",
        "worth of each path at frozen norm scales and at its own",
        "L(direct + own heads) − L(direct + own heads + path)",
        "extraction/norm_scales.py",
    ),
    Origin(
        "edge_contrasts",
        "the K-edge of induction against the strongest other edge",
        "rise without the one − rise without the other, by window",
        "extraction/edge_contrasts.py",
    ),
    Origin("terms", "worth of each order of paths", "fall of the loss as orders are added", "circuits/importance.py"),
    Origin(
        "score_paths",
        "an induction head's scores by pairs of paths",
        "Σ w(q, k) · query path · key path",
        "circuits/score_paths.py",
    ),
    Origin(
        "suffix_matches",
        "attention to what followed matches of one, two and three tokens",
        "A[last, follower], mean over both orders",
        "behaviour/suffixes.py",
    ),
    Origin(
        "suffix_predictions",
        "log-probability of what followed them",
        "log P(follower) − log P(follower) where nothing matches",
        "extraction/suffixes.py",
    ),
    Origin(
        "suffix_cuts",
        "the same with edges into the induction head ablated",
        "softmax of (q + Δq)·(k + Δk), Δ by W_QK of another window's or the mean write − the write",
        "extraction/suffixes.py",
    ),
    Origin(
        "fuzzy_matching",
        "attention and match scores where tokens are alike but not equal; gains from a copy with other names",
        "A[last, follower] by what stands before the follower; (M_q W_E)ᵀ W_QK M_k W_E; loss behind BOS − loss behind "
        "a first copy",
        "extraction/fuzzy_matching.py",
    ),
    Origin(
        "content_scores",
        "a head's scores by content of query and key",
        "Σ w(q, k) · content at q · content at k, by tokens back, whatever heads carried it",
        "circuits/content.py",
    ),
    Origin(
        "content",
        "worth of content by hops and by offset",
        "fall of the loss as content is added that moved at 0, 1, … heads, or comes from 0, 1, … tokens back",
        "circuits/content.py",
    ),
    Origin(
        "matching",
        "matching on the pair of paths that carries a head's score",
        "Σ Re λ / Σ |λ| of (M_q W_E)ᵀ W_QK M_k W_E, M = W_OV ⋯ W_OV along a path, W_E at the scale as read",
        "circuits/matching.py",
    ),
    Origin(
        "balance",
        "norm of each part of the residual stream, and its share of what is read",
        "Σ ‖part‖² / Σ ‖x‖²; Σ ⟨part, x⟩ / Σ ‖x‖²",
        "circuits/balance.py",
    ),
    Origin("token_clusters", "groups of tokens", "eigenvectors of W_U W_OV W_E", "circuits/token_clusters.py"),
    Origin("directions", "what is read and then written", "singular vectors of W_OV", "circuits/token_clusters.py"),
    Origin("joint_copying", "copying of heads of one pattern", "W_U Σ_h W_OV^h W_E", "circuits/joint_copying.py"),
    Origin(
        "overlaps",
        "where heads read of what others write",
        "‖P W_OV^early‖² / ‖W_OV^early‖², P the projection on what is read",
        "circuits/subspaces.py",
    ),
    Origin("bandwidth", "directions used", "(Σ s²)² / Σ s⁴, s the singular values", "circuits/subspaces.py"),
    Origin(
        "deleting",
        "writing against what was written, and how far the two lie in one line",
        "−⟨o, y⟩ / ⟨y, y⟩; tr(W_OV C) / √(tr(W_OV C W_OVᵀ) tr C), C the covariance of what was written",
        "circuits/deleting.py",
    ),
    Origin(
        "virtual_heads",
        "pairs of heads as one",
        "A^late A^early ⊗ W_OV^late W_OV^early",
        "circuits/virtual_heads.py",
    ),
    Origin("lens", "loss after each layer", "W_U of the residual stream there", "circuits/logit_lens.py"),
    Origin("token_losses", "losses of single tokens at checkpoints", "−log P(token)", "extraction/behaviour.py"),
    Origin(
        "formation",
        "what has formed by each checkpoint",
        "as heads and composition; key edge: preference with it − with another window's writes",
        "extraction/formation.py",
    ),
    Origin("changes", "when each of these changes", "half of its rise; bend of the loss", "statistics/phase_change.py"),
    Origin("passages", "what the attention explorer shows", "held-out and random tokens", "extraction/explorer.py"),
    Origin("patterns", "attention on passages", "A; A ‖W_OV x‖ by row", "circuits/value_weighted.py"),
    Origin("splits", "a logit by paths", "W_U (id + Σ A ⊗ W_OV + Σ A A ⊗ W_OV W_OV) W_E", "circuits/paths.py"),
    Origin("token_tables", "circuits by token", "W_U W_OV W_E; W_Eᵀ W_QK W_E; W_U W_E", "circuits/qk_ov.py"),
    Origin(
        "calibration",
        "each detector on synthetic corpora",
        "precision and recall, Wilson intervals for n / design effect by world",
        "calibration/score.py",
        "data/calibration.parquet",
        "calibrate",
    ),
    Origin(
        "claims",
        "verdict of every claim",
        "all models pass, or some; median over models",
        "claims/judging.py",
        "data/claims.json",
        "verify",
    ),
)
RECORDS: dict[str, tuple[str, ...]] = {  # by figure or table; one that is not here shows the record of its own name
    "headline": ("log", "summary"),
    "phase_change": ("log", "summary"),
    "loss_by_position": ("log", "summary"),
    "controls": ("log", "summary"),
    "trajectories": ("token_losses",),
    "eigenvalues": ("eigenvalues", "heads"),
    "attention_by_distance": ("distances", "heads"),
    "induction_corner": ("heads", "matching"),
    "content_claims": ("content_scores", "score_paths"),
    "content_worth": ("content", "terms"),
    "corner": ("matching", "heads"),
    "bigrams": ("bigrams", "corpus", "summary"),
    "logit_lens": ("lens", "corpus"),
    "sweep": ("summary", "labels"),
    "widths": ("summary", "labels"),
    "cells": ("summary",),
    "labels": ("labels", "heads"),
    "suffixes": ("suffix_matches", "suffix_cuts"),
    "subspaces": ("overlaps", "deleting"),
    "agreement": ("heads", "labels", "composition", "ablations"),
    "references": ("summary", "terms", "joint_copying"),
    "explorers": ("passages", "patterns", "splits", "token_tables"),
    "mechanism": ("heads", "composition"),
    "copying": ("heads", "labels", "ablations"),
    "formation": ("changes",),
    "token_clusters": ("token_clusters", "directions"),
}


def records(name: str) -> tuple[str, ...]:
    """Which records does the figure or table called ``name`` show? None for what stands in no record."""
    return RECORDS.get(name, tuple(o.record for o in ORIGINS if o.record == name))


def anchor(record: str) -> str:
    return f"from-{record.replace('_', '-')}"
