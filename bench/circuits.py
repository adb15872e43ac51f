"""Measure time and memory of a head's circuits at d_vocab 50,000: `python -m bench.circuits`

The head is random, in a 768-wide model with 12 heads of 64. Each measurement has its own process, so that its peak
memory is its own. "Theirs" computes the same answer the plain way in the same process: topk of every row block, timed
on some of the rows and scaled up; and eigenvalues of the d_model × d_model product instead of the d_head × d_head one,
timed on one head and scaled up. Both run in turn, ours first. Memory is that of our first run.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch

from bench.measuring import alone, peak_mb, record, seconds
from pathsum.circuits.eigenvalues import copying_eigenvalues
from pathsum.circuits.qk_ov import ov_circuit, qk_circuit, top_entries
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Head, Weights

D_MODEL, D_HEAD, N_HEADS, TOP = 768, 64, 12, 1000
SLICE = 1000  # rows of each table that the plain way is timed on
ROUNDS = 3


class Timed(NamedTuple):
    """Medians over rounds: our seconds, those of the plain way, and theirs / ours; and our peak memory."""

    ours: float
    theirs: float
    ratio: float
    peak_gib: float


def random_model(d_vocab: int, n_heads: int) -> tuple[Weights, torch.Tensor]:
    """Return a one-layer model, and token frequencies proportional to 1/rank."""
    g = torch.Generator().manual_seed(0)

    def matrix(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g) / math.sqrt(shape[-1])

    heads = tuple(Head(*(matrix(D_HEAD, D_MODEL) for _ in range(3)), matrix(D_MODEL, D_HEAD)) for _ in range(n_heads))
    return Weights(matrix(D_MODEL, d_vocab), matrix(d_vocab, D_MODEL), (heads,)), 1 / torch.arange(1.0, d_vocab + 1)


def top_entries_of_a_head(d_vocab: int) -> Timed:
    """Time the 1,000 largest entries of OV and of QK."""
    weights, unigram = random_model(d_vocab, 1)
    head = weights.layers[0][0]

    def tables() -> tuple[LowRank, LowRank]:
        return ov_circuit(weights, head.W_OV), qk_circuit(weights, head.W_QK, unigram)

    def ours() -> None:
        for table in tables():
            top_entries(table, TOP)

    def theirs() -> float:
        circuits = tables()

        def slices() -> None:
            for table in circuits:
                for rows in table.left[:SLICE].split(256):
                    (rows @ table.right).flatten().topk(TOP)

        return seconds(slices) * d_vocab / min(SLICE, d_vocab)

    return in_turn(ours, theirs)


def eigenvalues_of_all_heads(d_vocab: int) -> Timed:
    """Time the copying eigenvalues of 12 heads."""
    weights, _ = random_model(d_vocab, N_HEADS)
    W_OVs = [head.W_OV for head in weights.layers[0]]

    def theirs() -> float:
        products: list[torch.Tensor] = []
        shared = seconds(lambda: products.append(weights.W_E @ (weights.W_U - weights.W_U.mean(0))))
        return shared + len(W_OVs) * seconds(lambda: torch.linalg.eigvals(products[0] @ W_OVs[0].dense()))

    return in_turn(lambda: copying_eigenvalues(weights, W_OVs), theirs)


def in_turn(ours: Callable[[], object], theirs: Callable[[], float]) -> Timed:
    """Time ours, then the plain way, which returns its seconds, ``ROUNDS`` times."""
    mine, peaks, plain = [], [], []
    for _ in range(ROUNDS):
        mine.append(seconds(ours))
        peaks.append(peak_mb() / 2**10)  # so far
        plain.append(theirs())
    ratio = statistics.median(b / a for a, b in zip(mine, plain, strict=True))
    return Timed(statistics.median(mine), statistics.median(plain), ratio, peaks[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d-vocab", type=int, default=50_000, help="only the default is written to results.json")
    d_vocab = parser.parse_args().d_vocab
    print(f"{f'd_vocab {d_vocab}':32} {'ours (s)':>9} {'plain (s)':>10} {'ratio':>7} {'peak (GiB)':>11}")
    for name, work in (("top_entries", top_entries_of_a_head), ("eigenvalues", eigenvalues_of_all_heads)):
        ours, theirs, ratio, peak = alone("pathsum.circuits.eigenvalues", work, d_vocab)
        print(f"{name:32} {ours:9.1f} {theirs:10.1f} {ratio:7.1f} {peak:11.2f}")
        time = {"ours": round(ours, 2), "theirs": round(theirs, 1), "ratio": round(ratio, 1), "unit": "s"}
        memory = {"ours": round(peak, 2), "theirs": None, "ratio": None, "unit": "GiB, peak"}
        if d_vocab == 50_000:
            record({f"extract.{name}_50k": time, f"extract.{name}_50k_memory": memory})


if __name__ == "__main__":
    main()
