"""Compare the K-edges from previous-token heads to induction heads with as many other edges.

See docs/framework.md §5.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.extraction.edges import Edge, cut, second_copy
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.roles import Roles
from pathsum.interventions.run import Run
from pathsum.records.ablations import CONTRASTED, OUTSIDE, SAME_PAIRS, AblationRow, EdgeContrastRow
from pathsum.statistics.bootstrap import independent, mean_intervals
from pathsum.text.repeated import repeated_random

JUDGED, CHUNK = 64, 16  # windows that judge, and windows in memory at the same time
_SEED = 2026

Edges = tuple[Edge, ...]


def contrasts(
    trained: TrainedModel, data: EvalData, ablations: Sequence[AblationRow], selection: Run
) -> list[EdgeContrastRow]:
    """Cut the K-edges from all previous-token heads to all induction heads together, and their rivals, for each
    method."""
    roles, block = Roles.of(trained), trained.block
    if roles is None:
        return []
    pairs = [(early, late) for late in roles.inductions for early in roles.previous]
    ours, *same = (tuple(Edge(kind, *pair) for pair in pairs) for kind in ("K", *SAME_PAIRS))
    trials: dict[tuple[str, str], Edges] = {}
    for method in CONTRASTED:
        trials[method, "K"] = ours
        trials |= {(method, kind): edges for kind, edges in zip(SAME_PAIRS, same, strict=True)}
        if sets := rival_sets(outside(ablations, method, roles), len(ours)):
            found = rises(selection, [(method, edges) for edges in sets], block).mean(-1)
            trials[method, OUTSIDE] = sets[int(found.argmax())]
    windows = judged_windows(trained, data)
    parts = windows.tensor_split(len(windows) // min(CHUNK, len(trained.repeated_tokens)))
    cuts = [(method, edges) for (method, _), edges in trials.items()]
    rise = torch.cat([rises(Run(trained.model, part), cuts, block) for part in parts], -1)
    by_trial = dict(zip(trials, rise, strict=True))
    generator, rows = torch.Generator().manual_seed(_SEED), []
    for (method, rival), rivals in trials.items():
        if rival == "K":
            continue
        a, b = by_trial[method, "K"], by_trial[method, rival]
        key, other, difference = mean_intervals(torch.stack([a, b, a - b]), independent(a), generator)
        rows.append(
            EdgeContrastRow(
                method=method,
                rival=rival,
                edges=", ".join(map(str, ours)),
                rivals=", ".join(map(str, rivals)),
                key_nats=key.mean,
                key_low=key.low,
                key_high=key.high,
                rival_nats=other.mean,
                rival_low=other.low,
                rival_high=other.high,
                difference_nats=difference.mean,
                low=difference.low,
                high=difference.high,
                windows=len(windows),
            )
        )
    return rows


def judged_windows(trained: TrainedModel, data: EvalData) -> Int[Tensor, "batch pos"]:
    """Sample the windows of repeated random tokens that judge. They are other windows than those that choose."""
    generator, n_ctx = torch.Generator().manual_seed(_SEED), trained.cell.model.n_ctx
    return repeated_random(JUDGED, n_ctx, len(data.words), generator, data.present)[0]


def outside(ablations: Sequence[AblationRow], method: str, roles: Roles) -> dict[Edge, float]:
    """Return the edges that are not among heads of the circuit, with the rise of the second copy's loss without each
    (``method``)."""
    circuit, found = {*roles.previous, *roles.two_back, *roles.inductions}, {}
    for row in ablations:
        if (row.target, row.method) == ("edge", method):
            assert row.kind is not None
            edge = Edge(row.kind, (row.early_layer or 0, row.early_head or 0), (row.layer, row.head))
            if not {edge.early, edge.late} <= circuit:
                found[edge] = row.second_copy_nats
    return found


def rival_sets(costs: Mapping[Edge, float], n: int) -> list[Edges]:
    """Return the candidates for the strongest set of ``n`` edges: the ``n`` edges of highest cost, and those among the
    edges of each kind into each head, which may stand in for each other."""
    ranked = sorted(costs, key=lambda edge: costs[edge], reverse=True)
    groups = [ranked, *([e for e in ranked if (e.kind, e.late) == at] for at in {(e.kind, e.late): 0 for e in ranked})]
    return [*dict.fromkeys(tuple(group[:n]) for group in groups if len(group) >= n)]


def rises(clean: Run, trials: Sequence[tuple[str, Edges]], block: int) -> Float[Tensor, "trial batch"]:
    """Return the rise of the second copy's loss in each window by each of ``trials``, a method and a set of edges."""
    before = second_copy(clean, block)
    return torch.stack([second_copy(cut(clean, edges, method), block) - before for method, edges in trials])
