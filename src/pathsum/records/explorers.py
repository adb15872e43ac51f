"""Data of the attention explorer and of the circuit explorer of the report."""

from pathsum.records.registry import record


@record(
    "passages",
    "passages of the attention explorer",
    "held-out text and repeated random tokens",
    "extraction/explorer.py",
    printed=False,
)
class PassageRow:
    """A passage of the attention explorer. ``PatternRow.passage`` and ``SplitRow.passage`` are the row's number."""

    kind: str  # description of the passage
    tokens: str  # printable, joined by U+241F; the first is BOS, the last is a target only


@record("patterns", "attention on passages", "A; A ‖W_OV x‖ by row", "circuits/value_weighted.py", printed=False)
class PatternRow:
    """The attention pattern of a head on a passage at one checkpoint."""

    passage: int
    layer: int
    head: int
    tokens_seen: int
    weighted: bool  # whether the pattern is value-weighted (docs/framework.md §3.14)
    attention: bytes  # one byte per entry, attention (0..1) times 255: row by row, keys 0..i of query i


@record("splits", "logits by path", "W_U (id + Σ A ⊗ W_OV + Σ A A ⊗ W_OV W_OV) W_E", "circuits/paths.py", printed=False)
class SplitRow:
    """The logit of one token at one position of a passage, as a sum over paths, in float64. Logits are centered over
    the vocabulary. Patterns and norm scales are frozen."""

    passage: int
    position: int
    target: str  # next: the actual next token | guess: the token with the largest logit
    token: str
    log_prob_nats: float
    logit: float  # of the model
    paths: str  # joined by spaces: direct, then the heads of each path, earliest first: L0H3→L1H2
    parts: list[float]  # logit of each path; their sum is ``logit``


@record("token_tables", "circuits by token", "W_U W_OV W_E; W_Eᵀ W_QK W_E; W_U W_E", "circuits/qk_ov.py", printed=False)
class TokenTableRow:
    """The ``k`` largest entries of a circuit for each of ``tokens``.

    OV: output tokens that the head raises when it attends to the token, in logits above the mean over outputs. QK:
    destinations that attend to the token, in nats above the mean over their keys. direct and corpus: probabilities
    (0..1) of the next token under the direct path alone and in the training text.
    """

    table: str  # OV | QK | direct | corpus
    layer: int | None  # None for direct and corpus
    head: int | None
    tokens: str  # printable, joined by U+241F
    k: int
    found: str  # ``k`` tokens for each of ``tokens``, largest entry first, printable, joined by U+241F
    values: bytes  # the entries of ``found``: float32, little-endian
