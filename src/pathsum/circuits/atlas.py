"""Skip-trigrams of a head, source … destination → out, ranked by their effect on real text.

An occurrence is a position and an earlier token of the same document. The token at the position is the destination, the
next token is out, and the earlier token is the source. A source may stand at several positions. BOS begins each
document. BOS and the destination itself are no sources, because their effect is a bigram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.core.lowrank import LowRank

Triple = tuple[int, int, int]  # source, destination, out, as token ids


@dataclass(frozen=True)
class Occurrences:
    """Every occurrence in some windows, sorted by (source, destination, out)."""

    windows: Int[Tensor, "batch window"]
    first: Int[Tensor, "batch pos"]  # first position in its document of the token at each position; 0 for BOS
    window: Int[Tensor, "n"]
    query: Int[Tensor, "n"]
    key: Int[Tensor, "n"]  # the source's first position
    source: Int[Tensor, "n"]
    destination: Int[Tensor, "n"]
    out: Int[Tensor, "n"]
    which: Int[Tensor, "n"]  # distinct triple, in the order of occurrence
    starts: Int[Tensor, "k"]  # where each distinct triple begins

    def slice(self, source: int, destination: int, out: int | None = None) -> slice:
        """Return the occurrences of these tokens; with any next token where ``out`` is None."""
        low, high = 0, len(self.source)
        for column, value in ((self.source, source), (self.destination, destination), (self.out, out)):
            if value is not None:
                part = column[low:high]
                low, high = (low + int(torch.searchsorted(part, value, right=right)) for right in (False, True))
        return slice(low, high)


@dataclass(frozen=True)
class SkipTrigram:
    """The effect of a triple over all its places."""

    triple: Triple
    places: int  # where the source stands before destination → out
    total: float  # logits that the source adds to out, summed over places


@dataclass(frozen=True)
class SpuriousCost:
    """The cost of a spurious skip-trigram."""

    places: int  # source … destination, followed by another token than out
    loss_nats: float  # mean rise of the loss there
    balance_nats: float  # mean rise of the loss over all places with source … destination; negative: a gain


def occurrences(windows: Int[Tensor, "batch window"]) -> Occurrences:
    """List every occurrence in ``windows``. Costs batch · pos² numbers and a sort of half as many."""
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
    """Compute the weight with which a head moves its source to each occurrence: s_final Σ_k A[q, k] s_read[k] over the
    positions k of the source, with frozen scales (docs/framework.md §3.8). From 0.

    Times a column of ``ov_circuit`` this is what the source adds to the logits: all of it in the first layer, the
    direct part (without the writes of earlier heads) in later layers."""
    mixing = (final[:, :, None] * pattern * read[:, None, :]).tril(-1)
    merged = torch.zeros_like(mixing).scatter_add_(-1, at.first[:, None, :].expand_as(mixing), mixing)
    return merged[at.window, at.query, at.key]


def effects(circuit: LowRank, weight: Float[Tensor, "n"], at: Occurrences) -> Float[Tensor, "n"]:
    """Compute what each source adds to the logit of the next token: ``weight`` · (W_U W_OV W_E)[out, source]
    (AMF "one-layer models: skip-trigrams", docs/framework.md §3.8); ``circuit`` from ``ov_circuit``.

    Logits above the mean over outputs. Costs batch · pos² · d_head."""
    out, source = circuit.left[at.windows[:, 1:]], circuit.right.mT[at.windows[:, :-1]]
    return weight * (out @ source.mT)[at.window, at.query, at.key]


def strongest(effect: Float[Tensor, "n"], at: Occurrences, k: int) -> list[SkipTrigram]:
    """Return the ``k`` triples with the largest positive sum of ``effect`` over the text, largest first.
    ValueError where ``k`` < 1."""
    if k < 1:
        raise ValueError(f"expected k ≥ 1 skip-trigrams, got {k}; ask for at least one")
    total = effect.new_zeros(len(at.starts), dtype=torch.float64).index_add_(0, at.which, effect.double())
    places = torch.diff(at.starts, append=at.starts.new_tensor([len(effect)]))
    best = total.topk(min(k, len(total)))
    return [
        SkipTrigram((int(at.source[i]), int(at.destination[i]), int(at.out[i])), int(places[n]), value)
        for value, n, i in zip(best.values.tolist(), best.indices, at.starts[best.indices], strict=True)
        if value > 0
    ]


def worth(
    circuit: LowRank, logits: Float[Tensor, "batch pos vocab"], weight: Float[Tensor, "n"], at: Occurrences, t: Triple
) -> float:
    """Compute the loss reduction by a skip-trigram: log P(out) minus log P(out) without ``weight`` · (W_U W_OV W_E)[:,
    source] in the ``logits``, mean over the places of the triple (docs/framework.md §3.8).

    Nats, positive where the head helps. Scales and other sources are frozen. Costs places · d_vocab."""
    source, _, out = t
    here = at.slice(*t)
    z = logits[at.window[here], at.query[here]]
    moved = weight[here, None] * (circuit.left @ circuit.right[:, source])
    return (z.log_softmax(-1) - (z - moved).log_softmax(-1))[:, out].mean().item()


def spurious_triples(triples: Sequence[Triple]) -> list[Triple]:
    """Return the triples that a head raises because it raises ``triples`` (AMF "skip-trigram bugs", docs/framework.md
    §3.10): each source's destinations with its outs, without ``triples``.

    "keep … in → mind" and "keep … at → bay" raise "keep … at → mind" too, because attention depends on (source,
    destination) and the output on (source, out)."""
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
    """Compute what raising out costs where source … destination is followed by another token, and over all places
    (docs/framework.md §3.10): the loss minus the loss without δ = ``weight`` · (W_U W_OV W_E)[out, source] in the
    logit of out alone.

    ``log_probs`` are the model's. Nats; 0 where there are no such places."""
    source, destination, out = t
    here = at.slice(source, destination)
    follows = at.out[here] == out
    added = weight[here] * (circuit.left[out] @ circuit.right[:, source])
    p = log_probs[at.window[here], at.query[here], out].exp()
    rise = -torch.log1p(p * torch.expm1(-added)) - added * follows
    places = int((~follows).sum())
    return SpuriousCost(places, rise[~follows].sum().item() / max(1, places), rise.sum().item() / max(1, len(rise)))
