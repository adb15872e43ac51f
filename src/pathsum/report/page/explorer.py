"""Data of the circuit explorer for one model: circuits by token.

Numbers are packed as integers, deflated, and encoded in base64. ``templates/explorer.js`` unpacks them.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from pathsum.claims.formatting import head_label
from pathsum.records.explorers import TokenTableRow
from pathsum.records.results import Cell
from pathsum.records.tokens import JOINER
from pathsum.report.figures.symbols import visible

UNITS = {"OV": 100, "QK": 100, "direct": 10_000, "corpus": 10_000}  # integer steps per logit, nat, or probability of 1


class Words:
    """A numbering of tokens, in the order of their first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, token: str) -> int:
        """Return the number of ``token``."""
        return self.numbers.setdefault(token, len(self.numbers))

    def all_of(self, joined: str) -> list[int]:
        """Return the numbers of the tokens in ``joined``, a record field with tokens joined by JOINER."""
        return [self.of(token) for token in joined.split(JOINER)]


def payload(cell: Cell) -> dict[str, Any]:
    """Return the data of ``cell`` for explorer.js."""
    words = Words()
    rows = cell.rows(TokenTableRow)
    tables = token_tables(rows, words)
    heads = sorted({(r.layer, r.head) for r in rows if r.layer is not None and r.head is not None})
    return {
        "name": cell.name,
        "heads": [head_label(*place) for place in heads],
        "tables": tables,
        "words": [visible(token) for token in words.numbers],
    }


def token_tables(rows: Sequence[TokenTableRow], words: Words) -> dict[str, Any]:
    """Pack the circuits by token of one model for explorer.js, one table after another."""
    found, values = [], []
    for row in rows:
        found += words.all_of(row.found)
        values += [round(x * UNITS[row.table]) for (x,) in struct.iter_unpack("<f", row.values)]
    return {
        "tokens": words.all_of(rows[0].tokens),
        "k": rows[0].k,
        "list": [[r.table, "" if r.layer is None or r.head is None else head_label(r.layer, r.head)] for r in rows],
        "found": packed(integers(found)),
        "values": packed(integers(values)),
    }


def integers(numbers: Iterable[int]) -> bytes:
    """Return ``numbers`` as signed 32-bit integers: all lowest bytes, then all second bytes, … (deflates better)."""
    listed = list(numbers)
    whole = struct.pack(f"<{len(listed)}i", *listed)
    return b"".join(whole[place::4] for place in range(4))


def packed(data: bytes) -> str:
    """Return ``data`` deflated, in base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode()
