"""A trained cell, taken apart: its checkpoints and held-out tokens in, the records of every circuit out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.circuits import bigram, eigenvalues, induction, paths, positional
from pathsum.circuits.composition import CompositionScore, benjamini_hochberg, composition_scores
from pathsum.circuits.in_context import in_context_loss_drop
from pathsum.circuits.phase_change import onset
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.circuits.skip_trigrams import skip_trigrams
from pathsum.circuits.weights import Weights
from pathsum.config import CellConfig, ExtractConfig
from pathsum.data.repeated import repeated_random
from pathsum.evaluation import Evaluation
from pathsum.model.checkpoint import load_checkpoint, weights_hash
from pathsum.model.transformer import Trace, Transformer
from pathsum.records import (
    BigramRow,
    CellSummary,
    CompositionRow,
    DistanceRow,
    EigenvalueRow,
    ExactnessRow,
    HeadRow,
    SkipTrigramRow,
)
from pathsum.results import Cell
from pathsum.training.evaluate import loss_by_position

SMOOTHING = 1.0  # counts of prior in the corpus's bigram table
COPYING = 0.5  # eigenvalue positivity from which a head is counted as copying
_SEED = 2021


@dataclass(frozen=True)
class Evidence:
    """What a model is shown, and what the corpus says."""

    held_out: Int[Tensor, "all window"]  # every held-out window: losses, as the bigram baseline's
    windows: Int[Tensor, "batch window"]  # some of them: patterns and the certificate
    unigram: Float[Tensor, "vocab"]
    bigram_counts: bigram.CountRows
    words: Sequence[str]  # printable tokens by id
    tokenizer_hash: str


def extract(
    name: str, cell: CellConfig, log: list[Evaluation], checkpoints: Sequence[Path], seen: Evidence, how: ExtractConfig
) -> Cell:
    """Every record of the cell whose ``checkpoints`` (in order of training) and ``log`` are given, in float32, its
    identities in float64."""
    model = load_checkpoint(checkpoints[-1], seen.tokenizer_hash)
    weights = effective(model)
    generator = torch.Generator().manual_seed(_SEED)
    present = (seen.unigram > 0).float()
    repeated, block = repeated_random(how.repeated_windows, cell.model.n_ctx, len(seen.words), generator, present)
    trace = model.trace(repeated)
    natural = list(model.trace(seen.windows[:, :-1]).patterns)
    heads = head_rows(weights, natural, trace, repeated, block, seen)
    exact = [certificate(path, evaluation, seen, how) for path, evaluation in zip(checkpoints, log, strict=True)]
    scores = composition_scores(weights.to(torch.float64), how.rotations, generator)
    fit = bigram.compare_with_corpus(bigram.direct_path(weights), seen.bigram_counts, SMOOTHING)
    losses = loss_by_position(model, seen.held_out)
    repeats = induction.repeat_losses(trace.logits, repeated, block)
    matching = [max((s for layer in e.prefix_matching for s in layer), default=0.0) for e in log]
    change = onset([e.tokens_seen for e in log], matching)
    first_layer = [h.previous_token for h in heads if h.layer == 0]
    summary = CellSummary(
        cell=name,
        n_layers=cell.model.n_layers,
        n_heads=cell.model.n_heads,
        d_model=cell.model.d_model,
        d_head=cell.model.d_head,
        n_ctx=cell.model.n_ctx,
        d_vocab=len(seen.words),
        seed=cell.seed,
        positions=cell.model.positions,
        norm=cell.model.norm,
        smeared_keys=cell.model.smeared_keys,
        tokens_seen=log[-1].tokens_seen,
        weights_hash=weights_hash(model),
        val_loss_nats=losses.mean().item(),
        in_context_loss_drop_nats=in_context_loss_drop(losses),
        repeat_first_loss_nats=repeats.first_nats,
        repeat_second_loss_nats=repeats.second_nats,
        prefix_matching=max((h.prefix_matching for h in heads), default=None),
        previous_token=max(first_layer, default=None),
        copying_heads=sum(h.copying_positivity > COPYING for h in heads) if heads else None,
        exactness=max(e.max_relative_error for e in exact),
        onset_tokens=change.tokens_seen if change else None,
        onset_low=change.low if change else None,
        onset_high=change.high if change else None,
        bigram_correlation=fit.correlation,
        direct_path_kl_nats=fit.kl_nats,
    )
    return Cell(
        summary=summary,
        log=log,
        heads=heads,
        eigenvalues=eigenvalue_rows(weights),
        composition=composition_rows(scores),
        distances=distance_rows(natural),
        skip_trigrams=skip_trigram_rows(weights, seen, how.top_k),
        bigrams=bigram_rows(weights, seen, how.top_k),
        exactness=exact,
    )


def effective(model: Transformer) -> Weights:
    """The model's weights, with each token's embedding at the scale at which the layers read it where there is a norm:
    a bare token's own scale. Composition does not depend on it; the certificate takes the weights as they are."""
    weights = model.weights()
    _, scale = model.normalise(weights.W_E.mT)
    return Weights(weights.W_E * scale, weights.W_U, weights.layers)


