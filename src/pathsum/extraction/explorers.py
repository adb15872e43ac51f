"""Record the patterns of every head on two passages at every checkpoint, and the circuits by token."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.bigram import direct_path
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit, top_rows
from pathsum.circuits.value_weighted import value_weighted
from pathsum.config import ExtractConfig
from pathsum.extraction.behaviour import reads
from pathsum.extraction.inputs import EvalData, TracedModel, TrainedModel, printed
from pathsum.records.explorers import PassageRow, PatternRow, TokenTableRow

LENGTH = 48  # tokens of a passage; the size of a pattern is its square
TOKENS, TOP = 2048, 5  # most frequent tokens that are shown, and entries for each
BLOCK = 256
_SEED = 2023

Top = tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``passages``, ``patterns`` and ``token_tables``."""
    shown, log = passages(data, trained.model.config.n_ctx), trained.log
    patterns: list[PatternRow] = []
    for load, at in zip(trained.checkpoints, log, strict=True):
        model = load()
        for number, tokens in enumerate(shown.values()):
            patterns += pattern_rows(number, at.tokens_seen, False, model.trace(tokens).patterns)
    for number, tokens in enumerate(shown.values()):
        trace = trained.model.trace(tokens)
        layers = zip(trace.patterns, reads(trained.model, trace), trained.weights.layers, strict=False)
        weighted = [value_weighted(*layer) for layer in layers]
        patterns += pattern_rows(number, log[-1].tokens_seen, True, weighted)
    rows = [PassageRow(kind=kind, tokens=printed(data, tokens[0])) for kind, tokens in shown.items()]
    return {"passages": rows, "patterns": patterns, "token_tables": token_tables(trained, data)}


def passages(data: EvalData, n_ctx: int) -> dict[str, Int[Tensor, "one pos"]]:
    """Return two passages of at most ``LENGTH`` tokens, by kind."""
    length = min(LENGTH, n_ctx)
    starts = data.windows[:, :length]
    pairs = starts[:, 1:-1] * len(data.words) + starts[:, 2:]
    before = (pairs[:, :, None] == pairs[:, None, :]).tril(-1).sum(-1)
    again = (before == 1).sum(-1)  # a pair counts only at its second occurrence
    generator = torch.Generator().manual_seed(_SEED)
    return {
        "random tokens, twice": data.repeats(1, length + 1, generator)[:, :length],
        "held-out text that repeats itself": starts[again.argmax()][None],
    }


def pattern_rows(
    passage: int, tokens_seen: int, weighted: bool, patterns: Sequence[Float[Tensor, "one head query key"]]
) -> Iterator[PatternRow]:
    """Yield each head's attention pattern on one passage, without future keys, rounded to multiples of 1/255."""
    for layer, heads in enumerate(patterns):
        for h, pattern in enumerate(heads[0]):
            past = torch.ones_like(pattern, dtype=torch.bool).tril()
            quantised = (pattern[past] * 255).round().clamp(0, 255).to(torch.uint8)
            yield PatternRow(
                passage=passage,
                layer=layer,
                head=h,
                tokens_seen=tokens_seen,
                weighted=weighted,
                attention=quantised.cpu().numpy().tobytes(),
            )


def token_tables(trained: TracedModel, data: EvalData) -> list[TokenTableRow]:
    """Return up to TOP entries of each table for each of the TOKENS most frequent tokens, by id."""
    tokens = data.unigram.argsort(descending=True, stable=True)[:TOKENS].sort().values
    return [
        TokenTableRow(
            table=table,
            layer=layer,
            head=head,
            tokens=printed(data, tokens),
            k=found.shape[1],
            found=printed(data, found),
            values=values.to(torch.float32).cpu().numpy().astype(np.dtype("<f4")).tobytes(),
        )
        for table, layer, head, (values, found) in _tops(trained, data, tokens)
    ]


def _tops(
    trained: TracedModel, data: EvalData, tokens: Int[Tensor, "n"]
) -> Iterator[tuple[str, int | None, int | None, Top]]:
    weights, k = trained.weights, min(TOP, len(data.words))
    for layer, h in trained.places:
        head = weights.layers[layer][h]
        yield "OV", layer, h, top_rows(ov_circuit(weights, head.W_OV), tokens, k)
        yield "QK", layer, h, top_rows(qk_circuit(weights, head.W_QK, data.unigram), tokens, k)
    yield "direct", None, None, _direct(trained, tokens, k)
    yield "corpus", None, None, _corpus(data, tokens, k)


def _direct(trained: TracedModel, tokens: Int[Tensor, "n"], k: int) -> Top:
    """Return the ``k`` most likely next tokens under softmax(W_U W_E), with their probabilities."""
    table = direct_path(trained.weights, trained.model.b_U)
    values, found = top_rows(table, tokens, k)
    blocks = tokens.split(BLOCK)
    norm = torch.cat([(table.right[:, some].mT @ table.left.mT).logsumexp(-1) for some in blocks])
    return (values - norm[:, None]).exp(), found


def _corpus(data: EvalData, tokens: Int[Tensor, "n"], k: int) -> Top:
    """Return the ``k`` tokens that follow each of ``tokens`` most often in the training text, and their shares."""
    values: list[list[float]] = []  # Python numbers: small tensors would fragment memory (``causal.Measured``)
    found: list[list[int]] = []
    for token in tokens.tolist():
        row = data.bigram_counts[token : token + 1][0].double()
        order = row.argsort(descending=True, stable=True)[:k]
        values.append((row[order] / row.sum().clamp(min=1)).tolist())
        found.append(order.tolist())
    return torch.tensor(values, dtype=torch.float64), torch.tensor(found)
