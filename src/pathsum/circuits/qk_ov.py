"""Compute the QK (query-key) and OV (output-value) circuits over tokens, without directions that the softmax ignores.

The functions take a matrix instead of a head, and so serve virtual heads and K-composition as well
(``late.W_QK.after(early.W_OV)``). If the model has a norm, each column of ``W_E`` must first be multiplied by the scale
that the norm gives to this column alone (docs/framework.md §1.4).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.precision import checked, finite
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Weights


def ov_circuit(weights: Weights, W_OV: LowRank) -> LowRank:
    """Return the OV circuit W_U W_OV W_E: the logit that each output gains if the head attends to each source with
    weight 1.

    In nats above the mean over outputs, before the scale of the final norm. With norms, multiply each column of W_E by
    its scale first (docs/framework.md §1.4). Output × source, as low-rank factors. At least in float32. ValueError for
    weights with NaN or infinity. See docs/framework.md §3.3."""
    W_U = finite(weights.W_U)
    return checked(W_OV).after(finite(weights.W_E)).then(W_U - W_U.mean(0))


def qk_circuit(weights: Weights, W_QK: LowRank, unigram: Float[Tensor, "vocab"]) -> LowRank:
    """Return the QK circuit W_Eᵀ W_QK W_E: the attention score of each query token for each key token.

    In nats above the query's mean over keys, weighted by ``unigram`` (shares or counts). Query × key, as low-rank
    factors, at least in float32. ValueError if ``unigram`` has a negative entry or sums to 0, or for weights with NaN
    or infinity. See docs/framework.md §3.4."""
    W_E = finite(weights.W_E)
    circuit = checked(W_QK).after(W_E).then(W_E.mT)
    mean_key = circuit.right @ shares(unigram).to(circuit.right)
    return LowRank(circuit.left, circuit.right - mean_key.unsqueeze(-1))


@torch.no_grad()
def top_rows(
    table: LowRank, columns: Int[Tensor, "n"], k: int, block: int = 256
) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
    """Return the ``k`` largest entries of each of ``columns``, and the rows that they are in. Largest first, ties in
    row order.

    In an OV circuit, these are the outputs that each source raises most. ``block`` columns are computed at a time.
    Costs rows · n · rank operations, and rows × block numbers of memory. ValueError unless ``k`` is from 1 to the
    number of rows, or for NaN or infinity."""
    if not 1 <= k <= table.shape[0]:
        raise ValueError(f"expected 1 ≤ k ≤ {table.shape[0]} rows, got k = {k}")
    table = checked(table)
    buffer = table.left.new_empty(min(block, len(columns)), table.shape[0])
    tops = []
    for some in columns.split(block):
        by_column = torch.mm(table.right[:, some].mT, table.left.mT, out=buffer[: len(some)])
        tops.append(by_column.max(-1, keepdim=True) if k == 1 else _largest(by_column, k))
    return torch.cat([values for values, _ in tops]), torch.cat([rows for _, rows in tops])


def _largest(table: Float[Tensor, "n columns"], k: int) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
    """Return the ``k`` largest entries of each row and their columns, largest first, ties in column order (``topk``
    does not define the order of ties)."""
    values, found = table.topk(min(k + 1, table.shape[-1]))
    tied = (values[:, k:] == values[:, k - 1 : k]).any(-1)  # rows in which topk chose between equal entries
    places = found[:, :k]
    places[tied] = table[tied].sort(dim=-1, descending=True, stable=True).indices[:, :k]
    places = places.sort().values
    values, order = table.gather(-1, places).sort(dim=-1, descending=True, stable=True)
    return values, places.gather(-1, order)


def shares(unigram: Float[Tensor, "vocab"]) -> Float[Tensor, "vocab"]:
    """Normalize token counts to sum to 1. ValueError if a count is negative or all are zero."""
    if (unigram < 0).any() or not unigram.sum() > 0:
        raise ValueError(
            f"expected token frequencies ≥ 0 with a positive sum, got a smallest one of {unigram.min().item():.3g} "
            f"and a sum of {unigram.sum().item():.3g}; give counts or shares"
        )
    return unigram / unigram.sum()
