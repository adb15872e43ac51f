"""Ablate sets of edges together, and measure the loss on repeated random tokens (docs/framework.md §5.9)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from pathsum.circuits.paths import path_name
from pathsum.interventions.run import Place, Run

SHIFTS = {"Q": 1, "K": 2, "V": 1}  # windows back for resampling; queries and keys from one window would match


class Edge(NamedTuple):
    """An edge from an early head to the queries, keys or values of a late head."""

    kind: str  # Q, K or V
    early: Place
    late: Place

    def __str__(self) -> str:
        return f"{path_name((self.early,))} → {path_name((self.late,))} ({self.kind})"


def cut(
    clean: Run, edges: Iterable[Edge], method: str, rotation: Float[Tensor, "d_model d_model"] | None = None
) -> Run:
    """Ablate all ``edges`` together."""
    by_late: dict[Place, dict[tuple[str, Place], Tensor]] = {}
    for kind, early, late in edges:
        write = clean.output(early)
        change = _instead(clean, kind, early, method) - write
        new = write + (change if rotation is None else change @ rotation)
        by_late.setdefault(late, {})[kind, early] = new
    run = clean
    for late, writes in by_late.items():
        run = run.patch_edges(late, writes)
    return run


def _instead(clean: Run, kind: str, early: Place, method: str) -> Float[Tensor, "batch pos d_model"]:
    write = clean.output(early)
    match method:
        case "zero":
            return write.new_zeros(()).expand_as(write)
        case "mean":
            return clean.mean_output(early)
    assert method == "resample", method
    return write.roll(SHIFTS[kind], 0)


def second_copy(run: Run, block: int) -> Float[Tensor, "batch"]:
    """Return the mean loss on the second copy of each window, in nats per token (float64)."""
    return run.losses(at=slice(block + 1, 2 * block)).double().mean(1)
