"""The data of the explorers on the report's page."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record(
    "passages",
    "what the attention explorer shows",
    "held-out and random tokens",
    "extraction/explorer.py",
    printed=False,
)
@dataclass(frozen=True)
class PassageRow:
    """A passage that the attention explorer shows; rows in the order of ``PatternRow.passage``."""

    kind: str  # what it is, in words
    tokens: str  # printable, joined by U+241F; begins with BOS, and the last one is only predicted


@record("patterns", "attention on passages", "A; A ‖W_OV x‖ by row", "circuits/value_weighted.py", printed=False)
@dataclass(frozen=True)
class PatternRow:
    """The attention of a head on a passage, at a checkpoint."""

    passage: int
    layer: int
    head: int
    tokens_seen: int
    weighted: bool  # by the size of what is moved
    attention: bytes  # 0..1 in 255ths, a byte each: row after row, query i with its keys 0..i


@record(
    "splits", "a logit by paths", "W_U (id + Σ A ⊗ W_OV + Σ A A ⊗ W_OV W_OV) W_E", "circuits/paths.py", printed=False
)
@dataclass(frozen=True)
class SplitRow:
    """The final logit of one token at one position of a passage, as its paths, patterns and norm scales frozen there;
    float64, centred over the vocabulary."""

    passage: int
    position: int
    target: str  # next: the token that does come next | guess: the model's likeliest
    token: str
    log_prob_nats: float
    logit: float  # the model's
    paths: str  # direct, then the heads of each path, earliest first: L0H3→L1H2; joined by spaces
    parts: list[float]  # logits that each path adds; the sum is ``logit``


@record("token_tables", "circuits by token", "W_U W_OV W_E; W_Eᵀ W_QK W_E; W_U W_E", "circuits/qk_ov.py", printed=False)
@dataclass(frozen=True)
class TokenTableRow:
    """The ``k`` largest entries of a table over tokens, for each of ``tokens``.

    OV: outputs that a head raises where it attends to the token, logits over the mean output; QK: destinations that
    look for it, nats over their mean key; direct: what comes next by the direct path alone, and corpus: in the training
    text, both shares 0..1.
    """

    table: str  # OV | QK | direct | corpus
    layer: int | None  # None for direct and corpus
    head: int | None
    tokens: str  # printable, joined by U+241F
    k: int
    found: str  # ``k`` per token, likewise, largest first
    values: bytes  # of those: float32, little-endian
