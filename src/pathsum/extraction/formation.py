"""Follow heads, edges and losses over training, and find their change points (docs/framework.md §6.5, §6.6)."""

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.icl_positions import icl_loss_drop
from pathsum.behavior.induction import prefix_matching
from pathsum.behavior.labels import MOST, by_window
from pathsum.behavior.loss_drops import loss_drops
from pathsum.behavior.positional import previous_token
from pathsum.circuits.composition import composition
from pathsum.circuits.score_paths import preference_contrast
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Run
from pathsum.model.transformer import Transformer
from pathsum.records.formation import ChangePointRow, FormationRow, TokenLossRow, around_onset
from pathsum.records.registry import intervals
from pathsum.records.roles import HeadRoles, Place
from pathsum.statistics.bootstrap import NO_INTERVAL, independent, mean_intervals, resampled_means
from pathsum.statistics.phase_change import Onset, bend, change_interval, onset
from pathsum.training.evaluate import token_losses

TEXT, COPIES = 32, 12  # windows of held-out text, and of repeated random tokens, which vary less
TRAJECTORY_WINDOWS = 8  # about 2,000 tokens, over which the noise of single tokens averages out
DRAWS = 500
Find = Callable[[Sequence[int], Sequence[float]], Onset | None]
CHANGES: dict[str, Find] = {  # how the change point of each quantity is found; least_rise is the smallest change
    "previous_token": partial(onset, least_rise=MOST),
    "k_composition": partial(onset, least_rise=0.25),  # as a share of chance
    "key_edge_nats": partial(onset, least_rise=1.0),  # nats: attention grows by a factor e
    "prefix_matching": onset,
    "loss_drop_nats": partial(onset, least_rise=0.15),  # nats: Olsson et al. 2022 see no in-context learning below it
    "loss_nats": bend,
}
_SEED = 2022

