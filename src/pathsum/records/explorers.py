"""Data of the report's explorers: circuits by token, and attention patterns during training."""

from pathsum.records.registry import record


@record("token_tables", "W_U W_OV W_E; W_Eᵀ W_QK W_E; W_U W_E", "circuits/qk_ov.py", printed=False)
class TokenTableRow:
    """Circuits by token. The largest entries for each of ``tokens``: outputs, in logits above the mean over outputs
    (OV); destinations, in nats above their mean over keys (QK); next tokens, as probabilities (direct, corpus)."""

    table: str  # OV | QK | direct | corpus
    layer: int | None  # None for direct and corpus
    head: int | None
    tokens: str  # printable, joined by U+241F
    k: int
    found: str  # ``k`` tokens for each of ``tokens``, largest entry first, printable, joined by U+241F
    values: bytes  # the entries of ``found``: float32, little-endian


@record("passages", "repeated random tokens and held-out text", "extraction/explorers.py", printed=False)
class PassageRow:
    """Passages of the patterns."""

    kind: str  # description of the passage
    tokens: str  # printable, joined by U+241F; the first is BOS


@record("patterns", "A; A ‖W_OV x‖ by row", "circuits/value_weighted.py", printed=False)
class PatternRow:
    """Attention on passages. At every checkpoint."""

    passage: int
    layer: int
    head: int
    tokens_seen: int
    weighted: bool  # by value (docs/framework.md §3.14); the last checkpoint only
    attention: bytes  # one byte per entry, attention (0..1) times 255: row by row, keys 0..i of query i
