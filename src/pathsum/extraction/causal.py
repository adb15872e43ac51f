"""Measure the effect of interventions on heads, edges, virtual heads and patterns (docs/framework.md §5.8, §5.9)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.in_context import in_context_loss_drop
from pathsum.behavior.induction import prefix_matching
from pathsum.config import ExtractConfig
from pathsum.core.threads import in_threads
from pathsum.extraction.circuit import contrasts
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.norm_scales import term_rows
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Trace, Transformer
from pathsum.records.ablations import CONTROL, METHODS, AblationRow
from pathsum.records.registry import intervals
from pathsum.statistics.bootstrap import independent, mean_intervals
from pathsum.statistics.rotation import random_rotation

WINDOWS = 12  # of text, and of repeated tokens; an intervention then takes about 50 ms on one thread
RECOMPUTED, FROZEN = "recomputed", "frozen"
_SEED = 2021


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``ablations``, ``edge_contrasts`` and ``terms``; the first two have no rows without heads."""
    generator = torch.Generator().manual_seed(_SEED)
    rotation = random_rotation(trained.weights.W_E.shape[0], generator).float()
    windows, documents, block = data.windows[:WINDOWS], data.window_documents[:WINDOWS], trained.block
    copies, scored = trained.repeated_tokens[:WINDOWS], slice(block + 1, 2 * block)
    text = Bench.of(trained.model, windows[:, :-1], windows[:, 1:], slice(None), rotation, trained.natural)
    repeats = Bench.of(trained.model, copies, copies.roll(-1, 1), scored, rotation, trained.repeated)
    ablations = intervened((text, repeats), block, documents, generator)
    return {
        "ablations": ablations,
        "edge_contrasts": contrasts(trained, data, ablations, repeats.clean),
        "terms": term_rows(trained.model, text.clean, windows, documents, generator),
    }


@dataclass(frozen=True)
class Bench:
    """Windows on which every intervention is measured, and what can replace a head's writes."""

    clean: Run
    targets: Int[Tensor, "batch pos"]
    scored: slice  # positions whose predictions enter the loss
    means: tuple[Float[Tensor, "head pos d_model"], ...]  # mean over windows of each head's writes
    rotation: Float[Tensor, "d_model d_model"]

    @staticmethod
    def of(
        model: Transformer, tokens: Tensor, targets: Tensor, scored: slice, rotation: Tensor, whole: Trace | None = None
    ) -> Bench:
        clean = Run(model, tokens)
        return Bench(clean, targets, scored, tuple(o.mean(0) for o in (whole or clean.trace).outputs), rotation)

    def instead(self, place: Place, method: str) -> Float[Tensor, "batch pos d_model"]:
        """Return what replaces the writes of the head at ``place`` under ``method`` (docs/framework.md §5.8)."""
        output = self.clean.output(place)
        match method:
            case "zero":
                return torch.zeros_like(output)
            case "mean":
                return self.means[place[0]][place[1]].expand_as(output)
            case "resample":
                return output.roll(1, 0)  # the write in another window
        assert method == CONTROL, method
        return output - output @ self.rotation

    def ablated(self, heads: Iterable[Place], method: str) -> Run:
        """Return the run with the writes of all ``heads`` ablated together by ``method`` (``instead``)."""
        return self.clean.patch_heads({place: self.instead(place, method) for place in heads})

    def losses(self, run: Run) -> Float[Tensor, "batch n"]:
        """Return the loss at each scored position of ``run``, in nats (float64, so that means do not add rounding)."""
        return run.losses(self.targets, self.scored).double()


Benches = tuple[Bench, Bench]  # on held-out text, and on repeated random tokens
Runs = tuple[Run, ...]  # one on each bench


@dataclass(frozen=True)
class Trial:
    """One intervention, by the columns of ``AblationRow`` that describe it."""

    target: str
    layer: int
    head: int
    method: str
    patterns: str = RECOMPUTED
    kind: str | None = None
    early_layer: int | None = None
    early_head: int | None = None


@dataclass(frozen=True)
class Measured:
    """Python numbers, because small tensors that outlive a trial would fragment the memory of the next one's logits."""

    loss: list[float]  # on held-out text, by window; nats per token
    loss_drop: float  # in-context loss drop on held-out text, nats
    second_copy: list[float]  # on repeated tokens, by window; nats per token
    prefix_matching: float  # of the best head, 0..1


