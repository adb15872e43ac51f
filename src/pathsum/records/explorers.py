"""Data of the report's explorers: circuits by token, and attention patterns during training."""

from pathsum.records.registry import record


@record("token_tables", "circuits by token", "W_U W_OV W_E; W_Eᵀ W_QK W_E; W_U W_E", "circuits/qk_ov.py", printed=False)
class TokenTableRow:
    """The ``k`` largest entries of a table for each of ``tokens``.

    * OV: output tokens that the head raises when it attends to the token, in logits above the mean over outputs.
    * QK: destinations that attend to the token, in nats above each destination's mean over keys.
    * direct and corpus: probabilities (0 to 1) of the next token under the direct path alone and in the training text.
    """

    table: str  # OV | QK | direct | corpus
    layer: int | None  # None for direct and corpus
    head: int | None
    tokens: str  # printable, joined by U+241F
    k: int
    found: str  # ``k`` tokens for each of ``tokens``, largest entry first, printable, joined by U+241F
    values: bytes  # the entries of ``found``: float32, little-endian


@record(
    "passages",
    "passages of the patterns",
    "repeated random tokens and held-out text",
    "extraction/watch_it_learn.py",
    printed=False,
)
class PassageRow:
    """A passage on which patterns are shown. ``PatternRow.passage`` is the number of its row, from 0."""

    kind: str  # description of the passage
    tokens: str  # printable, joined by U+241F; the first is BOS


@record("patterns", "attention on passages", "A; A ‖W_OV x‖ by row", "circuits/value_weighted.py", printed=False)
class PatternRow:
    """The attention pattern of a head on one passage at one checkpoint."""

    passage: int
    layer: int
    head: int
    tokens_seen: int
    weighted: bool  # whether the pattern is value-weighted (docs/framework.md §3.14); the last checkpoint only
    attention: bytes  # one byte per entry, attention (0..1) times 255: row by row, keys 0..i of query i
