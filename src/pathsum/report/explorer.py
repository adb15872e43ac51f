"""Data of the two explorers for one model: passages, attention patterns, logits by path, and circuits by token.

Numbers are packed, deflated, in base64, because they make up a third of the page. ``templates/explorer.js`` unpacks
them.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from pathsum.claims.formatting import head_label
from pathsum.records.explorers import PassageRow, PatternRow, SplitRow, TokenTableRow
from pathsum.records.results import Cell, Results
from pathsum.records.tokens import JOINER
from pathsum.report.symbols import visible

THOUSANDTHS = 1000  # integer steps per logit in the logits by path
HUNDREDTHS = bytes(round(share * 100 / 255) for share in range(256))  # attention, from 255ths to hundredths
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


def in_detail(results: Results) -> dict[int, Cell]:
    """Choose the model of each layer count that the page shows in detail: the lowest loss of those with the middle
    number of heads."""
    found = {}
    for n_layers in results.layer_counts():
        cells = results.with_layers(n_layers)
        counts = sorted({c.summary.n_heads for c in cells})
        middle = [c for c in cells if c.summary.n_heads == counts[len(counts) // 2]]
        found[n_layers] = min(middle, key=lambda c: c.summary.val_loss_nats)
    return found


def payload(cell: Cell, *, tables: bool) -> dict[str, Any]:
    """Return the data of ``cell`` for explorer.js. ``tables``: whether to include the data of the circuit explorer."""
    words = Words()
    passages = [{"kind": p.kind, "tokens": words.all_of(p.tokens)} for p in cell.rows(PassageRow)]
    heads = sorted({(p.layer, p.head) for p in cell.rows(PatternRow)})
    best = cell.induction_head()
    data = {
        "name": cell.name,
        "heads": [head_label(*place) for place in heads],
        "look": heads.index((best.layer, best.head)) if best and (best.layer, best.head) in heads else 0,
        "passages": passages,
        "checkpoints": sorted({p.tokens_seen for p in cell.rows(PatternRow)}),
        "patterns": patterns(cell),
        "paths": cell.rows(SplitRow)[0].paths.split(" ") if cell.rows(SplitRow) else [],
        "splits": splits(cell, words),
    }
    if tables:
        data["tables"] = token_tables(cell.rows(TokenTableRow), words)
    return data | {"words": [visible(token) for token in words.numbers]}


def patterns(cell: Cell) -> str:
    """Pack all attention patterns in hundredths, by checkpoint, passage and head. Value-weighted patterns come last."""
    rows = sorted(cell.rows(PatternRow), key=lambda p: (p.weighted, p.tokens_seen, p.passage, p.layer, p.head))
    return packed(b"".join(p.attention.translate(HUNDREDTHS) for p in rows))


def splits(cell: Cell, words: Words) -> str:
    """Pack the logits by path, sorted by passage and position, for the next token and then the guess. Each row holds
    the token, its log-probability, its logit, and the logit of each path."""
    rows = sorted(cell.rows(SplitRow), key=lambda s: (s.passage, s.position, s.target != "next"))
    numbers: list[int] = []
    for s in rows:
        numbers += [words.of(s.token), round(s.log_prob_nats * THOUSANDTHS), round(s.logit * THOUSANDTHS)]
        numbers += in_whole(s.parts, THOUSANDTHS)
    return packed(integers(numbers))


def token_tables(rows: Sequence[TokenTableRow], words: Words) -> dict[str, Any]:
    """Pack the circuits by token of one model, one table after another, with ``k`` entries per token."""
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


def in_whole(parts: Sequence[float], steps: int) -> list[int]:
    """Return ``parts`` in integer steps (``steps`` per unit) that add up to the rounded sum of the parts.

    All parts are rounded down. Those with the largest remainders are then raised by one step until the sum is right.
    """
    exact = [x * steps for x in parts]
    whole = [math.floor(x) for x in exact]
    short = round(math.fsum(exact)) - sum(whole)
    for i in sorted(range(len(whole)), key=lambda i: whole[i] - exact[i])[:short]:
        whole[i] += 1
    return whole


def integers(numbers: Iterable[int]) -> bytes:
    """Return ``numbers`` as 32-bit integers: all lowest bytes first, then all second ones, … (they deflate better)."""
    listed = list(numbers)
    whole = struct.pack(f"<{len(listed)}i", *listed)
    return b"".join(whole[place::4] for place in range(4))


def packed(data: bytes) -> str:
    """Return ``data`` deflated, in base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode()
