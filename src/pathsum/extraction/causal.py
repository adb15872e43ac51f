"""What the losses depend on: heads, edges and virtual heads taken away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.config import ExtractConfig
from pathsum.extraction.edge_contrasts import Cut, edge_contrasts
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.terms import term_rows
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Trace, Transformer
from pathsum.probes.in_context import in_context_loss_drop
from pathsum.probes.induction import prefix_matching
from pathsum.records.ablations import AblationRow
from pathsum.records.roles import HeadRoles
from pathsum.statistics.bootstrap import independent, mean_intervals
from pathsum.statistics.rotation import random_rotation

WINDOWS = 12  # of each kind: an intervention then costs some 50 ms on one thread
METHODS = ("zero", "mean", "resample")
CONTROL = "turned"  # what a head of the same pattern and size would have written in other directions is taken away
RECOMPUTED, FROZEN = "recomputed", "frozen"
_SEED = 2021


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the rows of each record, by its name."""
    generator = torch.Generator().manual_seed(_SEED)
    d_model = trained.weights.W_E.shape[0]
    rotation = random_rotation(d_model, generator).float()
    natural, documents, block = data.windows[:WINDOWS], data.window_documents[:WINDOWS], trained.block
    repeated = trained.repeated_tokens[:WINDOWS]
    text = Bench.of(trained.model, natural[:, :-1], natural[:, 1:], slice(None), trained.natural, rotation)
    copies = Bench.of(
        trained.model, repeated, repeated.roll(-1, 1), slice(block + 1, 2 * block), trained.repeated, rotation
    )
    return {
        **intervened((text, copies), block, documents, HeadRoles.of(trained.log), generator),
        "terms": term_rows(trained.model, text.clean, natural, documents, generator),
    }


@dataclass(frozen=True)
class Bench:
    """Windows that every intervention is measured on, the run without one, and what may stand in a head's place."""

    clean: Run
    targets: Int[Tensor, "batch pos"]
    scored: slice  # positions whose predictions count
    means: tuple[Float[Tensor, "head pos d_model"], ...]  # of what each head writes, over all windows of its kind
    rotation: Float[Tensor, "d_model d_model"]

    @staticmethod
    def of(
        model: Transformer, tokens: Tensor, targets: Tensor, scored: slice, everything: Trace, rotation: Tensor
    ) -> Bench:
        means = tuple(output.mean(0) for output in everything.outputs)
        return Bench(Run(model, tokens), targets, scored, means, rotation)

    def instead(self, place: Place, method: str) -> Float[Tensor, "batch pos d_model"]:
        """What stands in place of what a head writes."""
        layer, head = place
        output = self.clean.output(place)
        match method:
            case "zero":
                return torch.zeros_like(output)
            case "mean":
                return self.means[layer][head].expand_as(output)
            case "resample":
                return output.roll(1, 0)  # another window's
        assert method == CONTROL, method
        return output - output @ self.rotation

    def losses(self, run: Run) -> Float[Tensor, "batch n"]:
        """Nats, at each position that counts."""
        return run.losses(self.targets, self.scored)


# ---- ablations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One intervention, on each bench."""

    target: str
    kind: str | None
    place: Place
    early: Place | None
    method: str
    patterns: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Measured:
    """What is measured under an intervention, as plain numbers: a small tensor kept for each trial would lie among the
    freed logits, and the next trial's would not fit between."""

    loss: list[float]  # held-out text, by window
    loss_drop: float
    second_copy: list[float]  # repeated tokens, by window
    prefix_matching: float  # the best head's


