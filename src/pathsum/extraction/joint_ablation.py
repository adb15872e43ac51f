"""Ablate all induction heads together, over training (docs/framework.md §5.11; Olsson et al. 2022, argument 3)."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.loss_drops import positions
from pathsum.circuits.paths import path_name
from pathsum.config import ExtractConfig
from pathsum.extraction.causal import Bench
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.ablations import CONTROL, INDUCTION, METHODS, OTHERS, JointAblationRow
from pathsum.records.evaluation import Evaluation
from pathsum.records.registry import intervals
from pathsum.records.roles import MATCHES, scored
from pathsum.statistics.bootstrap import NO_INTERVAL, independent, mean_intervals, ratio_interval
from pathsum.statistics.rotation import random_rotation

SUBSETS = 2  # sets of other heads, as controls
ROTATIONS = 4  # random rotations at the last checkpoint, as controls: a single one may be an unusual one
TEXT, EARLIER, COPIES = 256, 12, 6  # windows of text at the last and at earlier checkpoints, and of repeated tokens
CHUNK = 16  # most windows of text in memory at a time
_SEED = 2023


class Trial(NamedTuple):
    """One ablation of several heads together."""

    kind: str  # INDUCTION or OTHERS
    heads: list[Place]
    method: str  # as in ``Bench.instead``
    rotation: int = 0  # number of the random rotation, where the method is CONTROL


WHOLE = Trial("", [], "")  # no ablation


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``joint_ablation``; no rows without induction heads."""
    log = trained.log
    heads = induction_heads(log[-1])
    if not heads:
        return {"joint_ablation": []}
    generator = torch.Generator().manual_seed(_SEED)
    others = other_heads(heads, trained.cell.model.n_heads, generator)
    rows: list[JointAblationRow] = []
    for i in sorted(trained.settled[::-3]):
        model, last = trained.checkpoints[i](), i == len(log) - 1
        n_windows = TEXT if last else EARLIER
        rows += checkpoint_rows(model, log[i], trained, data, trials(heads, others, last), n_windows)
    return {"joint_ablation": rows}


def induction_heads(last: Evaluation) -> list[Place]:
    """Return every head whose prefix matching is at least ``MATCHES``."""
    return [place for place, score in scored(last.prefix_matching).items() if score >= MATCHES]


def other_heads(heads: Sequence[Place], n_heads: int, generator: torch.Generator) -> list[list[Place]]:
    """Return up to ``SUBSETS`` random sets of other heads of the same layers, as controls."""
    choices = []
    for layer in sorted({layer for layer, _ in heads}):
        ours = [h for at, h in heads if at == layer]
        others = [(layer, h) for h in range(n_heads) if h not in ours]
        choices.append(list(itertools.combinations(others, min(len(ours), len(others)))))
    sets = [[place for part in parts for place in part] for parts in itertools.product(*choices)]
    kept = torch.randperm(len(sets), generator=generator)[:SUBSETS].sort().values.tolist()
    return [sets[i] for i in kept if sets[i]]


def trials(heads: list[Place], others: list[list[Place]], last: bool) -> list[Trial]:
    """Return the ablations at a checkpoint."""
    methods = METHODS if last else ("resample",)
    return [
        *(Trial(INDUCTION, heads, method) for method in methods),
        *(Trial(INDUCTION, heads, CONTROL, i) for i in range(ROTATIONS if last else 1)),
        *(Trial(OTHERS, some, method) for some in (others if last else others[:1]) for method in methods),
    ]


def compared(tried: Sequence[Trial], lost: Float[Tensor, "trial batch"]) -> list[int]:
    """Return, for each trial, the index of the ablation of the induction heads with which it is compared."""
    ours = {t.method: i for i, t in enumerate(tried) if t.kind == INDUCTION and t.method != CONTROL}
    least = min(ours.values(), key=lambda i: lost[i].mean().item())
    return [ours.get(t.method, least) for t in tried]


def checkpoint_rows(
    model: Transformer, at: Evaluation, trained: TrainedModel, data: EvalData, tried: Sequence[Trial], n_windows: int
) -> list[JointAblationRow]:
    """Measure what each trial removes of the in-context loss drop and of the gain on repeated tokens."""
    generator = torch.Generator().manual_seed(_SEED)
    rotations = [random_rotation(model.W_E.shape[0], generator).to(model.W_E.dtype) for _ in range(ROTATIONS)]
    windows, documents = data.held_out[:n_windows], data.documents[:n_windows]
    copies, block = trained.repeated_tokens[:COPIES], trained.block
    repeats = Bench.of(model, copies, copies.roll(-1, 1), slice(0, 2 * block), rotations[0])
    every, chunk = [WHOLE, *tried], min(CHUNK, len(data.windows))
    whole, *left = text_drops(model, windows, every, rotations, trained.natural, chunk)
    gain, *kept = (repeat_gains(repeats, block, ablated(repeats, trial, rotations)) for trial in every)
    lost, gains = whole - torch.stack(left), gain - torch.stack(kept)
    beyond = whole - data.bigram_drops[:n_windows]
    (of,) = mean_intervals(beyond[None], documents, generator)
    shares = [ratio_interval(x, beyond, documents, generator) if of.low > 0 else NO_INTERVAL for x in lost]
    behind = lost[compared(tried, lost)] - lost
    columns = [mean_intervals(values, documents, generator) for values in (lost, behind)]
    columns.append(mean_intervals(gains, independent(gains), generator))
    return [
        JointAblationRow(
            step=at.step,
            tokens_seen=at.tokens_seen,
            ablated=trial.kind,
            heads=" ".join(path_name((place,)) for place in trial.heads),
            n_heads=len(trial.heads),
            method=trial.method,
            loss_drop_nats=of.mean,
            **intervals(loss_drop_lost=a, share=share, behind_nats=b, repeat_gain_lost=c),
            repeat_gain_nats=gain.mean().item(),
            windows=len(windows),
        )
        for trial, share, a, b, c in zip(tried, shares, *columns, strict=True)
    ]


def ablated(bench: Bench, trial: Trial, rotations: Sequence[Tensor]) -> Run:
    return replace(bench, rotation=rotations[trial.rotation]).ablated(trial.heads, trial.method)


def text_drops(
    model: Transformer,
    windows: Int[Tensor, "batch window"],
    tried: Sequence[Trial],
    rotations: Sequence[Tensor],
    natural: Trace,
    chunk: int,
) -> Float[Tensor, "trial batch"]:
    """Return the in-context loss drop of each window under each trial, in nats (docs/framework.md §6.1)."""
    early, late = positions(windows.shape[1] - 1)
    found = []
    for at in torch.arange(len(windows)).split(chunk):
        some = windows[torch.cat([at[:1] - 1, at])]  # before the first window comes the last
        text = Bench.of(model, some[:, :-1], some[:, 1:], slice(None), rotations[0], natural)
        runs = (ablated(text, trial, rotations) for trial in tried)
        found.append(torch.stack([_ends(run, text.targets, early) - _ends(run, text.targets, late) for run in runs]))
    return torch.cat([drops[:, 1:] for drops in found], 1)


def _ends(run: Run, targets: Int[Tensor, "batch pos"], at: slice) -> Float[Tensor, "batch"]:
    return run.losses(targets, at).double().mean(1)


def repeat_gains(copies: Bench, block: int, run: Run) -> Float[Tensor, "batch"]:
    """Return the first copy's loss minus the second's of each window in ``run``, in nats per token."""
    losses = copies.losses(run)
    return losses[:, :block].mean(1) - losses[:, block + 1 :].mean(1)
