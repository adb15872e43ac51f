"""Compute the tables of A Mathematical Framework for Transformer Circuits: heads, composition and bigrams."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pathsum.behavior import induction, positional
from pathsum.circuits import bigram, eigenvalues
from pathsum.circuits.composition import benjamini_hochberg, scores_of_writers, sizes, variance, varying
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TracedModel
from pathsum.model.transformer import Trace
from pathsum.records.composition import CompositionRow
from pathsum.records.corpus import BigramRow
from pathsum.records.heads import DistanceRow, EigenvalueRow, HeadRow

FARTHEST = 32
SMOOTHING = 1.0  # weight k of the prior, in counts, for the bigrams of the corpus
_SEED = 2021


def tables(trained: TracedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``heads``, ``eigenvalues``, ``composition``, ``distances`` and ``bigrams``."""
    return {
        "heads": head_rows(trained, data),
        "eigenvalues": eigenvalue_rows(trained),
        "composition": composition_rows(trained, data, config),
        "distances": distance_rows(trained.natural),
        "bigrams": bigram_rows(trained, data, config.top_k),
    }


def head_rows(trained: TracedModel, data: EvalData) -> list[HeadRow]:
    """Score each head by its behavior on repeated random tokens and on held-out text, and by its weights."""
    exact, block, trace = trained.exact, trained.block, trained.repeated
    natural = trained.natural.patterns
    previous = [positional.previous_token(p) for p in natural]
    rows = []
    for layer, heads in enumerate(exact.layers):
        copied = induction.copying(trace.outputs[layer], trained.repeated_tokens, trained.weights.W_U, block)
        matching, bos = induction.prefix_matching(trace.patterns[layer], block), positional.bos(natural[layer])
        before = int(previous[0].argmax()) if layer > 0 else None
        for h, head in enumerate(heads):
            diagonal = eigenvalues.diagonal_rank(ov_circuit(exact, head.W_OV), data.sources)
            keyed = None
            if before is not None:
                early = exact.layers[0][before]
                found = eigenvalues.matching_eigenvalues(exact, head, early, data.unigram.double())
                keyed = eigenvalues.positivity(found)
            rows.append(
                HeadRow(
                    layer=layer,
                    head=h,
                    prefix_matching=matching[h].item(),
                    previous_token=previous[layer][h].item(),
                    copying=copied[h].item(),
                    bos=bos[h].item(),
                    copying_positivity=eigenvalues.positivity(trained.copying_eigenvalues[layer, h]),
                    copying_top1=diagonal.top1,
                    copying_top5=diagonal.top5,
                    qk_matching_positivity=keyed,
                    previous_head=before,
                )
            )
    return rows


def eigenvalue_rows(trained: TracedModel) -> list[EigenvalueRow]:
    """Return the copying eigenvalues of every head (docs/framework.md §3.5), those of largest modulus first."""
    return [
        EigenvalueRow(layer=layer, head=h, real=z.real, imag=z.imag)
        for (layer, h), values in trained.copying_eigenvalues.items()
        for z in sorted(values.tolist(), key=lambda z: (-abs(z), -z.imag))
    ]


def composition_rows(trained: TracedModel, data: EvalData, config: ExtractConfig) -> list[CompositionRow]:
    """Compute the composition scores of all edges in float64, with and without the mean writes of the early heads."""
    weights, outputs = trained.exact, trained.natural.outputs
    mean_writes = [output.mean((0, 2), dtype=torch.float64) for output in outputs]
    layers = [
        tuple(varying(head, mean) for head, mean in zip(heads, means, strict=True))
        for heads, means in zip(weights.layers, mean_writes, strict=True)
    ]
    writers = [weights, replace(weights, layers=tuple(layers))]
    generator = torch.Generator().manual_seed(_SEED)
    scores, without = scores_of_writers(weights, writers, config.rotations, generator)
    q_values = benjamini_hochberg(_tensor(s.p_value for s in scores)).tolist()
    q_varying = benjamini_hochberg(_tensor(s.p_above for s in without)).tolist()
    varied = [[variance(output[:, h]) for h in range(output.shape[1])] for output in outputs]
    embedding, before = variance(trained.model.weights().W_E.mT[data.windows[:, :-1]]), itertools.accumulate(varied)
    size = {  # relative size of each earlier head's writes, by later layer
        late: sizes(_tensor([embedding, *parts]))[1:].split([len(layer) for layer in varied[:late]])
        for late, parts in enumerate(before, start=1)
    }
    return [
        CompositionRow(
            kind=s.kind,
            early_layer=s.early[0],
            early_head=s.early[1],
            late_layer=s.late[0],
            late_head=s.late[1],
            value=s.value,
            varying=w.value,
            size=size[s.late[0]][s.early[0]][s.early[1]].item(),
            chance=s.chance,
            p_value=s.p_value,
            p_floor=s.p_floor,
            q_value=q,
            varying_p_value=w.p_above,
            varying_q_value=v,
        )
        for s, w, q, v in zip(scores, without, q_values, q_varying, strict=True)
    ]


def _tensor(values: Iterable[float]) -> Tensor:
    return torch.tensor(list(values), dtype=torch.float64)


def distance_rows(natural: Trace) -> list[DistanceRow]:
    """Return each head's mean attention at distances 0 to ``FARTHEST`` tokens back, as far as windows reach."""
    return [
        DistanceRow(layer=layer, head=h, distance=distance, attention=attention)
        for layer, pattern in enumerate(natural.patterns)
        for h, by_distance in enumerate(positional.attention_by_distance(pattern).tolist())
        for distance, attention in enumerate(by_distance[: FARTHEST + 1])
    ]


def bigram_rows(trained: TracedModel, data: EvalData, k: int) -> list[BigramRow]:
    """Return the 10 · ``k`` most frequent bigrams of the corpus, or all that occur."""
    direct = bigram.direct_path(trained.weights, trained.model.b_U)
    pairs = bigram.top_pairs(direct, data.bigram_counts, 10 * k, SMOOTHING)
    return [BigramRow(**vars(p) | {"token": data.words[p.token], "next": data.words[p.next]}) for p in pairs]
