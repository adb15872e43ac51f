"""What forms when: the curves of training on single windows, and where they change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.behaviour.icl_positions import icl_loss_drop
from pathsum.behaviour.labels import MOST, by_window
from pathsum.circuits.composition import composition
from pathsum.circuits.score_paths import preference_contrast
from pathsum.config import ExtractConfig
from pathsum.extraction.behaviour import SETTLED
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Run
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.probes.evaluation import Evaluation
from pathsum.probes.in_context import in_context_loss_drop
from pathsum.probes.induction import prefix_matching
from pathsum.probes.positional import previous_token
from pathsum.records.formation import ChangePointRow, FormationRow
from pathsum.records.roles import HeadRoles, Place
from pathsum.statistics.bootstrap import Interval, independent, mean_intervals, resampled_means
from pathsum.statistics.phase_change import Onset, bend, change_interval, onset

TEXT, COPIES = 32, 12  # windows of held-out text, and of repeated random tokens, which differ less
CHUNK = 4  # windows at a time: 32 at once take half as long again, for the memory they ask for
DRAWS = 500
Find = Callable[[Sequence[int], Sequence[float]], Onset | None]
CHANGES: dict[str, Find] = {  # where a quantity changes, and how much it must rise at least
    "previous_token": partial(onset, least_rise=MOST),
    "k_composition": partial(onset, least_rise=0.25),  # of chance
    "key_edge_nats": partial(onset, least_rise=1.0),  # attention times e
    "prefix_matching": onset,
    "loss_drop_nats": partial(onset, least_rise=0.15),  # up to there ICL sees no learning from context
    "loss_nats": bend,
}
_SEED = 2022


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, _: ExtractConfig) -> dict[str, list[Any]]:
    """Return the rows by record name: the values at the first checkpoint and at those from ``SETTLED`` on, and the
    change-point of each quantity that has one."""
    pair, log = final_pair(trained), trained.log
    kept = [i for i, at in enumerate(log) if i == 0 or at.tokens_seen >= SETTLED * log[-1].tokens_seen]
    each = [measure(load_checkpoint(trained.checkpoints[i], data.tokenizer_hash), pair, trained, data) for i in kept]
    curves = {name: torch.stack([values[name] for values in each]) for name in each[0] if name in CHANGES}
    tokens = [log[i].tokens_seen for i in kept]
    generator = torch.Generator().manual_seed(_SEED)
    drops = loss_drop_intervals(curves["loss_drop_nats"], data)
    found = [change(name, tokens, curve, documents_of(name, curve, data), generator) for name, curve in curves.items()]
    return {
        "formation": [formation_row(log[i], values, drop) for i, values, drop in zip(kept, each, drops, strict=True)],
        "changes": [row for row in found if row is not None],
    }


def final_pair(trained: TrainedModel) -> tuple[int, Place] | None:
    """The first-layer head that is the previous-token head in the end, and the induction head; None without heads."""
    roles = HeadRoles.of(trained.log)
    return (roles.previous[1], roles.induction) if roles.previous and roles.induction else None


def measure(
    model: Transformer, pair: tuple[int, Place] | None, trained: TrainedModel, data: EvalData
) -> dict[str, Float[Tensor, "batch"]]:
    """One checkpoint, a value a window (of composition, which needs none, one value)."""
    windows = data.windows[:TEXT]
    losses, looked = [], []
    for chunk in windows.split(CHUNK):
        trace = model.trace(chunk[:, :-1])
        each = cross_entropy(trace.logits.flatten(0, 1), chunk[:, 1:].flatten(), reduction="none")
        losses.append(each.view(len(chunk), -1).double())
        looked += [trace.patterns[0][:, pair[0], None].clone()] if pair else []  # a view would keep all heads'
    by_position = torch.cat(losses)
    found = {
        "loss_drop_nats": torch.tensor([in_context_loss_drop(row) for row in by_position], dtype=torch.float64),
        "loss_nats": by_position.mean(1),
    }
    if None not in (icl := [icl_loss_drop(row) for row in by_position.tolist()]):
        found["icl_loss_drop_nats"] = torch.tensor(icl, dtype=torch.float64)
    if pair is None:
        return found
    previous, (layer, head) = pair
    run = Run(model, trained.repeated_tokens[:COPIES])
    copies = run.trace.patterns[layer][:, head, None]
    found["previous_token"] = by_window(previous_token, torch.cat(looked))[0].double()
    found["prefix_matching"] = by_window(lambda p: prefix_matching(p, trained.block), copies)[0].double()
    if layer > 0:
        found["key_edge_nats"] = key_edge(run, previous, (layer, head), trained.block)
        weights = model.weights().layers
        score = composition(weights[0][previous], weights[layer][head], "K")
        found["k_composition"] = torch.tensor([score * math.sqrt(model.W_E.shape[0]) - 1], dtype=torch.float64)
    return found


def key_edge(clean: Run, previous: int, late: Place, block: int) -> Float[Tensor, "batch"]:
    """How much of the score of the token after a match comes through the edge from a first-layer head to the keys of a
    later one: the preference (AMF "how induction heads work") minus that with another window's writes there. Nats."""
    layer, head = late
    other = clean.output((0, previous)).roll(1, 0)
    without = clean.patched_layer(layer, {("K", (0, previous)): other})[head].pattern
    tiny = torch.finfo(without.dtype).tiny
    change = clean.pattern(late).clamp(min=tiny).log() - without.clamp(min=tiny).log()
    data = torch.ones_like(change).tril() * change
    return (data * preference_contrast(block)).sum((-2, -1)).double()


