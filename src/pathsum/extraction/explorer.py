"""Compute the data of the report's attention explorer: passages, attention patterns at several checkpoints, and
predictions split into paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.paths import all_paths, path_logits, path_name
from pathsum.config import ExtractConfig
from pathsum.core.weights import Weights
from pathsum.data.repeated import repeated_random
from pathsum.extraction.behaviour import reads, weighted_layers
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.records.explorers import PassageRow, PatternRow, SplitRow
from pathsum.records.tokens import JOINER

LENGTH = 48  # tokens of a passage; the size of a pattern is its square
CHECKPOINTS = 6
MOST_PATHS = 200  # most paths into which predictions are split, enough for two layers of 13 heads
_SEED = 2023


@dataclass(frozen=True)
class Passage:
    """Consecutive tokens of a window. The first is the beginning-of-sequence token (BOS), and the last is only
    predicted."""

    kind: str
    tokens: Int[Tensor, "one window"]

    @property
    def inputs(self) -> Int[Tensor, "one pos"]:
        """Return the tokens that the model reads: all but the last."""
        return self.tokens[:, :-1]


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``passages``, ``patterns`` and ``splits``. Costs a trace of every passage at CHECKPOINTS
    checkpoints."""
    shown, log = passages(data, trained.model.config.n_ctx), trained.log
    patterns: list[PatternRow] = []
    for at in evenly(len(log), CHECKPOINTS):
        model = load_checkpoint(trained.checkpoints[at], data.tokenizer_hash)
        for number, passage in enumerate(shown):
            patterns += pattern_rows(number, log[at].tokens_seen, False, model.trace(passage.inputs).patterns)
    for number, passage in enumerate(shown):
        trace = trained.model.trace(passage.inputs)
        weighted = weighted_layers(trace.patterns, reads(trained.model, passage.inputs, trace), trained.weights)
        patterns += pattern_rows(number, log[-1].tokens_seen, True, weighted)
    exact = load_checkpoint(trained.checkpoints[-1], data.tokenizer_hash, torch.float64)
    return {
        "passages": [PassageRow(p.kind, JOINER.join(data.words[t] for t in p.tokens[0].tolist())) for p in shown],
        "patterns": patterns,
        "splits": [r for n, p in enumerate(shown) for r in split_rows(exact, n, p, data.words)],
    }


def passages(data: EvalData, n_ctx: int) -> list[Passage]:
    """Return three passages: the start of the first held-out window, the start that repeats the most pairs of tokens
    among the other windows, and a random block given twice."""
    length = min(LENGTH, n_ctx)
    starts = data.windows[:, : length + 1]
    pairs = starts[:, 1:-1] * len(data.words) + starts[:, 2:]
    before = (pairs[:, :, None] == pairs[:, None, :]).tril(-1).sum(-1)
    again = (before == 1).sum(-1)  # a pair counts only at its second occurrence
    again[0] = -1  # the first window is the first passage
    generator = torch.Generator().manual_seed(_SEED)
    random, _ = repeated_random(1, length + 1, len(data.words), generator, data.present)
    return [
        Passage("held-out text", starts[:1]),
        Passage("held-out text that repeats itself", starts[again.argmax()][None]),
        Passage("random tokens, twice", random),
    ]


def evenly(count: int, most: int) -> list[int]:
    """Return at most ``most`` of the indices 0 … ``count`` − 1, evenly spaced, including the first and the last."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def pattern_rows(
    passage: int, tokens_seen: int, weighted: bool, patterns: Sequence[Float[Tensor, "one head query key"]]
) -> Iterator[PatternRow]:
    """Yield each head's attention pattern on one passage, without future keys, rounded to multiples of 1/255."""
    for layer, heads in enumerate(patterns):
        for h, pattern in enumerate(heads[0]):
            past = torch.ones_like(pattern, dtype=torch.bool).tril()
            quantised = (pattern[past] * 255).round().clamp(0, 255).to(torch.uint8)
            yield PatternRow(passage, layer, h, tokens_seen, weighted, quantised.cpu().numpy().tobytes())


def split_rows(model: Transformer, number: int, passage: Passage, words: Sequence[str]) -> Iterator[SplitRow]:
    """Yield the logits of the next token and of the most likely token at each position, split into paths; no rows if
    there are more than MOST_PATHS paths."""
    weights: Weights = model.weights()
    routes = all_paths(weights)
    if len(routes) > MOST_PATHS:
        return
    trace = model.trace(passage.inputs)
    centred = Weights(weights.W_E, weights.W_U - weights.W_U.mean(0), weights.layers)
    logits, log_probs = trace.logits - trace.logits.mean(-1, keepdim=True), trace.logits.log_softmax(-1)
    targets = torch.stack([passage.tokens[:, 1:], logits.argmax(-1)], -1)
    parts = torch.stack(
        [path_logits(centred, r, passage.inputs, trace.patterns, trace.scales).gather(-1, targets) for r in routes], -1
    )[0]
    names = " ".join(path_name(r) for r in routes)
    whole, likely = logits.gather(-1, targets)[0], log_probs.gather(-1, targets)[0]
    for position, (actual, guess) in enumerate(targets[0].tolist()):
        for i, (target, token) in enumerate((("next", actual), ("guess", guess))):
            log_prob, logit = likely[position, i].item(), whole[position, i].item()
            yield SplitRow(number, position, target, words[token], log_prob, logit, names, parts[position, i].tolist())