def intervened(
    benches: tuple[Bench, Bench],
    block: int,
    documents: Int[Tensor, "batch"],
    roles: HeadRoles,
    generator: torch.Generator,
) -> dict[str, list[Any]]:
    """Every intervention's effect, with it minus without, and the paired contrast of edges. ``documents`` are those of
    the windows of text."""
    trials: list[Trial] = []
    found: list[Measured] = []
    clean = tuple(bench.clean for bench in benches)
    without = _measure(benches, block, Trial("", None, (0, 0), None, "", RECOMPUTED, clean))
    for some in (_heads(benches), _edges(benches), _patterns(benches)):
        for trial in some:
            found.append(_measure(benches, block, trial))
            trials.append(replace(trial, runs=()))  # patterns of hundreds of edges are gigabytes
    if not trials:
        return {"ablations": [], "edge_contrasts": []}
    as_weights = benches[0].rotation.new_tensor
    losses = mean_intervals(as_weights([f.loss for f in found]) - as_weights(without.loss), documents, generator)
    second = as_weights([f.second_copy for f in found]) - as_weights(without.second_copy)
    copies = mean_intervals(second, independent(second), generator)
    cuts = [(i, t) for i, t in enumerate(trials) if t.target == "edge" and t.kind and t.early]
    asked = [Cut(t.method, t.kind or "", t.early or t.place, t.place) for _, t in cuts]
    rows = [
        AblationRow(
            target=t.target,
            kind=t.kind,
            layer=t.place[0],
            head=t.place[1],
            early_layer=None if t.early is None else t.early[0],
            early_head=None if t.early is None else t.early[1],
            method=t.method,
            patterns=t.patterns,
            loss_nats=a.mean,
            loss_low=a.low,
            loss_high=a.high,
            loss_drop_nats=f.loss_drop - without.loss_drop,
            second_copy_nats=b.mean,
            second_copy_low=b.low,
            second_copy_high=b.high,
            prefix_matching=f.prefix_matching - without.prefix_matching,
            windows=len(f.loss),
        )
        for t, f, a, b in zip(trials, found, losses, copies, strict=True)
    ]
    contrasts = edge_contrasts(asked, second[[i for i, _ in cuts]], roles, generator)
    return {"ablations": rows, "edge_contrasts": contrasts}


def _measure(benches: tuple[Bench, Bench], block: int, trial: Trial) -> Measured:
    text, copies = (run.freeze_patterns() if trial.patterns == FROZEN else run for run in trial.runs)
    losses = benches[0].losses(text)
    return Measured(
        loss=losses.mean(1).tolist(),
        loss_drop=in_context_loss_drop(losses.mean(0)),
        second_copy=benches[1].losses(copies).mean(1).tolist(),
        prefix_matching=max(
            (prefix_matching(p[:, None], block).item() for layer in copies.patterns for p in layer), default=0.0
        ),
    )


def _heads(benches: Sequence[Bench]) -> Iterator[Trial]:
    for place in benches[0].clean.places:
        for method in (*METHODS, CONTROL):
            runs = tuple(b.clean.patch_heads({place: b.instead(place, method)}) for b in benches)
            for patterns in (RECOMPUTED, FROZEN):
                yield Trial("head", None, place, None, method, patterns, runs)


def _edges(benches: Sequence[Bench]) -> Iterator[Trial]:
    """Without an edge of kind V and with patterns frozen, a virtual head is missing and nothing else."""
    for early in benches[0].clean.places:
        for layer in range(early[0] + 1, len(benches[0].means)):
            for kind in "QKV":
                for method in METHODS:
                    patched = [b.clean.patched_layer(layer, {(kind, early): b.instead(early, method)}) for b in benches]
                    for head in range(len(patched[0])):
                        late = (layer, head)
                        each = tuple(b.clean.replace({late: p[head]}) for b, p in zip(benches, patched, strict=True))
                        yield Trial("edge", kind, late, early, method, RECOMPUTED, each)
                        if kind == "V":
                            yield Trial("virtual", None, late, early, method, FROZEN, each)


def _patterns(benches: Sequence[Bench]) -> Iterator[Trial]:
    """Each first-layer head made a perfect previous-token head, where a later layer could read it."""
    for place in benches[0].clean.places if len(benches[0].means) > 1 else []:
        if place[0] == 0:
            runs = tuple(b.clean.force_pattern(place, _previous_token(b.clean.tokens.shape[1])) for b in benches)
            yield Trial("pattern", None, place, None, "previous token", RECOMPUTED, runs)


def _previous_token(pos: int) -> Float[Tensor, "query key"]:
    pattern = torch.diag(torch.ones(pos - 1), -1)
    pattern[0, 0] = 1  # the beginning of the sequence has nothing before it
    return pattern
