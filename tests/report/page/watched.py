"""A model to watch: its patterns are those of small random models, one for each checkpoint."""

import functools

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.extraction.explorers import pattern_rows
from pathsum.records.explorers import PassageRow, PatternRow
from pathsum.records.results import Cell
from pathsum.records.tokens import JOINER
from tests.report.page.small import random_model

NAME = "L2H2S0"


@functools.cache
def patterns_at(checkpoint: int, passage: int, length: int) -> list[Float[Tensor, "one head query key"]]:
    """Return the patterns of a random model of two layers of two heads, by layer."""
    tokens = torch.arange(length)[None] * (2 + passage)
    with torch.no_grad():
        return random_model(checkpoint, n_layers=2, n_heads=2).trace(tokens).patterns


def with_torch_patterns(cell: Cell) -> Cell:
    """Return ``cell`` with the patterns of ``patterns_at``; the value-weighted ones are those of a further model."""
    rows: list[PatternRow] = []
    for number, passage in enumerate(cell.rows(PassageRow)):
        length = len(passage.tokens.split(JOINER))
        for at, evaluation in enumerate(cell.log):
            rows += pattern_rows(number, evaluation.tokens_seen, False, patterns_at(at, number, length))
        further = patterns_at(len(cell.log), number, length)
        rows += pattern_rows(number, cell.log[-1].tokens_seen, True, further)
    return cell.having(patterns=rows)
