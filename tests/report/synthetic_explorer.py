"""Made-up records of passages, patterns and circuits by token, with tokens that try to break the page."""

import random
import struct
from collections.abc import Sequence
from typing import Any

from pathsum.records.evaluation import Evaluation
from pathsum.records.explorers import PassageRow, PatternRow, TokenTableRow
from pathsum.records.heads import HeadRow
from pathsum.records.tokens import JOINER

K = 3


def explored(tokens: Sequence[str], heads: Sequence[HeadRow], log: Sequence[Evaluation]) -> dict[str, list[Any]]:
    """Return records in which head 0 of a layer attends to the previous token, and the others attend uniformly."""
    rng = random.Random(f"{len(heads)}")
    kinds, length = ("random tokens, twice", "held-out text that repeats itself"), 1 + len(tokens)
    frames = [(e.tokens_seen, False) for e in log] + [(log[-1].tokens_seen, True)]
    return {
        "passages": [PassageRow(kind, JOINER.join(("<|bos|>", *tokens))) for kind in kinds],
        "patterns": [
            PatternRow(p, h.layer, h.head, seen, weighted, looking(h.head, length))
            for seen, weighted in frames
            for p in range(len(kinds))
            for h in heads
        ],
        "token_tables": [
            *(table(name, h.layer, h.head, tokens, rng) for h in heads for name in ("OV", "QK")),
            *(table(name, None, None, tokens, rng) for name in ("direct", "corpus")),
        ],
    }


def looking(head: int, length: int) -> bytes:
    rows = []
    for i in range(length):
        row = [0] * (i + 1) if head == 0 else [255 // (i + 1)] * (i + 1)
        row[max(0, i - 1)] = 255 if head == 0 else row[0]
        rows += row
    return bytes(rows)


def table(name: str, layer: int | None, head: int | None, tokens: Sequence[str], rng: random.Random) -> TokenTableRow:
    found = [tokens[(i + j) % len(tokens)] for i in range(len(tokens)) for j in range(K)]
    values = [rng.uniform(0, 1) for _ in found]
    return TokenTableRow(
        name, layer, head, JOINER.join(tokens), K, JOINER.join(found), struct.pack(f"<{len(values)}f", *values)
    )