def certificate(path: Path, evaluation: Evaluation, seen: Evidence, how: ExtractConfig) -> ExactnessRow:
    """The sum over all paths against the logits of the checkpoint at ``path``, in float64."""
    model = load_checkpoint(path, seen.tokenizer_hash, torch.float64)
    tokens = seen.windows[: how.certificate_windows, :-1]
    trace = model.trace(tokens)
    total = paths.path_sum(model.weights(), tokens, trace.patterns, trace.scales)
    return ExactnessRow(evaluation.step, evaluation.tokens_seen, paths.exactness(total, model(tokens)))


def head_rows(
    weights: Weights, natural: list[Tensor], trace: Trace, repeated: Tensor, block: int, seen: Evidence
) -> list[HeadRow]:
    """Each head's scores: on repeated random tokens, on held-out text, and from its weights."""
    previous = [positional.previous_token(p) for p in natural]
    rows = []
    for layer, heads in enumerate(weights.layers):
        matching = induction.prefix_matching(trace.patterns[layer], block)
        copied = induction.copying(trace.outputs[layer], repeated, weights.W_U, block)
        resting = positional.bos(natural[layer])
        before = int(previous[0].argmax())
        for h, head in enumerate(heads):
            circuit = ov_circuit(weights, head.W_OV)
            diagonal = eigenvalues.diagonal_rank(circuit, seen.unigram.nonzero().squeeze(-1))
            keyed = None
            if layer > 0:
                early = weights.layers[0][before]
                keyed = eigenvalues.positivity(eigenvalues.matching_eigenvalues(weights, head, early, seen.unigram))
            rows.append(
                HeadRow(
                    layer=layer,
                    head=h,
                    prefix_matching=matching[h].item(),
                    previous_token=previous[layer][h].item(),
                    copying=copied[h].item(),
                    bos=resting[h].item(),
                    copying_positivity=eigenvalues.positivity(circuit.eigenvalues()),
                    copying_top1=diagonal.top1,
                    copying_top5=diagonal.top5,
                    qk_matching_positivity=keyed,
                    previous_head=before if layer > 0 else None,
                )
            )
    return rows


def eigenvalue_rows(weights: Weights) -> list[EigenvalueRow]:
    """Copying eigenvalues of every head, largest first."""
    rows = []
    for layer, heads in enumerate(weights.layers):
        for h, head in enumerate(heads):
            found = eigenvalues.copying_eigenvalues(weights, head.W_OV).tolist()
            rows += [EigenvalueRow(layer, h, z.real, z.imag) for z in sorted(found, key=lambda z: (-abs(z), -z.imag))]
    return rows


def composition_rows(scores: list[CompositionScore]) -> list[CompositionRow]:
    """Composition scores with their false-discovery rates over all edges of the model."""
    q_values = benjamini_hochberg(torch.tensor([s.p_value for s in scores], dtype=torch.float64)).tolist()
    return [
        CompositionRow(s.kind, *s.early, *s.late, s.value, s.chance, s.p_value, q)
        for s, q in zip(scores, q_values, strict=True)
    ]


def distance_rows(natural: list[Tensor], farthest: int = 32) -> list[DistanceRow]:
    """Mean attention by distance, up to ``farthest`` tokens back."""
    return [
        DistanceRow(layer, h, distance, attention)
        for layer, pattern in enumerate(natural)
        for h, by_distance in enumerate(positional.attention_by_distance(pattern).tolist())
        for distance, attention in enumerate(by_distance[: farthest + 1])
    ]


def skip_trigram_rows(weights: Weights, seen: Evidence, k: int) -> list[SkipTrigramRow]:
    """The ``k`` leading skip-trigrams of every head."""
    return [
        SkipTrigramRow(
            layer,
            h,
            rank,
            seen.words[t.source],
            seen.words[t.destination],
            seen.words[t.out],
            t.qk_nats,
            t.ov_logit,
            t.effect,
        )
        for layer, heads in enumerate(weights.layers)
        for h, head in enumerate(heads)
        for rank, t in enumerate(skip_trigrams(weights, head, seen.unigram, k), start=1)
    ]


def bigram_rows(weights: Weights, seen: Evidence, k: int) -> list[BigramRow]:
    """The corpus's most frequent pairs, as the direct path alone predicts them."""
    pairs = bigram.top_pairs(bigram.direct_path(weights), seen.bigram_counts, 10 * k, SMOOTHING)
    return [
        BigramRow(seen.words[p.token], seen.words[p.next], p.count, p.corpus_log_prob_nats, p.model_log_prob_nats)
        for p in pairs
    ]
