"""The data of the report's explorers."""

from pathsum.records.registry import record


@record(
    "passages",
    "what the attention explorer shows",
    "held-out and random tokens",
    "extraction/explorer.py",
    printed=False,
)
class PassageRow:
    """A passage of the attention explorer; ``PatternRow.passage`` is the number of the row."""

    kind: str  # description
    tokens: str  # printable, joined by U+241F; the first is BOS, the last is only predicted


@record("patterns", "attention on passages", "A; A ‖W_OV x‖ by row", "circuits/value_weighted.py", printed=False)
class PatternRow:
    """The attention of a head on a passage, at a checkpoint."""

    passage: int
    layer: int
    head: int
    tokens_seen: int
    weighted: bool  # by the norm of what is moved
    attention: bytes  # 0..1 in 255ths, one byte each: row by row, query i with its keys 0..i


@record(
    "splits", "a logit by paths", "W_U (id + Σ A ⊗ W_OV + Σ A A ⊗ W_OV W_OV) W_E", "circuits/paths.py", printed=False
)
class SplitRow:
    """The final logit of one token at one position of a passage, split into paths. Patterns and norm scales are frozen.
    Float64, centered over the vocabulary."""

    passage: int
    position: int
    target: str  # next: the actual next token | guess: the model's likeliest
    token: str
    log_prob_nats: float
    logit: float  # of the model
    paths: str  # joined by spaces: direct, then the heads of each path, earliest first: L0H3→L1H2
    parts: list[float]  # logits of each path; the sum is ``logit``


@record("token_tables", "circuits by token", "W_U W_OV W_E; W_Eᵀ W_QK W_E; W_U W_E", "circuits/qk_ov.py", printed=False)
class TokenTableRow:
    """The ``k`` largest entries of a table over tokens, for each of ``tokens``.

    OV: outputs that a head raises if it attends to the token, logits over the mean output. QK: destinations that attend
    to it, nats over their mean key. Direct and corpus: shares (0..1) of next tokens, by the direct path alone and in
    the training text.
    """

    table: str  # OV | QK | direct | corpus
    layer: int | None  # None for direct and corpus
    head: int | None
    tokens: str  # printable, joined by U+241F
    k: int
    found: str  # ``k`` tokens for each token, largest first, printable, joined by U+241F
    values: bytes  # the entries of ``found``: float32, little-endian
