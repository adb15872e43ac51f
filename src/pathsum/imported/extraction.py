"""Extract the tables of a model that was trained elsewhere, as far as weights, attention patterns and a text allow."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.behavior import induction
from pathsum.behavior.labels import uniform_attention
from pathsum.circuits import bigram
from pathsum.circuits.paths import exactness, path_sum
from pathsum.config import ExtractConfig
from pathsum.core.weights import Weights
from pathsum.extraction import atlas, framework
from pathsum.extraction.inputs import EvalData, trace_model
from pathsum.imported.extra_paths import extra_logits
from pathsum.model.opened import converted, only
from pathsum.model.transformer import Transformer
from pathsum.records.heads import HeadRow
from pathsum.records.imported import ImportedSummary
from pathsum.text.statistics import BigramRows, pair_counts
from pathsum.text.windows import HeldOut, Windows, balanced, documents_of

MOST_PATHS = 10_000  # that the exactness check adds up; 4 layers of 8 heads have 6,561
MOST_NUMBERS = 200_000_000  # numbers in the largest trace; this limits the number of windows
LOSS_CHUNKS = 20  # largest number of traces of that size that are made for the loss
FEWEST = 20  # documents, or pieces of documents: half of them choose skip-trigrams, and half judge them
CHECKED_TOKENS = 64  # tokens per window in the exactness check, whose cost grows as paths · tokens²


def extract_tables(
    model: Transformer,
    name: str,
    tokens: Int64[np.ndarray, "token"],
    words: Sequence[str],
    config: ExtractConfig,
    context: int,
    ids: Sequence[int] | None = None,
) -> tuple[ImportedSummary, dict[str, list[Any]]]:
    """Return the summary of the model ``name``, and the tables of ``extraction.framework`` and ``extraction.atlas``,
    computed on ``tokens`` (0 is BOS, beginning of sequence) in float32.

    ``words`` are the printed tokens by id of the model. ``ids`` are those that the tokenizer has (default: all): the
    others count only in the losses of the summary (docs/framework.md §2.9). Windows have ``context`` tokens, or as many
    as the model allows; they are fewer than in ``config`` where traces would be too large. ValueError if windows have
    fewer than 8 tokens, if ``tokens`` fit into one window, or if logits are not finite.
    """
    n_ctx = min(context, model.n_ctx)
    if n_ctx < 8:
        raise ValueError(f"--context: expected at least 8 tokens per window, got {n_ctx}")
    if len(tokens) <= n_ctx:
        raise ValueError(f"TEXT: expected more than {n_ctx} tokens, those of one window, got {len(tokens)}")
    most = max(4, MOST_NUMBERS // _numbers(model.weights(), n_ctx))  # windows; intervals need four
    fewer = {"windows": min(config.windows, most), "repeated_windows": min(config.repeated_windows, most)}
    config = config.model_copy(update=fewer)
    whole, kept = converted(model, torch.float32), torch.arange(len(words)) if ids is None else torch.tensor(ids)
    model = only(model, kept)
    data = eval_data(np.searchsorted(kept.numpy(), tokens), [words[i] for i in kept.tolist()], config, n_ctx)
    trained = trace_model(converted(model, torch.float32), n_ctx, data, config)
    repeated = trained.repeated.logits
    if len(kept) < len(words):  # the softmax of the losses is over all ids
        repeated = whole.trace(kept[trained.repeated_tokens]).logits
    if not (trained.natural.logits.isfinite().all() and repeated.isfinite().all()):
        raise ValueError("WEIGHTS: expected finite logits in float32, got NaN or infinity; scale the weights")
    tables = framework.tables(trained, data, config) | atlas.tables(trained, data, config)
    heads: list[HeadRow] = tables["heads"]
    matching = max(heads, key=lambda h: h.prefix_matching, default=None)
    previous = max((h for h in heads if h.layer == 0), key=lambda h: h.previous_token, default=None)
    repeats = induction.repeat_losses(repeated, kept[trained.repeated_tokens], trained.block)
    fit = bigram.compare_with_corpus(bigram.direct_path(trained.weights), data.bigram_counts, framework.SMOOTHING)
    chance = induction.prefix_matching(uniform_attention(1 + 2 * trained.block), trained.block)
    loss, loss_windows = text_loss(whole, Windows(tokens, n_ctx))
    found, pieces = len(documents_of(tokens, n_ctx).unique()), len(pieces_of(tokens, n_ctx, config).unique())
    summary = ImportedSummary(
        name=name, n_layers=len(trained.weights.layers), n_heads=max(map(len, trained.weights.layers), default=0),
        d_model=len(trained.weights.W_E), d_vocab=len(words), tokenizer_ids=len(kept), context=n_ctx, documents=found,
        pieces=pieces if pieces > found else 0, windows=loss_windows, loss_nats=loss, traced_windows=len(data.windows),
        repeat_first_loss_nats=repeats.first_nats, repeat_second_loss_nats=repeats.second_nats,
        prefix_matching_chance=chance.item(), copying_heads=sum(h.copies for h in heads),
        bigram_correlation=fit.correlation, direct_path_kl_nats=fit.kl_nats,
        exactness=exactness_check(model, data.windows[: config.exactness_windows, : min(n_ctx, CHECKED_TOKENS)]),
        prefix_matching=matching.prefix_matching if matching else None,
        prefix_matching_head=f"{matching.layer}.{matching.head}" if matching else None,
        previous_token=previous.previous_token if previous else None,
        previous_token_head=f"{previous.layer}.{previous.head}" if previous else None,
    )  # fmt: skip
    return summary, tables


def eval_data(tokens: Int64[np.ndarray, "token"], words: Sequence[str], config: ExtractConfig, n_ctx: int) -> EvalData:
    """Return the token counts of a text, and the windows on which the model is run."""
    windows = Windows(tokens, n_ctx)
    counts = pair_counts(windows, len(words))
    documents = pieces_of(tokens, n_ctx, config)
    kept = balanced(documents, config.windows_per_document)[: config.held_out_windows]
    held_out = HeldOut(windows.only(kept.numpy()), documents[kept])
    every, second = held_out.batch(), slice(1, None, 2) if len(held_out.windows) > 1 else slice(None)
    return EvalData(
        held_out=every[second], documents=held_out.documents[second], windows=every[second][: config.windows],
        tuning=every[::2][: config.windows], words=words, tokenizer_hash="",
        unigram=torch.from_numpy(np.asarray(counts.sum(axis=0)).ravel()).float(), bigram_counts=BigramRows(counts),
    )  # fmt: skip


def pieces_of(tokens: Int64[np.ndarray, "token"], n_ctx: int, config: ExtractConfig) -> Int64[Tensor, "window"]:
    """Return the document of each window or, if documents are few, the piece of a document."""
    documents = documents_of(tokens, n_ctx)
    starts, sizes = documents.unique(return_counts=True)
    kept, wanted = int(sizes.clamp(max=config.windows_per_document).sum()), min(len(documents), config.held_out_windows)
    if len(starts) >= FEWEST and 4 * kept >= wanted:
        return documents
    most = max(1, min(config.windows_per_document, len(documents) // FEWEST))
    rank = torch.arange(len(documents)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)  # within its document
    return (documents * len(documents) + rank // most).unique(return_inverse=True)[1]


@torch.no_grad()
def text_loss(model: Transformer, windows: Windows) -> tuple[float, int]:
    """Return the mean loss on ``windows``, in nats per token, and their number."""
    at_once = max(1, MOST_NUMBERS // _numbers(model.weights(), windows.n_ctx))
    chosen, total = windows.spread(LOSS_CHUNKS * at_once), 0.0
    for some in chosen.split(at_once):
        batch = windows.batch(some)
        logits = model.trace(batch[:, :-1]).logits
        total += cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()).item() * len(some)
    return total / len(chosen), len(chosen)


@torch.no_grad()
def exactness_check(model: Transformer, tokens: Int[Tensor, "batch pos"]) -> float | None:
    """Return the largest relative error of b_U plus all paths as logits (docs/framework.md §2.9)."""
    if math.prod(1 + len(heads) for heads in model.weights().layers) > MOST_PATHS:
        return None
    exact = converted(model, torch.float64)
    whole, trace = exact.weights(), exact.trace(tokens)
    kept, renumbered = tokens.unique(return_inverse=True)
    weights = Weights(whole.W_E[:, kept], whole.W_U[kept], whole.layers)
    total = path_sum(weights, renumbered, trace.patterns, trace.scales)
    return exactness(total + extra_logits(exact, weights, kept, tokens, trace), trace.logits[..., kept])


def _numbers(weights: Weights, n_ctx: int) -> int:
    """Return the number of numbers in the trace of one window."""
    d_model, d_vocab = weights.W_E.shape
    return n_ctx * (d_vocab + sum(len(heads) * (n_ctx + d_model) for heads in weights.layers))
