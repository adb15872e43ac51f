"""Measure the effect of ablating all induction heads together, over training (docs/framework.md §5.11; argument 3 of
In-context Learning and Induction Heads, ICL).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.config import ExtractConfig
from pathsum.extraction.causal import CONTROL, METHODS, WINDOWS, Bench
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.probes.evaluation import Evaluation
from pathsum.probes.in_context import in_context_loss_drop
from pathsum.records.joint_ablation import JointAblationRow
from pathsum.records.roles import MATCHES, scored
from pathsum.statistics.bootstrap import independent, mean_intervals
from pathsum.statistics.rotation import random_rotation

SUBSETS = 2  # sets of other heads, as controls
TEXT, COPIES = 32, 6  # windows of text at the last checkpoint, and of repeated random tokens
INDUCTION, OTHERS = "induction", "others"
Trial = tuple[str, list[Place], str]  # the kind of heads, the heads, and the method
_SEED = 2023


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``joint_ablation``; no rows without induction heads.

    Every third settled checkpoint (``TrainedModel.settled``) is measured, counted back from the last. Heads are chosen
    by training's last evaluation, on windows other than those measured here. Costs about 0.1 s per checkpoint."""
    log = trained.log
    heads = induction_heads(log[-1])
    if not heads:
        return {"joint_ablation": []}
    generator = torch.Generator().manual_seed(_SEED)
    others = other_heads(heads, trained.cell.model.n_heads, generator)
    rows: list[JointAblationRow] = []
    for i in sorted(trained.settled[::-3]):
        model, last = load_checkpoint(trained.checkpoints[i], data.tokenizer_hash), i == len(log) - 1
        rows += checkpoint_rows(model, log[i], trained, data, trials(heads, others, last), TEXT if last else WINDOWS)
    return {"joint_ablation": rows}


def induction_heads(last: Evaluation) -> list[Place]:
    """Return every head whose prefix matching is at least ``MATCHES`` (0.1) in the evaluation ``last``."""
    return [place for place, score in scored(last.prefix_matching).items() if score >= MATCHES]


def other_heads(heads: Sequence[Place], n_heads: int, generator: torch.Generator) -> list[list[Place]]:
    """Return up to ``SUBSETS`` (2) random sets of other heads, as controls. ``n_heads`` is the number per layer.

    A set has as many heads of each layer as ``heads``, or fewer if the layer has too few other heads. The list is empty
    without other heads in these layers. All possible sets are listed first, which is costly with many heads."""
    choices = []
    for layer in sorted({layer for layer, _ in heads}):
        ours = [h for at, h in heads if at == layer]
        others = [(layer, h) for h in range(n_heads) if h not in ours]
        choices.append(list(itertools.combinations(others, min(len(ours), len(others)))))
    sets = [[place for part in parts for place in part] for parts in itertools.product(*choices)]
    kept = torch.randperm(len(sets), generator=generator)[:SUBSETS].sort().values.tolist()
    return [sets[i] for i in kept if sets[i]]


def trials(heads: list[Place], others: list[list[Place]], last: bool) -> list[Trial]:
    """Return the ablations at a checkpoint.

    At the last checkpoint (``last``), every method is used for the induction heads and for each set of ``others``. At
    earlier checkpoints, only resample ablation is used, for the induction heads and the first set. Every checkpoint
    also has the control ``CONTROL``: the induction heads' writes are rotated at random before they are removed."""
    methods = METHODS if last else ("resample",)
    return [
        *((INDUCTION, heads, method) for method in (*methods, CONTROL)),
        *((OTHERS, some, method) for some in (others if last else others[:1]) for method in methods),
    ]


def compared(tried: Sequence[Trial], drops: Float[Tensor, "trial batch"]) -> list[int]:
    """Return, for each trial, the index of the ablation of the induction heads with which it is compared.

    A trial is compared with the ablation by the same method. ``CONTROL`` is compared with the ablation that reduces the
    in-context loss drop least. ``drops`` holds the reduction of the loss drop by each trial in each window."""
    ours = {method: i for i, (kind, _, method) in enumerate(tried) if kind == INDUCTION and method != CONTROL}
    least = min(ours.values(), key=lambda i: drops[i].mean().item())
    return [ours.get(method, least) for _, _, method in tried]


def checkpoint_rows(
    model: Transformer, at: Evaluation, trained: TrainedModel, data: EvalData, tried: Sequence[Trial], n_windows: int
) -> list[JointAblationRow]:
    """Measure how much of the in-context loss drop and of the gain on repeated tokens each trial removes, at one
    checkpoint.

    ``tried`` are the trials (``trials``), on ``n_windows`` windows of text and ``COPIES`` (6) of repeated tokens. For
    the loss drop, also measure how much less the trial removes than the ablation that it is compared with
    (``compared``), paired by window. ValueError if the windows of text are from a single document."""
    generator = torch.Generator().manual_seed(_SEED)
    rotation = random_rotation(model.W_E.shape[0], generator).float()
    windows, documents = data.windows[:n_windows], data.window_documents[:n_windows]
    copies, block = trained.repeated_tokens[:COPIES], trained.block
    text = Bench.of(model, windows[:, :-1], windows[:, 1:], slice(None), rotation)
    repeats = Bench.of(model, copies, copies.roll(-1, 1), slice(0, 2 * block), rotation)
    drop, gain = loss_drops(text, [], ""), repeat_gains(repeats, block, [], "")
    drops = torch.stack([drop - loss_drops(text, heads, method) for _, heads, method in tried])
    gains = torch.stack([gain - repeat_gains(repeats, block, heads, method) for _, heads, method in tried])
    behind = drops[compared(tried, drops)] - drops
    lost = [mean_intervals(values, documents, generator) for values in (drops, behind)]
    lost.append(mean_intervals(gains, independent(gains), generator))
    rows = []
    for (kind, heads, method), a, b, c in zip(tried, *lost, strict=True):
        names = " ".join(f"L{layer}H{head}" for layer, head in heads)
        numbers: Any = (drop.mean().item(), *a, *b, gain.mean().item(), *c, len(windows))
        rows.append(JointAblationRow(at.step, at.tokens_seen, kind, names, len(heads), method, *numbers))
    return rows


def loss_drops(text: Bench, heads: Sequence[Place], method: str) -> Float[Tensor, "batch"]:
    """Return the in-context loss drop of each window with ``heads`` ablated together by ``method``
    (``Bench.instead``), in nats (docs/framework.md §6.1). Without heads, it is that of the model. Errors as in
    ``Bench.instead`` and ``in_context_loss_drop``."""
    losses = text.losses(text.ablated(heads, method))
    return torch.tensor([in_context_loss_drop(row) for row in losses], dtype=torch.float64)


def repeat_gains(copies: Bench, block: int, heads: Sequence[Place], method: str) -> Float[Tensor, "batch"]:
    """Return the gain of each window with ``heads`` ablated together: the first copy's loss minus the second's.

    In nats per token. ``method`` is as in ``Bench.instead``. Damage that is the same on both copies cancels. Without
    heads, it is the gain of the model. See docs/framework.md §5.4."""
    losses = copies.losses(copies.ablated(heads, method)).double()
    return losses[:, :block].mean(1) - losses[:, block + 1 :].mean(1)
