"""Smoothed bigram models, the baseline of every attention-only model (docs/framework.md §3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int64
from scipy import sparse

Counts: TypeAlias = Any  # [source, out]: an int64 array, or a scipy.sparse.csr_array where the vocabulary is large

DIRICHLET, DISCOUNT, KNESER_NEY = "Dirichlet", "absolute discounting", "Kneser–Ney"


@dataclass(frozen=True)
class Smoothing:
    """A method of turning bigram counts into probabilities, and its constant."""

    kind: str  # DIRICHLET, DISCOUNT or KNESER_NEY
    constant: float

    def __str__(self) -> str:
        return f"{self.kind}, {'k' if self.kind == DIRICHLET else 'd'} = {self.constant:g}"


CANDIDATES = (
    *(Smoothing(DIRICHLET, 2.0**n) for n in range(-1, 11)),  # k, in tokens
    *(
        Smoothing(kind, d)
        for kind in (DISCOUNT, KNESER_NEY)
        for d in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)  # d, in counts
    ),
)


@dataclass(frozen=True)
class BigramTable:
    """Bigram counts, and the sums that the smoothing methods need (docs/framework.md §3.1)."""

    counts: Counts
    row_totals: Int64[np.ndarray, "source"]  # c(a ·), count of each source
    followers: Int64[np.ndarray, "source"]  # N₁₊(a ·), number of distinct successors
    unigram: Float[np.ndarray, "out"]  # u, the add-one smoothed distribution of tokens
    continuation: Float[np.ndarray, "out"]  # q, the same for the number of distinct tokens before each token

    @classmethod
    def of(cls, bigram_counts: Counts, unigram_counts: Int64[np.ndarray, "out"]) -> BigramTable:
        seen = bigram_counts > 0
        return cls(
            counts=bigram_counts,
            row_totals=_flat(bigram_counts.sum(axis=1)),
            followers=_flat(seen.sum(axis=1)),
            unigram=add_one(unigram_counts),
            continuation=add_one(_flat(seen.sum(axis=0))),
        )

    def probabilities(
        self, sources: Int64[np.ndarray, "*#pair"], outs: Int64[np.ndarray, "*#pair"], smoothing: Smoothing
    ) -> Float[np.ndarray, "*#pair"]:
        """Return P(out | source) for vectors of token ids of equal length, or for a column and a row. All are positive
        and, for each source, sum to 1 over all outs."""
        pair = _flat(self.counts[sources, outs]) if sources.shape == outs.shape else self._block(sources, outs)
        total, k = self.row_totals[sources].astype(np.float64), smoothing.constant
        if smoothing.kind == DIRICHLET:
            return np.asarray((pair + k * self.unigram[outs]) / (total + k))
        lower = (self.continuation if smoothing.kind == KNESER_NEY else self.unigram)[outs]
        left_over = np.where(total > 0, k * self.followers[sources] / np.maximum(total, 1), 1.0)
        return np.asarray(np.maximum(pair - k, 0) / np.maximum(total, 1) + left_over * lower)

    def _block(self, sources: np.ndarray, outs: np.ndarray) -> np.ndarray:
        rows = self.counts[sources.ravel()][:, outs.ravel()]
        return rows.toarray() if sparse.issparse(rows) else rows


def best_smoothing(table: BigramTable, tuning: sparse.csr_array) -> Smoothing:
    """Return the one of CANDIDATES with the lowest loss on ``tuning``, the bigram counts of tuning documents."""
    pairs = tuning.tocoo()
    sources, outs, weight = pairs.coords[0].astype(np.int64), pairs.coords[1].astype(np.int64), pairs.data

    def loss(smoothing: Smoothing) -> float:
        return float(-(weight * np.log(table.probabilities(sources, outs, smoothing))).sum() / weight.sum())

    return min(CANDIDATES, key=loss)


def add_one(counts: Int64[np.ndarray, "out"]) -> Float[np.ndarray, "out"]:
    """Return the add-one smoothed distribution (c + 1) / (N + V) of V tokens with counts c and sum N."""
    return np.asarray((counts + 1.0) / (counts.sum() + len(counts)))


def _flat(values: np.ndarray) -> np.ndarray:
    return np.asarray(values).ravel()
