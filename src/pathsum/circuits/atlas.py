"""Skip-trigrams of a head, source … destination → out, ranked by their effect on real text.

An occurrence is a position and an earlier token: the destination is the token at the position, out the next token, the
source all earlier positions of the same document that hold the earlier token. A window may contain the end of a
document; BOS begins the next one, as it begins every window. BOS and the destination itself are no sources: their
effect is a bigram.
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
    _, which, places_of = torch.unique_consecutive(triples, return_inverse=True, return_counts=True)
    return Occurrences(
        windows=windows,
        first=first,
        window=window[order],
        query=query[order],
        key=key[order],
        source=source[order],
        destination=destination[order],
        out=out[order],
        which=which,
        starts=places_of.cumsum(0) - places_of,
    )


def source_weight(
    pattern: Float[Tensor, "batch query key"],
    read: Float[Tensor, "batch pos"],
    final: Float[Tensor, "batch pos"],
    at: Occurrences,
) -> Float[Tensor, "n"]:
    """Compute the weight with which a head moves its source to each occurrence: s_final Σ_k A[q, k] s_read[k] over the
    positions k of the source (docs/framework.md §3.8), with the scales ``read`` of the head's layer and ``final`` of
    W_U frozen. From 0.

    Times a column of ``ov_circuit`` it is exactly what the source adds to the logits: all of it for a head of the first
    layer, the direct part (the token at the position, without the writes of earlier heads) for a later one."""
    mixing = (final[:, :, None] * pattern * read[:, None, :]).tril(-1)
    merged = torch.zeros_like(mixing).scatter_add_(-1, at.first[:, None, :].expand_as(mixing), mixing)
    return merged[at.window, at.query, at.key]


def effects(circuit: LowRank, weight: Float[Tensor, "n"], at: Occurrences) -> Float[Tensor, "n"]:
    """Compute what each source adds to the logit of the next token: ``weight`` · (W_U W_OV W_E)[out, source]
    (AMF "one-layer models: skip-trigrams"); ``circuit`` from ``ov_circuit``, ``weight`` from ``source_weight``.

    Logits above the mean over outputs, exact. Costs batch · pos² · d_head."""
    out, source = circuit.left[at.windows[:, 1:]], circuit.right.mT[at.windows[:, :-1]]
    return weight * (out @ source.mT)[at.window, at.query, at.key]


def strongest(effect: Float[Tensor, "n"], at: Occurrences, k: int) -> list[SkipTrigram]:
    """Return the ``k`` triples with the largest sum of ``effect`` over the text, largest first, only those above 0. A
    rare triple with a large effect ranks below a common one. ValueError where ``k`` < 1."""
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
    """Average log P(out) minus log P(out) without ``weight`` · (W_U W_OV W_E)[:, source] in the ``logits``, over the
    places of a triple.

    Nats, positive where the head helps; scales and every other source frozen. Costs places · d_vocab."""
    source, _, out = t
    here = at.slice(*t)
    z = logits[at.window[here], at.query[here]]
    moved = weight[here, None] * (circuit.left @ circuit.right[:, source])
    return (z.log_softmax(-1) - (z - moved).log_softmax(-1))[:, out].mean().item()


# ---- bugs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpuriousCost:
    """The cost of a spurious skip-trigram."""

    places: int  # source … destination, followed by another token than out
    loss_nats: float  # mean rise of the loss there
    balance_nats: float  # mean rise of the loss over all places with source … destination; negative: a gain


def spurious_triples(triples: Sequence[Triple]) -> list[Triple]:
    """Return the triples that a head raises because it raises ``triples`` (AMF "skip-trigram bugs"): "keep … in → mind"
    and "keep … at → bay" raise "keep … at → mind" too, because attention depends on (source, destination) and the
    output on (source, out) only. Each source's destinations with its outs, without ``triples``."""
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
    """Compute what raising out costs where source … destination is followed by another token, and over all places.

    The loss minus the loss without δ = ``weight`` · (W_U W_OV W_E)[out, source] in the logit of out alone:
    −log(1 − P(out) (1 − e^−δ)), less δ where out does follow; exact. ``log_probs`` are the model's. Nats, 0 where there
    are no such places."""
    source, destination, out = t
    here = at.slice(source, destination)
    follows = at.out[here] == out
    added = weight[here] * (circuit.left[out] @ circuit.right[:, source])
    p = log_probs[at.window[here], at.query[here], out].exp()
    rise = -torch.log1p(p * torch.expm1(-added)) - added * follows
    places = int((~follows).sum())
    return SpuriousCost(places, rise[~follows].sum().item() / max(1, places), rise.sum().item() / max(1, len(rise)))
