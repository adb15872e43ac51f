"""Measure whether the edge from the previous-token head to the keys of the induction head is sufficient for induction.

Everything else is resampled: the writes of all other heads, and what the induction head reads in addition to the kept
edge. Its queries and keys are resampled from different windows. Otherwise they would still match, because all windows
repeat at the same positions. The direct path to the logits and to the induction head's queries and values stays,
because it carries the token itself. See "how induction heads work" in A Mathematical Framework for Transformer Circuits
(AMF), and docs/framework.md §5.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pathsum.behaviour.labels import by_window
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place, Run
from pathsum.probes.induction import prefix_matching
from pathsum.records.roles import HeadRoles
from pathsum.records.sufficiency import SufficiencyRow
from pathsum.statistics.bootstrap import independent, ratio_interval

WINDOWS = 12
CIRCUIT, OTHER, NOTHING = "circuit", "another head", "nothing"  # the head from which the key edge is kept
SHIFTS = {"Q": 2, "K": 1, "V": 1}  # number of windows back from which queries, keys and values are resampled
_SEED = 2024

Values = Mapping[str, Float[Tensor, "batch"]]


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``sufficiency``; no rows unless the head with the highest prefix matching is past the first
    layer.

    There is one row for each first-layer head, whose key edge is kept, and one row without such an edge. Costs one
    layer and the losses on ``WINDOWS`` (12) repeated windows for each row: 0.2 s for four heads."""
    roles = HeadRoles.of(trained.log)
    if roles.previous is None or roles.induction is None or roles.induction[0] == 0:
        return {"sufficiency": []}
    (layer, head), previous = roles.induction, roles.previous
    block, clean = trained.block, Run(trained.model, trained.repeated_tokens[:WINDOWS])
    whole = matching_and_gain(clean, (layer, head), block)
    kept: list[Place | None] = [*((0, h) for h in range(trained.cell.model.n_heads)), None]
    found = [matching_and_gain(keep_edge(clean, p, (layer, head)), (layer, head), block) for p in kept]
    generator = torch.Generator().manual_seed(_SEED)
    return {
        "sufficiency": [row(p, (layer, head), previous, f, whole, generator) for p, f in zip(kept, found, strict=True)]
    }


def keep_edge(clean: Run, early: Place | None, late: Place) -> Run:
    """Resample all heads but ``late``, and all that ``late`` reads from heads, except the edge from ``early`` to the
    keys of ``late``.

    The direct path to these keys is resampled too. No edge is kept if ``early`` is None. The norm scales before
    ``late`` are frozen. ``late`` must be past the first layer, and ``early`` before ``late``. Needs at least three
    windows: with two, what the queries read is not resampled. ValueError with one."""
    earlier = [place for place in clean.places if place[0] < late[0]]
    edges = {(side, place): clean.output(place).roll(shift, 0) for side, shift in SHIFTS.items() for place in earlier}
    if early is not None:
        edges["K", early] = clean.output(early)
    edges["K", earlier[0]] = edges["K", earlier[0]] + clean.streams[0].roll(SHIFTS["K"], 0) - clean.streams[0]
    others = clean.resample(*(place for place in clean.places if place != late))
    heads = {**others.replaced, **clean.patch_edges(late, edges).replaced}
    return clean.replace({place: heads[place] for place in clean.places})


def matching_and_gain(run: Run, late: Place, block: int) -> Values:
    """Measure, for each window, the prefix matching of ``late`` ("matching") and the gain ("gain"): the first copy's
    loss minus the second's, in nats per token. ``run`` is on repeated tokens with blocks of ``block`` tokens."""
    pattern, losses = run.patterns[late[0]][late[1]][:, None], run.losses().double()
    return {
        "matching": by_window(partial(prefix_matching, block=block), pattern)[0].double(),
        "gain": losses[:, :block].mean(1) - losses[:, block + 1 :].mean(1),
    }


def row(
    early: Place | None, late: Place, previous: Place, found: Values, whole: Values, generator: torch.Generator
) -> SufficiencyRow:
    """Return the row of one kept edge: prefix matching and gain with this edge alone, also as shares of the whole
    model's."""
    matching, gain = found["matching"], found["gain"]
    shares = [ratio_interval(found[name], whole[name], independent(gain), generator) for name in ("matching", "gain")]
    kept = NOTHING if early is None else CIRCUIT if early == previous else OTHER
    numbers: Any = (matching.mean().item(), *shares[0], gain.mean().item(), *shares[1], len(gain))
    return SufficiencyRow(kept, None if early is None else early[1], *late, *numbers)
