"""Does previous-token head → key edge → induction head suffice? (docs/framework.md §5.10; AMF "how induction heads
work")

Everything else is resampled: what all other heads write, and what the induction head reads besides the kept edge, comes
from other windows, for its queries from another one than for its keys: all windows repeat at the same places, so that
what one window writes to both would still match, two tokens at a time. The direct path stays, to the logits, to the
induction head's queries and to its values: it is the token itself, and no head.
"""

from __future__ import annotations

from collections.abc import Mapping
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
CIRCUIT, OTHER, NOTHING = "circuit", "another head", "nothing"  # what the key edge comes from
SHIFTS = {"Q": 2, "K": 1, "V": 1}  # which other window each reader sees: of the same one, queries would match keys
_SEED = 2024


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the rows by record name; no rows where no later head has the best prefix matching. Costs a layer and the
    loss on ``WINDOWS`` repeated blocks for each first-layer head: 0.2 s for four."""
    roles = HeadRoles.of(trained.log)
    if roles.previous is None or roles.induction is None or roles.induction[0] == 0:
        return {"sufficiency": []}
    (layer, head), previous = roles.induction, roles.previous
    block, clean = trained.block, Run(trained.model, trained.repeated_tokens[:WINDOWS])
    whole = worth(clean, (layer, head), block)
    kept: list[Place | None] = [*((0, h) for h in range(trained.cell.model.n_heads)), None]
    found = [worth(keep_edge(clean, p, (layer, head)), (layer, head), block) for p in kept]
    generator = torch.Generator().manual_seed(_SEED)
    return {
        "sufficiency": [row(p, (layer, head), previous, f, whole, generator) for p, f in zip(kept, found, strict=True)]
    }


def keep_edge(clean: Run, early: Place | None, late: Place) -> Run:
    """Run the model with nothing left of its heads but the edge from ``early`` to the keys of ``late``, and ``late``'s
    own writes; None keeps no edge. Norm scales before ``late`` stay as they were. Needs three windows."""
    earlier = [place for place in clean.places if place[0] < late[0]]
    edges = {(side, place): clean.output(place).roll(shift, 0) for side, shift in SHIFTS.items() for place in earlier}
    if early is not None:
        edges["K", early] = clean.output(early)
    edges["K", earlier[0]] = edges["K", earlier[0]] + clean.streams[0].roll(SHIFTS["K"], 0) - clean.streams[0]
    return clean.resample(*clean.places).patch_edges(late, edges)


def worth(run: Run, late: Place, block: int) -> Mapping[str, Float[Tensor, "batch"]]:
    """Prefix matching of ``late`` and the first copy's loss minus the second's (nats per token), by window."""
    pattern, losses = run.patterns[late[0]][late[1]][:, None], run.losses().double()
    return {
        "matching": by_window(lambda p: prefix_matching(p, block), pattern)[0].double(),
        "gain": losses[:, :block].mean(1) - losses[:, block + 1 :].mean(1),
    }


def row(
    early: Place | None,
    late: Place,
    previous: Place,
    found: Mapping[str, Float[Tensor, "batch"]],
    whole: Mapping[str, Float[Tensor, "batch"]],
    generator: torch.Generator,
) -> SufficiencyRow:
    """What remains, as shares of the whole model's."""
    shares = {name: ratio_interval(x, whole[name], independent(x), generator) for name, x in found.items()}
    return SufficiencyRow(
        kept=NOTHING if early is None else CIRCUIT if early == previous else OTHER,
        early_head=None if early is None else early[1],
        layer=late[0],
        head=late[1],
        prefix_matching=found["matching"].mean().item(),
        matching_share=shares["matching"].mean,
        matching_low=shares["matching"].low,
        matching_high=shares["matching"].high,
        repeat_gain_nats=found["gain"].mean().item(),
        gain_share=shares["gain"].mean,
        gain_low=shares["gain"].low,
        gain_high=shares["gain"].high,
        windows=len(found["gain"]),
    )