Values = dict[str, Float[Tensor, "batch"]]  # by quantity, one value per window


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``formation``, ``changes`` and ``token_losses``."""
    log, settled, few = trained.log, trained.settled, len(data.windows[:TEXT])
    kept, around = sorted({0, *settled}), around_onset(log) if trained.onset else ()
    each, drops, single = [], [], []
    for i in kept:
        model = trained.checkpoints[i]()
        losses = token_losses(model, data.held_out[: None if i in around else few])
        drops.append(drop_columns(losses, data))
        losses = losses[:few]
        each.append(measure(model, losses, trained, data))
        if i in settled:
            some = losses[:TRAJECTORY_WINDOWS].flatten().tolist()
            single.append(TokenLossRow(step=log[i].step, tokens_seen=log[i].tokens_seen, losses_nats=some))
    curves = {name: torch.stack([values[name] for values in each]) for name in each[0] if name in CHANGES}
    tokens = [log[i].tokens_seen for i in kept]
    generator = torch.Generator().manual_seed(_SEED)
    found = [change(name, tokens, curve, documents_of(name, curve, data), generator) for name, curve in curves.items()]
    rows = []
    for i, values, drop in zip(kept, each, drops, strict=True):
        means: dict[str, Any] = {name: values[name].mean().item() if name in values else None for name in CHANGES}
        rows.append(FormationRow(step=log[i].step, tokens_seen=log[i].tokens_seen, **means | drop))
    return {"formation": rows, "changes": [row for row in found if row is not None], "token_losses": single}


def drop_columns(losses: Float[Tensor, "batch pos"], data: EvalData) -> dict[str, Any]:
    """Return the columns of ``FormationRow`` on loss drops, from the ``losses`` on the first held-out windows."""
    documents = data.documents[: len(losses)]
    every = losses if len(losses) == len(data.held_out) else losses[:0]  # on few windows, the text makes a drop
    icl = [drop for row in every.tolist() if (drop := icl_loss_drop(row)) is not None]
    ours = loss_drops(losses) - data.bigram_drops[: len(losses)]
    _, *ends = NO_INTERVAL
    if len(documents.unique()) > 1:
        _, *ends = mean_intervals(ours[None], documents, torch.Generator().manual_seed(_SEED))[0]
    return {
        **intervals(loss_drop_nats=(ours.mean().item(), *ends)),
        "icl_loss_drop_nats": statistics.fmean(icl) if icl else None,
        "windows": len(losses),
    }


def final_pair(trained: TrainedModel) -> tuple[int, Place] | None:
    """Return the number of the previous-token head in the first layer, and the induction head; None without either."""
    roles = HeadRoles.of(trained.log)
    return (roles.previous[1], roles.induction) if roles.previous and roles.induction else None


def measure(model: Transformer, losses: Float[Tensor, "batch pos"], trained: TrainedModel, data: EvalData) -> Values:
    """Measure each quantity at one checkpoint: one value per window, but only one in all for K-composition."""
    found = {"loss_drop_nats": loss_drops(losses) - data.bigram_drops[: len(losses)], "loss_nats": losses.mean(1)}
    if (pair := final_pair(trained)) is None:
        return found
    previous, (layer, head) = pair
    run = Run(model, trained.repeated_tokens[:COPIES])
    copies = run.trace.patterns[layer][:, head, None]
    patterns = first_patterns(model, data.windows[:TEXT, :-1], previous)
    found["previous_token"] = by_window(previous_token, patterns)[0].double()
    found["prefix_matching"] = by_window(partial(prefix_matching, block=trained.block), copies)[0].double()
    if layer > 0:
        found["key_edge_nats"] = key_edge(run, previous, (layer, head), trained.block)
        weights = model.weights().to(torch.float64).layers
        score = composition(weights[0][previous], weights[layer][head], "K")
        found["k_composition"] = torch.tensor([score * math.sqrt(model.W_E.shape[0]) - 1], dtype=torch.float64)
    return found


def first_patterns(
    model: Transformer, tokens: Int[Tensor, "batch pos"], head: int
) -> Float[Tensor, "batch head query key"]:
    heads = model.attention(0)
    read, at = model.normalise(model.embed(tokens))[0], slice(head, head + 1)
    return heads.pattern(heads.queries(read, at), heads.keys(read, at), at)


def key_edge(clean: Run, previous: int, late: Place, block: int) -> Float[Tensor, "batch"]:
    """Measure how much of the preference for the token after a match depends on the K-edge from ``previous``."""
    other = clean.output((0, previous)).roll(1, 0)
    without = clean.patch_edge((0, previous), late, "K", other).replaced[late].pattern
    tiny = torch.finfo(without.dtype).tiny
    change = clean.pattern(late).clamp(min=tiny).log() - without.clamp(min=tiny).log()
    past = torch.ones_like(change).tril() * change
    return (past * preference_contrast(block)).sum((-2, -1)).double()


def documents_of(name: str, curve: Float[Tensor, "rows batch"], data: EvalData) -> Int[Tensor, "batch"]:
    """Return the document of each window of a curve; windows of random tokens are independent."""
    random = name in ("prefix_matching", "key_edge_nats")
    return independent(curve) if random else data.window_documents[: curve.shape[1]]


def change(
    name: str,
    tokens: Sequence[int],
    curve: Float[Tensor, "rows batch"],
    documents: Int[Tensor, "batch"],
    generator: torch.Generator,
) -> ChangePointRow | None:
    """Return the change point of a curve's mean over windows, with its bootstrap interval; None if there is none."""
    find = CHANGES[name]
    if name == "loss_nats":
        tokens, curve = tokens[1:], curve[1:]
    found = find(tokens, curve.mean(1).tolist()) if len(tokens) > 1 else None
    if found is None:
        return None
    ends = None
    if len(documents.unique()) > 1:
        drawn = resampled_means(curve, documents, generator, DRAWS)
        ends = change_interval(find, tokens, found, drawn, documents)
    low, high = ends or (None, None)
    return ChangePointRow(
        quantity=name,
        tokens_seen=found.tokens_seen,
        low=found.low,
        high=found.high,
        low_documents=low,
        high_documents=high,
        windows=curve.shape[1] if curve.shape[1] > 1 else None,
    )