def intervened(
    benches: Benches, block: int, documents: Int[Tensor, "batch"], generator: torch.Generator
) -> list[AblationRow]:
    matching = _matching(benches[1].clean, block, {})
    without = _measure(benches, block, tuple(bench.clean for bench in benches), matching)

    @torch.no_grad()
    def measured(trials: Iterable[tuple[Trial, Runs]]) -> list[tuple[Trial, Measured]]:
        return [(trial, _measure(benches, block, runs, matching)) for trial, runs in trials]

    groups = in_threads(measured, [_heads(benches), *_edges(benches), _patterns(benches)])
    if not any(groups):
        return []
    trials, found = zip(*itertools.chain(*groups), strict=True)
    numbers = benches[0].rotation.new_tensor
    loss = numbers([f.loss for f in found]) - numbers(without.loss)
    second = numbers([f.second_copy for f in found]) - numbers(without.second_copy)
    losses = mean_intervals(loss, documents, generator)
    copies = mean_intervals(second, independent(second), generator)
    return [
        AblationRow(
            **vars(t),
            **intervals(loss_nats=a, second_copy_nats=b),
            loss_drop_nats=f.loss_drop - without.loss_drop,
            prefix_matching=f.prefix_matching - without.prefix_matching,
            windows=len(f.loss),
        )
        for t, f, a, b in zip(trials, found, losses, copies, strict=True)
    ]


def _measure(benches: Benches, block: int, runs: Runs, matching: Mapping[Place, float]) -> Measured:
    text, copies = runs
    losses = benches[0].losses(text)
    return Measured(
        loss=losses.mean(1).tolist(),
        loss_drop=in_context_loss_drop(losses.mean(0)),
        second_copy=benches[1].losses(copies).mean(1).tolist(),
        prefix_matching=max(_matching(copies, block, matching).values(), default=0.0),
    )


def _matching(run: Run, block: int, known: Mapping[Place, float]) -> dict[Place, float]:
    """Return the prefix matching of each head."""
    found = {place: score for place, score in known.items() if run.keeps_pattern(place)}
    for layer, head in run.places:
        if (layer, head) not in found:
            found[layer, head] = prefix_matching(run.patterns[layer][head][:, None], block).item()
    return found


def _heads(benches: Benches) -> Iterator[tuple[Trial, Runs]]:
    for place in benches[0].clean.places:
        for method in (*METHODS, CONTROL):
            runs = tuple(b.ablated([place], method) for b in benches)
            yield Trial("head", *place, method), runs
            yield Trial("head", *place, method, FROZEN), _frozen(runs)


def _edges(benches: Benches) -> Iterator[Iterator[tuple[Trial, Runs]]]:
    """Yield, for each head and each later layer, the runs of the edges between them and of their virtual heads."""
    for early in benches[0].clean.places:
        for layer in range(early[0] + 1, len(benches[0].means)):
            yield _edges_into(benches, early, layer)


def _edges_into(benches: Benches, early: Place, layer: int) -> Iterator[tuple[Trial, Runs]]:
    for kind, method in itertools.product("QKV", METHODS):
        patched = [b.clean.patched_layer(layer, {(kind, early): b.instead(early, method)}) for b in benches]
        for head in range(len(patched[0])):
            late = (layer, head)
            runs = tuple(b.clean.replace({late: p[head]}) for b, p in zip(benches, patched, strict=True))
            yield Trial("edge", *late, method, RECOMPUTED, kind, *early), runs
            if kind == "V":
                yield Trial("virtual", *late, method, FROZEN, None, *early), _frozen(runs)


def _patterns(benches: Benches) -> Iterator[tuple[Trial, Runs]]:
    """Yield, for each first-layer head, the runs in which this head attends to the previous token only."""
    for place in benches[0].clean.places if len(benches[0].means) > 1 else []:
        if place[0] == 0:
            runs = tuple(b.clean.force_pattern(place, _previous_token(b.clean.tokens.shape[1])) for b in benches)
            yield Trial("pattern", *place, "previous token"), runs


def _frozen(runs: Runs) -> Runs:
    return tuple(run.freeze_patterns() for run in runs)


def _previous_token(pos: int) -> Float[Tensor, "query key"]:
    pattern = torch.diag(torch.ones(pos - 1), -1)
    pattern[0, 0] = 1  # the first position has no previous token
    return pattern
