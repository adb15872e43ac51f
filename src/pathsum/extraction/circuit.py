"""Choose the heads of the induction circuit, and compare its K-edges with other edges (docs/framework.md §5.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.labels import MOST, two_back
from pathsum.circuits.paths import path_name
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place, Run
from pathsum.records.ablations import CONTRASTED, OUTSIDE, SAME_PAIRS, AblationRow, EdgeContrastRow
from pathsum.records.registry import intervals
from pathsum.records.roles import MATCHES, scored
from pathsum.statistics.bootstrap import independent, mean_intervals

SHIFTS = {"Q": 1, "K": 2, "V": 1}  # windows back for resampling; queries and keys from one window would match
JUDGED, CHUNK = 64, 16  # windows that judge contrasts, and windows in memory at the same time
_SEED = 2026


@dataclass(frozen=True)
class Roles:
    """The heads of the circuit in the first layer and past it, chosen on other data than they are judged on."""

    induction: Place  # past: the head with the highest prefix matching
    previous: tuple[Place, ...]  # first: the best previous-token head, and all with a score of at least MOST
    two_back: tuple[Place, ...]  # first, other heads: the best at two tokens back, and all with at least MOST
    inductions: tuple[Place, ...]  # past: ``induction``, and all with prefix matching of at least MATCHES

    @staticmethod
    def of(trained: TrainedModel) -> Roles | None:
        """Choose the heads. None if there is no evaluation, or no layer after the first."""
        if not trained.log or len(trained.weights.layers) < 2:
            return None
        last = trained.log[-1]
        matching, previous = scored(last.prefix_matching[1:], 1), _leading(scored(last.previous_token[:1]))
        back = scored([two_back(trained.natural.patterns[0]).tolist()])
        return Roles(
            induction=max(matching, key=lambda place: (matching[place], place)),
            previous=previous,
            two_back=_leading({place: score for place, score in back.items() if place not in previous}),
            inductions=_leading(matching, MATCHES),
        )


def _leading(scores: Mapping[Place, float], least: float = MOST) -> tuple[Place, ...]:
    """Return the best head and all with a score of at least ``least``."""
    best = max(((score, place) for place, score in scores.items()), default=None)
    return tuple(place for place, score in scores.items() if score >= least or (score, place) == best)


class Edge(NamedTuple):
    kind: str  # Q, K or V
    early: Place
    late: Place

    def __str__(self) -> str:
        return f"{path_name((self.early,))} → {path_name((self.late,))} ({self.kind})"


Edges = tuple[Edge, ...]


def cut(
    clean: Run, edges: Iterable[Edge], method: str, rotation: Float[Tensor, "d_model d_model"] | None = None
) -> Run:
    """Ablate all ``edges`` together (zero, mean or resample), each change of a write rotated by ``rotation``."""
    by_late: dict[Place, dict[tuple[str, Place], Tensor]] = {}
    for kind, early, late in edges:
        write = clean.output(early)
        change = _instead(clean, kind, early, method) - write
        by_late.setdefault(late, {})[kind, early] = write + (change if rotation is None else change @ rotation)
    run = clean
    for late, writes in by_late.items():
        run = run.patch_edges(late, writes)
    return run


def _instead(clean: Run, kind: str, early: Place, method: str) -> Float[Tensor, "batch pos d_model"]:
    match method:
        case "zero":
            return torch.zeros_like(clean.output(early))
        case "mean":
            return clean.mean_output(early)
    assert method == "resample", method
    return clean.output(early).roll(SHIFTS[kind], 0)


def second_copy(run: Run, block: int) -> Float[Tensor, "batch"]:
    """Return the mean loss on the second copy of each window, in nats per token (float64)."""
    return run.losses(at=slice(block + 1, 2 * block)).double().mean(1)


def contrasts(
    trained: TrainedModel, data: EvalData, ablations: Sequence[AblationRow], selection: Run
) -> list[EdgeContrastRow]:
    """Cut the K-edges from all previous-token heads to all induction heads together, and their rivals."""
    roles, block = Roles.of(trained), trained.block
    if roles is None:
        return []
    pairs = [(early, late) for late in roles.inductions for early in roles.previous]
    trials: dict[tuple[str, str], Edges] = {}
    for method in CONTRASTED:
        for kind in ("K", *SAME_PAIRS):
            trials[method, kind] = tuple(Edge(kind, *pair) for pair in pairs)
        if sets := rival_sets(outside(ablations, method, roles), len(pairs)):
            found = rises(selection, [(method, edges) for edges in sets], block).mean(-1)
            trials[method, OUTSIDE] = sets[int(found.argmax())]
    windows = judged_windows(trained, data)
    parts = windows.tensor_split(len(windows) // min(CHUNK, len(trained.repeated_tokens)))
    cuts = [(method, edges) for (method, _), edges in trials.items()]
    rise = torch.cat([rises(Run(trained.model, part), cuts, block) for part in parts], -1)
    by_trial = dict(zip(trials, rise, strict=True))
    generator, rows = torch.Generator().manual_seed(_SEED), []
    for method, rival in trials:
        if rival == "K":
            continue
        a, b = by_trial[method, "K"], by_trial[method, rival]
        key, other, difference = mean_intervals(torch.stack([a, b, a - b]), independent(a), generator)
        rows.append(
            EdgeContrastRow(
                method=method,
                rival=rival,
                edges=", ".join(map(str, trials[method, "K"])),
                rivals=", ".join(map(str, trials[method, rival])),
                **intervals(key_nats=key, rival_nats=other),
                **intervals("", difference_nats=difference),
                windows=len(windows),
            )
        )
    return rows


def judged_windows(trained: TrainedModel, data: EvalData) -> Int[Tensor, "batch pos"]:
    """Sample the windows of repeated random tokens that judge. They are other windows than those that choose."""
    return data.repeats(JUDGED, trained.cell.model.n_ctx, torch.Generator().manual_seed(_SEED))


def outside(ablations: Sequence[AblationRow], method: str, roles: Roles) -> dict[Edge, float]:
    """Return the rise of the second copy's loss without each edge that is not among heads of the circuit."""
    circuit, found = {*roles.previous, *roles.two_back, *roles.inductions}, {}
    for row in ablations:
        if (row.target, row.method) == ("edge", method):
            assert row.kind is not None
            edge = Edge(row.kind, (row.early_layer or 0, row.early_head or 0), (row.layer, row.head))
            if not {edge.early, edge.late} <= circuit:
                found[edge] = row.second_copy_nats
    return found


def rival_sets(costs: Mapping[Edge, float], n: int) -> list[Edges]:
    """Return the ``n`` edges of highest cost: of all, and of each kind into each head, which may replace each other."""
    ranked = sorted(costs, key=lambda edge: costs[edge], reverse=True)
    groups = [ranked, *([e for e in ranked if (e.kind, e.late) == at] for at in {(e.kind, e.late): 0 for e in ranked})]
    return [*dict.fromkeys(tuple(group[:n]) for group in groups if len(group) >= n)]


def rises(clean: Run, trials: Sequence[tuple[str, Edges]], block: int) -> Float[Tensor, "trial batch"]:
    """Return the rise of the second copy's loss in each window by each of ``trials``, a method and a set of edges."""
    before = second_copy(clean, block)
    return torch.stack([second_copy(cut(clean, edges, method), block) - before for method, edges in trials])
