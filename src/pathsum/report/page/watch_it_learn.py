"""Data of “Watch it learn” for one model, for watch.js: learning curves, and the patterns of all checkpoints."""

from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from pathsum.claims.formatting import head_label, layers_label
from pathsum.records.explorers import PassageRow, PatternRow
from pathsum.records.results import Cell, Results
from pathsum.records.tokens import JOINER
from pathsum.report.figures.base import in_detail
from pathsum.report.figures.symbols import visible
from pathsum.report.page.roles import roles

LEVELS = 51  # integer steps from attention 0 to 1; finer ones are not seen, and 100 take 30 % more space
COARSE = bytes(round(share * LEVELS / 255) for share in range(256))  # attention, from 255ths to steps


def watched(results: Results) -> list[Cell]:
    """Choose the models to watch, each of which costs a hundred kilobytes of the page."""
    detailed = in_detail(results)
    if not detailed:
        return []
    deepest = detailed[max(detailed)]
    depth, heads = deepest.summary.n_layers, deepest.summary.n_heads
    seeds = [c for c in results.with_layers(depth) if c.summary.n_heads == heads and c is not deepest]
    shallow = [c for n, c in sorted(detailed.items(), reverse=True) if n < depth]
    smeared = [c for c in results.controls.values() if c.summary.smeared_keys and c.summary.n_layers < depth]
    return [c for c in (deepest, *seeds, *shallow, *smeared) if c.has_curve() and c.rows(PatternRow)]


def payload(cell: Cell) -> dict[str, Any]:
    """Return the data of ``cell`` for watch.js: loss and head scores by checkpoint, passages, and packed patterns."""
    places = sorted({(p.layer, p.head) for p in cell.rows(PatternRow)})
    names, about = [head_label(*place) for place in places], roles(cell)["roles"]
    smeared = f": {layers_label(cell.summary.n_layers)}, smeared keys" if cell.summary.smeared_keys else ""
    best = cell.formed_induction_head() or cell.previous_token_head()
    return {
        "name": cell.name + smeared,
        "levels": LEVELS,
        "tokens_seen": [e.tokens_seen for e in cell.log],
        "onset": cell.summary.onset_tokens,
        "loss": [round(e.val_loss_nats, 3) for e in cell.log],
        "prefix_matching": [[round(e.prefix_matching[layer][head], 3) for e in cell.log] for layer, head in places],
        "previous_token": [[round(e.previous_token[layer][head], 3) for e in cell.log] for layer, head in places],
        "heads": names,
        "roles": [about.get(name, "no label") for name in names],
        "look": places.index((best.layer, best.head)) if best and (best.layer, best.head) in places else 0,
        "passages": [
            {"kind": p.kind, "tokens": [visible(token) for token in p.tokens.split(JOINER)]}
            for p in cell.rows(PassageRow)
        ],
        "patterns": histories(cell.rows(PatternRow)),
    }


def histories(rows: list[PatternRow]) -> npt.NDArray[np.uint8]:
    """Return the attention of each passage, head and entry at every checkpoint, in units of 1/``LEVELS``."""
    ordered = sorted(rows, key=lambda p: (p.passage, p.layer, p.head, p.weighted, p.tokens_seen))
    stacked = [
        np.stack([np.frombuffer(p.attention.translate(COARSE), np.uint8) for p in group], axis=1).ravel()
        for _, group in groupby(ordered, key=lambda p: (p.passage, p.layer, p.head))
    ]
    return np.concatenate(stacked)
