"""Data of the circuit explorer of the report."""

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
