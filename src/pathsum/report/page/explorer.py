"""Data of the circuit explorer for one model: circuits by token. ``templates/explorers/explorer.js`` reads them."""

from typing import Any

import numpy as np
import pandas as pd

from pathsum.claims.formatting import head_label
from pathsum.records.explorers import TokenTableRow
from pathsum.records.results import Cell
from pathsum.records.tokens import JOINER
from pathsum.report.figures.symbols import visible

UNITS = {"OV": 100, "QK": 100, "direct": 10_000, "corpus": 10_000}  # integer steps per logit, nat, or probability of 1


def payload(cell: Cell) -> dict[str, Any]:
    """Return the data of ``cell`` for explorer.js: the entries of its tables, one table after another."""
    rows = cell.rows(TokenTableRow)
    found = JOINER.join(row.found for row in rows).split(JOINER)
    tokens = rows[0].tokens.split(JOINER)
    numbers, words = pd.factorize(np.array([*found, *tokens], dtype=object))
    heads = [head_label(r.layer, r.head) if r.layer is not None and r.head is not None else "" for r in rows]
    values = [np.frombuffer(row.values, "<f4").astype(np.float64) * UNITS[row.table] for row in rows]
    return {
        "name": cell.name,
        "heads": sorted({head for head in heads if head}),
        "tables": [f"{row.table} {head}".strip() for row, head in zip(rows, heads, strict=True)],
        "k": rows[0].k,
        "words": [visible(word) for word in words],
        "tokens": numbers[len(found) :].tolist(),
        "found": numbers[: len(found)].astype("<i4"),
        "values": np.concatenate(values).round().astype("<i4"),
    }
