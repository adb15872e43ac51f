"""Compute the data of the report's circuit explorer, for each token: the largest entries of its column in the OV
(output-value) and QK (query-key) circuits of every head, and its most likely successors by the direct path and in the
corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.bigram import direct_path
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit, top_rows
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TracedModel
from pathsum.records.explorers import TokenTableRow
from pathsum.records.tokens import JOINER

TOKENS = 2048  # largest number of tokens that are shown; of a larger vocabulary, the most frequent
TOP = 5
BLOCK = 256

Top = tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]


@torch.no_grad()
def tables(trained: TracedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``token_tables``: up to TOP (5) entries per token, for at most TOKENS (2,048) tokens."""
    tokens = shown_tokens(data)
    asked = JOINER.join(data.words[t] for t in tokens.tolist())
    rows = []
    for table, layer, head, (values, found) in _tops(trained, data, tokens):
        entries = JOINER.join(data.words[t] for t in found.flatten().tolist())
        stored = values.to(torch.float32).cpu().numpy().astype(np.dtype("<f4")).tobytes()
        rows.append(TokenTableRow(table, layer, head, asked, found.shape[1], entries, stored))
    return {"token_tables": rows}


def shown_tokens(data: EvalData) -> Int[Tensor, "n"]:
    """Return the ids of the TOKENS (2,048) most frequent tokens of the training text (or of all tokens of a smaller
    vocabulary), in increasing order."""
    order = data.unigram.argsort(descending=True, stable=True)
    return order[:TOKENS].sort().values


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
    """Return the ``k`` most likely next tokens by the direct path alone, with their probabilities under
    softmax(W_U W_E)."""
    table = direct_path(trained.weights)
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
