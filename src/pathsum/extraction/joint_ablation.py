"""What all induction heads are worth together, through training (ICL argument 3)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.config import ExtractConfig
from pathsum.extraction.behaviour import SETTLED
from pathsum.extraction.causal import CONTROL, METHODS, WINDOWS, Bench
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place, Run
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.probes.evaluation import Evaluation
from pathsum.probes.in_context import in_context_loss_drop
from pathsum.records.joint_ablation import JointAblationRow
from pathsum.statistics.bootstrap import independent, mean_intervals
from pathsum.statistics.rotation import random_rotation

MATCHES = 0.1  # prefix matching from which a head counts as an induction head; chance is near 0.005
SUBSETS = 2  # of other heads, as controls
TEXT, COPIES = 32, 6  # windows at the last checkpoint, which is judged; of repeated random tokens, which differ less
INDUCTION, OTHERS = "induction", "others"
Trial = tuple[str, list[Place], str]  # which heads they are, the heads, and what stands in their place
_SEED = 2023


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """Return the rows by record name: every third checkpoint from ``SETTLED`` on and the last; no rows without
    induction heads.

    Heads are chosen by training's last evaluation, on other windows than these. Costs some 0.1 s a checkpoint.
    """
    log = trained.log
    heads = induction_heads(log[-1])
    if not heads:
        return {"joint_ablation": []}
    generator = torch.Generator().manual_seed(_SEED)
    others = other_heads(heads, trained.cell.model.n_heads, generator)
    settled = [i for i, at in enumerate(log) if at.tokens_seen >= SETTLED * log[-1].tokens_seen]
    rows: list[JointAblationRow] = []
    for i in sorted(settled[::-3]):
        model, last = load_checkpoint(trained.checkpoints[i], data.tokenizer_hash), i == len(log) - 1
        rows += checkpoint_rows(model, log[i], trained, data, trials(heads, others, last), TEXT if last else WINDOWS)
    return {"joint_ablation": rows}


def induction_heads(last: Evaluation) -> list[Place]:
    """Every head whose prefix matching reaches ``MATCHES`` in an evaluation of training."""
    return [
        (layer, head)
        for layer, scores in enumerate(last.prefix_matching)
        for head, score in enumerate(scores)
        if score >= MATCHES
    ]


def other_heads(heads: Sequence[Place], n_heads: int, generator: torch.Generator) -> list[list[Place]]:
    """As many other heads of the same layers: all sets of them, or ``SUBSETS`` at random. Fewer heads where a layer has
    fewer others, and no set where it has none at all."""
    choices = []
    for layer in sorted({layer for layer, _ in heads}):
        ours = [h for at, h in heads if at == layer]
        others = [(layer, h) for h in range(n_heads) if h not in ours]
        choices.append(list(itertools.combinations(others, min(len(ours), len(others)))))
    sets = [[place for part in parts for place in part] for parts in itertools.product(*choices)]
    kept = torch.randperm(len(sets), generator=generator)[:SUBSETS].sort().values.tolist()
    return [sets[i] for i in kept if sets[i]]


def trials(heads: list[Place], others: list[list[Place]], last: bool) -> list[Trial]:
    """Everything at the last checkpoint, which is judged; before it one way and one set of other heads."""
    ways = METHODS if last else ("resample",)
    return [
        *((INDUCTION, heads, way) for way in (*ways, CONTROL)),
        *((OTHERS, some, way) for some in (others if last else others[:1]) for way in ways),
    ]


def compared(tried: Sequence[Trial], drops: Float[Tensor, "trial batch"]) -> list[int]:
    """With which ablation of the induction heads is each trial compared? With the one by its own method; random
    directions with the one that loses least."""
    ours = {method: i for i, (kind, _, method) in enumerate(tried) if kind == INDUCTION and method != CONTROL}
    least = min(ours.values(), key=lambda i: drops[i].mean().item())
    return [ours.get(method, least) for _, _, method in tried]


def checkpoint_rows(
    model: Transformer, at: Evaluation, trained: TrainedModel, data: EvalData, tried: Sequence[Trial], n_windows: int
) -> list[JointAblationRow]:
    """Each set of heads replaced at one checkpoint: what is lost of both gains from context."""
    generator = torch.Generator().manual_seed(_SEED)
    rotation = random_rotation(model.W_E.shape[0], generator).float()
    windows, documents = data.windows[:n_windows], data.window_documents[:n_windows]
    copies, block = trained.repeated_tokens[:COPIES], trained.block
    text = _bench(model, windows[:, :-1], windows[:, 1:], slice(None), rotation)
    repeats = _bench(model, copies, copies.roll(-1, 1), slice(0, 2 * block), rotation)
    drop, gain = loss_drops(text, [], ""), repeat_gains(repeats, block, [], "")
    drops = torch.stack([drop - loss_drops(text, heads, method) for _, heads, method in tried])
    gains = torch.stack([gain - repeat_gains(repeats, block, heads, method) for _, heads, method in tried])
    behind = drops[compared(tried, drops)] - drops
    lost = [mean_intervals(values, documents, generator) for values in (drops, behind)]
    lost.append(mean_intervals(gains, independent(gains), generator))
    return [
        JointAblationRow(
            step=at.step,
            tokens_seen=at.tokens_seen,
            ablated=kind,
            heads=" ".join(f"L{layer}H{head}" for layer, head in heads),
            n_heads=len(heads),
            method=method,
            loss_drop_nats=drop.mean().item(),
            loss_drop_lost=a.mean,
            loss_drop_lost_low=a.low,
            loss_drop_lost_high=a.high,
            behind_nats=d.mean,
            behind_low=d.low,
            behind_high=d.high,
            repeat_gain_nats=gain.mean().item(),
            repeat_gain_lost=b.mean,
            repeat_gain_lost_low=b.low,
            repeat_gain_lost_high=b.high,
            windows=len(windows),
        )
        for (kind, heads, method), a, d, b in zip(tried, *lost, strict=True)
    ]


def loss_drops(text: Bench, heads: Sequence[Place], method: str) -> Float[Tensor, "batch"]:
    """The in-context loss drop of each window with ``heads`` replaced together. Nats."""
    losses = text.losses(_ablated(text, heads, method))
    return torch.tensor([in_context_loss_drop(row) for row in losses], dtype=torch.float64)


def repeat_gains(copies: Bench, block: int, heads: Sequence[Place], method: str) -> Float[Tensor, "batch"]:
    """The first copy's loss minus the second's in each window with ``heads`` replaced together. Nats per token; damage
    that is the same for both copies does not count."""
    losses = copies.losses(_ablated(copies, heads, method)).double()
    return losses[:, :block].mean(1) - losses[:, block + 1 :].mean(1)


def _ablated(bench: Bench, heads: Sequence[Place], method: str) -> Run:
    return bench.clean.patch_heads({place: bench.instead(place, method) for place in heads})


def _bench(model: Transformer, tokens: Tensor, targets: Tensor, scored: slice, rotation: Tensor) -> Bench:
    clean = Run(model, tokens)
    return Bench(clean, targets, scored, tuple(o.mean(0) for o in clean.trace.outputs), rotation)
