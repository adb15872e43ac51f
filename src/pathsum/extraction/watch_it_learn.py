"""Record the attention patterns of every head on two passages, at every checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.value_weighted import value_weighted
from pathsum.config import ExtractConfig
from pathsum.extraction.behaviour import reads
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records.explorers import PassageRow, PatternRow
from pathsum.records.tokens import JOINER
from pathsum.text.repeated import repeated_random

LENGTH = 48  # tokens of a passage; the size of a pattern is its square
_SEED = 2023


@dataclass(frozen=True)
class Passage:
    """Consecutive tokens of a window. The first is the beginning-of-sequence token (BOS)."""

    kind: str
    tokens: Int[Tensor, "one pos"]


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``passages`` and ``patterns``."""
    shown, log = passages(data, trained.model.config.n_ctx), trained.log
    patterns: list[PatternRow] = []
    for path, at in zip(trained.checkpoints, log, strict=True):
        model = load_checkpoint(path, data.tokenizer_hash)
        for number, passage in enumerate(shown):
            patterns += pattern_rows(number, at.tokens_seen, False, model.trace(passage.tokens).patterns)
    for number, passage in enumerate(shown):
        trace = trained.model.trace(passage.tokens)
        read = reads(trained.model, passage.tokens, trace)
        layers = zip(trace.patterns, read, trained.weights.layers, strict=False)
        weighted = [value_weighted(*layer) for layer in layers]
        patterns += pattern_rows(number, log[-1].tokens_seen, True, weighted)
    return {
        "passages": [PassageRow(p.kind, JOINER.join(data.words[t] for t in p.tokens[0].tolist())) for p in shown],
        "patterns": patterns,
    }


def passages(data: EvalData, n_ctx: int) -> list[Passage]:
    """Return two passages of at most ``LENGTH`` (48) tokens: BOS and a random block given twice, and the start of a
    held-out window."""
    length = min(LENGTH, n_ctx)
    starts = data.windows[:, :length]
    pairs = starts[:, 1:-1] * len(data.words) + starts[:, 2:]
    before = (pairs[:, :, None] == pairs[:, None, :]).tril(-1).sum(-1)
    again = (before == 1).sum(-1)  # a pair counts only at its second occurrence
    generator = torch.Generator().manual_seed(_SEED)
    random, _ = repeated_random(1, length + 1, len(data.words), generator, data.present)
    return [
        Passage("random tokens, twice", random[:, :length]),
        Passage("held-out text that repeats itself", starts[again.argmax()][None]),
    ]


def pattern_rows(
    passage: int, tokens_seen: int, weighted: bool, patterns: Sequence[Float[Tensor, "one head query key"]]
) -> Iterator[PatternRow]:
    """Yield each head's attention pattern on one passage, without future keys, rounded to multiples of 1/255."""
    for layer, heads in enumerate(patterns):
        for h, pattern in enumerate(heads[0]):
            past = torch.ones_like(pattern, dtype=torch.bool).tril()
            quantised = (pattern[past] * 255).round().clamp(0, 255).to(torch.uint8)
            yield PatternRow(passage, layer, h, tokens_seen, weighted, quantised.cpu().numpy().tobytes())
