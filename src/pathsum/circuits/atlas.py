"""Rank the skip-trigrams (source … destination → out) of a head by their effect on real text (docs/framework.md §3.8).

A skip-trigram occurs at a position that holds the destination if the next token is out and the source stands earlier in
the same document; several such positions of the source count as one occurrence. BOS is never a source, nor is the token
at the destination's own position. The OV (output-value) circuit of a head is W_U W_OV W_E.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits.precision import finite
from pathsum.core.lowrank import LowRank

Triple = tuple[int, int, int]  # source, destination, out, as token ids


@dataclass(frozen=True)
class Occurrences:
    """All occurrences of all skip-trigrams in some windows, sorted by (source, destination, out)."""

    windows: Int[Tensor, "batch window"]
    first: Int[Tensor, "batch pos"]  # position of the same token's first occurrence in the document; 0 for BOS
    window: Int[Tensor, "n"]  # index of the window
    query: Int[Tensor, "n"]  # position of the destination
    key: Int[Tensor, "n"]  # first position of the source in the document
    source: Int[Tensor, "n"]  # token id, as are ``destination`` and ``out``
    destination: Int[Tensor, "n"]
    out: Int[Tensor, "n"]
    which: Int[Tensor, "n"]  # index of the occurrence's triple in the sorted list of distinct triples
    starts: Int[Tensor, "k"]  # index of the first occurrence of each distinct triple

    def slice(self, source: int, destination: int, out: int | None = None) -> slice:
        """Return the slice of the occurrences of a triple, or of all triples with this source and destination if
        ``out`` is None. An empty slice if there are none."""
        low, high = 0, len(self.source)
        for column, value in ((self.source, source), (self.destination, destination), (self.out, out)):
            if value is not None:
                part = column[low:high]
                low, high = (low + int(torch.searchsorted(part, value, right=right)) for right in (False, True))
        return slice(low, high)


@dataclass(frozen=True)
class SkipTrigram:
    """A skip-trigram and its summed effect on the text."""

    triple: Triple
    places: int  # number of occurrences
    total: float  # nats that the source adds to the logit of out, summed over all occurrences


@dataclass(frozen=True)
class SpuriousCost:
    """The rise of the loss that a skip-trigram bug causes: a skip-trigram that a head raises only as a side effect of
    raising others (docs/framework.md §3.10)."""

    places: int  # number of positions with source … destination that are not followed by out
    loss_nats: float  # mean rise of the loss at these positions
    balance_nats: float  # mean rise of the loss at all positions with source … destination; negative if it falls


def occurrences(windows: Int[Tensor, "batch window"]) -> Occurrences:
    """List all occurrences of all skip-trigrams in ``windows`` (docs/framework.md §3.8).

    Each window must begin with BOS; every other BOS begins a new document. Needs memory for batch · pos² numbers, and
    sorts half as many."""
    tokens, nexts = windows[:, :-1], windows[:, 1:]
    places = torch.arange(tokens.shape[1], device=windows.device)
    begins = tokens == tokens[:, :1]
    document = begins.cumsum(1)
    together = (document[:, :, None] == document[:, None, :]) & ~begins[:, None, :]
    same = together & (tokens[:, :, None] == tokens[:, None, :])
    first = same.to(torch.uint8).argmax(-1)
    new = (first == places) & ~begins
    window, query, key = (together & new[:, None, :] & (places < places[:, None])).nonzero(as_tuple=True)
    source, destination, out = tokens[window, key], tokens[window, query], nexts[window, query]
    size = int(windows.max()) + 1
    triples, order = ((source * size + destination) * size + out).sort(stable=True)
    window, query, key = window[order], query[order], key[order]
    source, destination, out = source[order], destination[order], out[order]
    _, which, counts = torch.unique_consecutive(triples, return_inverse=True, return_counts=True)
    starts = counts.cumsum(0) - counts
    return Occurrences(windows, first, window, query, key, source, destination, out, which, starts)


def source_weight(
    pattern: Float[Tensor, "batch query key"],
    read: Float[Tensor, "batch pos"],
    final: Float[Tensor, "batch pos"],
    at: Occurrences,
) -> Float[Tensor, "n"]:
    """Return, for each occurrence, the weight with which a head moves the source to the destination.

    The weight is s_final[q] Σ_k A[q, k] s_read[k] over the positions k < q of the document that hold the source, with
    the frozen norm scales s_read = ``read`` of the head's layer and s_final = ``final`` of the final norm. Multiplied
    by the source's column of ``ov_circuit``, the weight gives the source's contribution to the logits through this head
    alone, without later heads. This is exact in the first layer. In later layers it leaves out what earlier heads wrote
    at the source. See docs/framework.md §3.8."""
    mixing = (final[:, :, None] * pattern * read[:, None, :]).tril(-1)
    merged = torch.zeros_like(mixing).scatter_add_(-1, at.first[:, None, :].expand_as(mixing), mixing)
    return merged[at.window, at.query, at.key]


def effects(circuit: LowRank, weight: Float[Tensor, "n"], at: Occurrences) -> Float[Tensor, "n"]:
    """Return, for each occurrence, what the source adds to the logit of the next token:
    ``weight`` · (W_U W_OV W_E)[out, source].

    In nats, relative to the mean over all output tokens (docs/framework.md §3.8). ``circuit`` comes from ``ov_circuit``
    and ``weight`` from ``source_weight``."""
    out, source = circuit.left[at.windows[:, 1:]], circuit.right.mT[at.windows[:, :-1]]
    return weight * (out @ source.mT)[at.window, at.query, at.key]


def strongest(effect: Float[Tensor, "n"], at: Occurrences, k: int) -> list[SkipTrigram]:
    """Return the ``k`` triples with the largest sum of ``effect`` over their occurrences, largest first.

    Triples whose sum is not positive are left out, so the list can be shorter or empty. ValueError if ``k`` < 1, or
    for NaN or infinity."""
    if k < 1:
        raise ValueError(f"expected k ≥ 1 skip-trigrams, got {k}; ask for at least one")
    finite(effect, "effects")
    total = effect.new_zeros(len(at.starts), dtype=torch.float64).index_add_(0, at.which, effect.double())
    places = torch.diff(at.starts, append=at.starts.new_tensor([len(effect)]))
    best = total.topk(min(k, len(total)))
    return [
        SkipTrigram((int(at.source[i]), int(at.destination[i]), int(at.out[i])), int(places[n]), value)
        for value, n, i in zip(best.values.tolist(), best.indices, at.starts[best.indices], strict=True)
        if value > 0
    ]


def loss_reduction(
    circuit: LowRank, logits: Float[Tensor, "batch pos vocab"], weight: Float[Tensor, "n"], at: Occurrences, t: Triple
) -> float:
    """Return the loss reduction by a skip-trigram, averaged over its occurrences (docs/framework.md §3.8).

    It is log P(out) minus the log P(out) that remains when the source's contribution, ``weight`` · (W_U W_OV W_E)[:,
    source], is subtracted from the ``logits``. Norm scales and all other contributions stay fixed. In nats, positive if
    the head lowers the loss; NaN without occurrences."""
    source, _, out = t
    here = at.slice(*t)
    z = logits[at.window[here], at.query[here]]
    moved = weight[here, None] * (circuit.left @ circuit.right[:, source])
    return (z.log_softmax(-1) - (z - moved).log_softmax(-1))[:, out].mean().item()


def spurious_triples(triples: Sequence[Triple]) -> list[Triple]:
    """Return the triples that a head raises as a side effect of raising ``triples`` (docs/framework.md §3.10).

    They combine the destination of one triple with the output of another that has the same source, and are not in
    ``triples`` themselves. For example, a head that raises "keep … in → mind" and "keep … at → bay" also raises
    "keep … at → mind", because its attention depends on (source, destination) and its output on (source, out). A
    Mathematical Framework for Transformer Circuits calls these skip-trigram bugs."""
    listed = set(triples)
    pairs = {(s, d): None for s, d, _ in triples}
    outs = {(s, o): None for s, _, o in triples}
    return [(s, d, o) for s, d in pairs for s_, o in outs if s == s_ and (s, d, o) not in listed]


def spurious_cost(
    circuit: LowRank,
    log_probs: Float[Tensor, "batch pos vocab"],
    weight: Float[Tensor, "n"],
    at: Occurrences,
    t: Triple,
) -> SpuriousCost:
    """Return how much a skip-trigram raises the loss at positions that hold the destination after the source.

    The mean rise is given for the positions that are not followed by out, and for all positions. The rise is the loss
    minus the loss after δ = ``weight`` · (W_U W_OV W_E)[out, source] is subtracted from the logit of out alone
    (docs/framework.md §3.10). ``log_probs`` are those of the model. In nats; a mean over no positions is 0."""
    source, destination, out = t
    here = at.slice(source, destination)
    follows = at.out[here] == out
    added = weight[here] * (circuit.left[out] @ circuit.right[:, source])
    p = log_probs[at.window[here], at.query[here], out].exp()
    rise = -torch.log1p(p * torch.expm1(-added)) - added * follows
    places = int((~follows).sum())
    return SpuriousCost(places, rise[~follows].sum().item() / max(1, places), rise.sum().item() / max(1, len(rise)))
