"""Measure time and memory of the circuits of heads at d_vocab 50,000: `python -m bench.circuits`

The weights are random: d_model = 768, 12 heads, d_head = 64. Each measurement runs in a separate process, so that its
peak memory is measured alone. "Theirs" is the direct method. For the largest entries, it is topk on every block of
rows, timed on some rows and scaled up. For eigenvalues, it uses the d_model × d_model product instead of the d_head ×
d_head product, timed on one head and scaled up. Both methods run in turn in one process, ours first. Memory is the peak
of the process up to the end of our first run.
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
SLICE = 1000  # rows of each circuit on which the direct method is timed
ROUNDS = 3


class Timed(NamedTuple):
    """Times of both methods and their ratio, each the median over rounds, and peak memory."""

    ours: float  # seconds
    theirs: float  # seconds of the direct method
    ratio: float  # theirs / ours
    peak_gib: float  # of the process, up to the end of our first run


def random_model(d_vocab: int, n_heads: int) -> tuple[Weights, torch.Tensor]:
    """Return random weights of a one-layer model, and token frequencies proportional to 1/rank."""
    g = torch.Generator().manual_seed(0)

    def matrix(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g) / math.sqrt(shape[-1])

    heads = tuple(Head(*(matrix(D_HEAD, D_MODEL) for _ in range(3)), matrix(D_MODEL, D_HEAD)) for _ in range(n_heads))
    return Weights(matrix(D_MODEL, d_vocab), matrix(d_vocab, D_MODEL), (heads,)), 1 / torch.arange(1.0, d_vocab + 1)


def top_entries_of_a_head(d_vocab: int) -> Timed:
    """Time the search for the 1,000 largest entries of a head's OV circuit and the 1,000 largest of its QK circuit."""
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
    """Time the OV eigenvalues of 12 heads."""
    weights, _ = random_model(d_vocab, N_HEADS)
    W_OVs = [head.W_OV for head in weights.layers[0]]

    def theirs() -> float:
        products: list[torch.Tensor] = []
        shared = seconds(lambda: products.append(weights.W_E @ (weights.W_U - weights.W_U.mean(0))))
        return shared + len(W_OVs) * seconds(lambda: torch.linalg.eigvals(products[0] @ W_OVs[0].dense()))

    return in_turn(lambda: copying_eigenvalues(weights, W_OVs), theirs)


def in_turn(ours: Callable[[], object], theirs: Callable[[], float]) -> Timed:
    """Time ``ours`` and then ``theirs`` in each of ``ROUNDS`` rounds. ``theirs`` returns its own time in seconds."""
    mine, peaks, plain = [], [], []
    for _ in range(ROUNDS):
        mine.append(seconds(ours))
        peaks.append(peak_mb() / 2**10)  # peak up to now, in GiB
        plain.append(theirs())
    ratio = statistics.median(b / a for a, b in zip(mine, plain, strict=True))
    return Timed(statistics.median(mine), statistics.median(plain), ratio, peaks[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d-vocab", type=int, default=50_000, help="only the default is written to results.json")
    d_vocab = parser.parse_args().d_vocab
    print(f"{f'd_vocab {d_vocab}':32} {'ours (s)':>9} {'theirs (s)':>10} {'ratio':>7} {'peak (GiB)':>11}")
    found: dict[str, dict[str, object]] = {}
    for name, work in (("top_entries", top_entries_of_a_head), ("eigenvalues", eigenvalues_of_all_heads)):
        ours, theirs, ratio, peak = alone("pathsum.circuits.eigenvalues", work, d_vocab)
        print(f"{name:32} {ours:9.1f} {theirs:10.1f} {ratio:7.1f} {peak:11.2f}")
        time = {"ours": round(ours, 2), "theirs": round(theirs, 1), "ratio": round(ratio, 1), "unit": "s"}
        memory = {"ours": round(peak, 2), "theirs": None, "ratio": None, "unit": "GiB, peak"}
        found |= {f"extract.{name}_50k": time, f"extract.{name}_50k_memory": memory}
    if d_vocab == 50_000:
        record("extract.", found)


if __name__ == "__main__":
    main()
