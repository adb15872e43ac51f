"""Windows of tokens, held-out samples of windows, and the order of windows in training."""

from __future__ import annotations

import hashlib
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor

from pathsum.text.bos import BOS


class Windows:
    """Consecutive windows of a token stream, each with BOS at position 0 (docs/framework.md §1.2).

    The targets of window i are the ``n_ctx`` tokens from index i · n_ctx of the stream, and its input is BOS and all
    targets except the last. So every token is a target once, except those of an incomplete last window. Raises
    ValueError if there are fewer than n_ctx + 1 tokens.
    """

    def __init__(self, tokens: Integer[np.ndarray, "token"], n_ctx: int) -> None:
        if n_ctx + 1 > len(tokens):
            raise ValueError(f"expected n_ctx + 1 = {n_ctx + 1} tokens, got {len(tokens)}; lower it, or give more text")
        self.n_ctx = n_ctx
        self._rows = tokens[: len(tokens) // n_ctx * n_ctx].reshape(-1, n_ctx)

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self, indices: Int64[Tensor, "batch"]) -> Int64[Tensor, "batch pos"]:
        """Return BOS and the ``n_ctx`` tokens of each window."""
        rows = np.full((len(indices), self.n_ctx + 1), BOS, dtype=np.int64)
        rows[:, 1:] = self._rows[indices.numpy()]
        return torch.from_numpy(rows)

    def only(self, indices: Int64[np.ndarray, "window"]) -> Windows:
        """Return a copy that contains the windows ``indices``, in this order. It holds their tokens in memory."""
        some = copy(self)
        some._rows = self._rows[indices]
        return some

    def present(self, d_vocab: int) -> Float[Tensor, "vocab"]:
        """Return 1 for each token id that occurs in the windows, and 0 for BOS and all other ids."""
        counts = np.zeros(d_vocab, dtype=np.int64)
        for start in range(0, len(self._rows), 4096):
            counts += np.bincount(self._rows[start : start + 4096].ravel(), minlength=d_vocab)
        counts[BOS] = 0
        return torch.from_numpy(counts > 0).float()

    def spread(self, count: int) -> Int64[Tensor, "batch"]:
        """Return the indices of ``count`` evenly spaced windows, or of all windows if there are fewer."""
        total = len(self)
        return torch.arange(min(count, total)) * total // min(count, total)


@dataclass(frozen=True)
class HeldOut:
    """Windows of held-out text, at most a given number from each document."""

    windows: Windows  # first one window of each document, then a second one of each, and so on
    documents: Int64[Tensor, "window"]  # for each window, the index of its document in the text, from 0

    @staticmethod
    def of(tokens: Integer[np.ndarray, "token"], n_ctx: int, per_document: int, most: int) -> HeldOut:
        """Select at most ``per_document`` windows of each document of ``tokens``, and at most ``most`` in all."""
        documents = documents_of(tokens, n_ctx)
        kept = balanced(documents, per_document)[:most]
        return HeldOut(Windows(tokens, n_ctx).only(kept.numpy()), documents[kept])

    def batch(self, most: int | None = None) -> Int64[Tensor, "batch pos"]:
        """Return the tokens of the first ``most`` windows, or of all windows, in the form of ``Windows.batch``."""
        return self.windows.batch(torch.arange(len(self.windows))[:most])


def documents_of(tokens: Integer[np.ndarray, "token"], n_ctx: int) -> Int64[Tensor, "window"]:
    """Return the document of each window, as an index from 0."""
    rows = (np.cumsum(tokens == BOS) - 1)[: len(tokens) // n_ctx * n_ctx].reshape(-1, n_ctx)
    return torch.tensor([int(row[0] + np.bincount(row - row[0]).argmax()) for row in rows])


def balanced(documents: Int64[Tensor, "window"], per_document: int) -> Int64[Tensor, "some"]:
    """Return the indices of at most ``per_document`` randomly chosen windows of each document."""
    drawn = torch.randperm(len(documents), generator=_generator(0, "held out"))
    sizes = documents.unique(return_counts=True)[1]
    before = torch.arange(len(drawn)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)  # rank within its document
    rounds = torch.empty_like(before).scatter_(0, documents[drawn].argsort(stable=True), before)
    first = rounds.argsort(stable=True)
    return drawn[first][rounds[first] < per_document]


def order(seed: int, step: int, batch: int, count: int) -> Int64[Tensor, "batch"]:
    """Return the indices of the ``batch`` windows of training step ``step`` (from 0), out of ``count`` windows."""
    parts, at, end = [], step * batch, (step + 1) * batch
    while at < end:
        epoch, offset = divmod(at, count)
        parts.append(_permutation(seed, epoch, count)[offset : offset + end - at])
        at += len(parts[-1])
    return torch.cat(parts)


def shuffled(windows: Int64[Tensor, "batch pos"], seed: int, step: int) -> Int64[Tensor, "batch pos"]:
    """Return ``windows`` with the tokens after BOS in random order within each window."""
    generator = _generator(seed, f"shuffle {step}")
    places = torch.rand(len(windows), windows.shape[1] - 1, generator=generator).argsort(-1)
    return torch.cat([windows[:, :1], windows[:, 1:].gather(1, places)], 1)


@lru_cache(maxsize=2)
def _permutation(seed: int, epoch: int, count: int) -> Int64[Tensor, "batch"]:
    return torch.randperm(count, generator=_generator(seed, epoch))


def _generator(seed: int, what: int | str) -> torch.Generator:
    mixed = hashlib.sha256(f"{seed} {what}".encode()).digest()[:7]
    return torch.Generator().manual_seed(int.from_bytes(mixed, "big"))