def loss_drop_intervals(curve: Float[Tensor, "rows batch"], data: EvalData) -> list[Interval | None]:
    """Return the 95 % bootstrap interval, over documents, of the loss drop at each checkpoint; None of one document."""
    documents, generator = data.window_documents[: curve.shape[1]], torch.Generator().manual_seed(_SEED)
    return [None] * len(curve) if len(documents.unique()) < 2 else [*mean_intervals(curve, documents, generator)]


def formation_row(at: Evaluation, values: dict[str, Float[Tensor, "batch"]], drop: Interval | None) -> FormationRow:
    """The means over windows."""
    mean = {name: value.mean().item() for name, value in values.items()}
    return FormationRow(
        step=at.step,
        tokens_seen=at.tokens_seen,
        previous_token=mean.get("previous_token"),
        k_composition=mean.get("k_composition"),
        key_edge_nats=mean.get("key_edge_nats"),
        prefix_matching=mean.get("prefix_matching"),
        loss_drop_nats=mean["loss_drop_nats"],
        loss_drop_low=drop.low if drop else None,
        loss_drop_high=drop.high if drop else None,
        icl_loss_drop_nats=mean.get("icl_loss_drop_nats"),
        loss_nats=mean["loss_nats"],
    )


def documents_of(name: str, curve: Float[Tensor, "rows batch"], data: EvalData) -> Int[Tensor, "batch"]:
    """The document of each of a curve's windows; random tokens are of none in common."""
    return (
        independent(curve) if name in ("prefix_matching", "key_edge_nats") else data.window_documents[: curve.shape[1]]
    )


def change(
    name: str,
    tokens: Sequence[int],
    curve: Float[Tensor, "rows batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> ChangePointRow | None:
    """Where the mean over windows changes, if it does. An untrained model's loss is on no line."""
    find = CHANGES[name]
    if name == "loss_nats":
        tokens, curve = tokens[1:], curve[1:]
    found = find(tokens, curve.mean(1).tolist()) if len(tokens) > 1 else None
    if found is None:
        return None
    windows, low, high = curve.shape[1], None, None
    if len(documents.unique()) > 1:
        ends = change_interval(find, tokens, resampled_means(curve, documents, generator, DRAWS))
        low, high = ends or (None, None)
    return ChangePointRow(name, found.tokens_seen, found.low, found.high, low, high, windows if windows > 1 else None)
