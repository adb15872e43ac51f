"""Measure whether induction heads match more than the current token, and by which edges (docs/framework.md §5.12)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.suffix_sequences import SHORTEST_WINDOW, Trials, draw_trials
from pathsum.behavior.suffixes import last_attention, longer_and_shorter
from pathsum.circuits.paths import path_name
from pathsum.config import ExtractConfig
from pathsum.extraction.circuit import Edge, Edges, Roles, cut, second_copy
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Transformer
from pathsum.records.registry import intervals
from pathsum.records.suffixes import CONTROLS_OF, Condition, Cut, SuffixCutRow, SuffixMatchRow, SuffixPredictionRow
from pathsum.statistics.bootstrap import NO_INTERVAL, independent, mean_intervals, share_interval
from pathsum.statistics.rotation import random_rotation

SEQUENCES, POSITIONS = 64, 64  # intervals are then about ±0.07 of attention
COPIES = 12  # windows of repeated random tokens on which edges are ablated; no claim rests on them
CONDITIONS: Mapping[Condition, tuple[str, str]] = {  # kinds of the longer and the shorter match, keys of ``MATCHES``
    Condition.TWO_ONE: ("two", "one"),
    Condition.THREE_TWO: ("three", "two"),
    Condition.ONE: ("one", "none"),
    Condition.TWO: ("two", "none"),
    Condition.THREE: ("three", "none"),
    Condition.PREVIOUS_ONLY: ("previous only", "none"),
}
METHODS = ("resample", "mean")
ROTATIONS = 4  # controls in random directions; a single one may be unusual
CONTROLLED = {control: of for of, controls in CONTROLS_OF.items() for control in controls}
_SEED, _CHOICE = 2025, 2026  # of the sequences that judge, and of those that choose controls


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``suffix_matches``, ``suffix_predictions`` and ``suffix_cuts``."""
    pos = min(POSITIONS, trained.model.config.n_ctx, int(data.present[1:].sum()) + 1)
    found: dict[str, list[Any]] = {"suffix_matches": [], "suffix_predictions": [], "suffix_cuts": []}
    if pos < SHORTEST_WINDOW or not trained.weights.layers:
        return found
    generator = torch.Generator().manual_seed(_SEED)
    trials = draw_trials(SEQUENCES, pos, data.present, generator)
    nothing = trained.model.trace(trials.tokens).logits[:, -1].log_softmax(-1).gather(1, trials.followed())
    kept: dict[Condition, Shown] = {}
    for name, kinds in CONDITIONS.items():  # a run takes much memory; only those that are ablated are kept
        shown = Shown.of(trained.model, trials, *kinds)
        found["suffix_matches"] += _match_rows(name, shown, pos, generator)
        found["suffix_predictions"].append(_prediction_row(name, shown, nothing, generator))
        if name in (Condition.TWO_ONE, Condition.ONE):
            kept[name] = shown
        del shown
    roles = Roles.of(trained)
    if roles is not None:
        choice = draw_trials(SEQUENCES, pos, data.present, torch.Generator().manual_seed(_CHOICE))
        others = ranked_others(Shown.of(trained.model, choice, *CONDITIONS[Condition.TWO_ONE]), roles)
        found["suffix_cuts"] = _cut_rows(trained, roles, cuts(roles, others), kept, generator)
    return found


@dataclass(frozen=True)
class Shown:
    """The model's run on one condition, with the longer match first in the first half of the batch, then second."""

    clean: Run
    keys: Int[Tensor, "batch n"]  # positions of the two followers
    followed: Int[Tensor, "batch n"]  # tokens at these positions

    @staticmethod
    def of(model: Transformer, trials: Trials, longer: str, shorter: str) -> Shown:
        tokens = torch.cat([trials.matched(longer, shorter), trials.matched(shorter, longer)])
        return Shown(Run(model, tokens), trials.followers.repeat(2, 1), trials.followed().repeat(2, 1))

    def log_probs(self, run: Run) -> Float[Tensor, "batch n"]:
        """Return the log-probabilities of the two followers as the token after the last position."""
        return F.linear(run.read[:, -1], run.model.W_U, run.model.b_U).log_softmax(-1).gather(1, self.followed)

    def attention(self, run: Run, head: Place) -> Float[Tensor, "n k"]:
        """Return a head's attention to the followers of the longer and of the shorter match, over both orders."""
        return longer_and_shorter(last_attention(run.patterns[head[0]][head[1]][:, None], self.keys))[0]


def _match_rows(name: str, shown: Shown, pos: int, generator: torch.Generator) -> list[SuffixMatchRow]:
    rows = []
    for layer, pattern in enumerate(shown.clean.trace.patterns):
        longer, shorter = longer_and_shorter(last_attention(pattern, shown.keys)).unbind(-1)
        ahead, means = longer - shorter, zip(longer.mean(-1).tolist(), shorter.mean(-1).tolist(), strict=True)
        found = zip(means, mean_intervals(ahead, independent(ahead), generator), strict=True)
        for head, ((a, b), interval) in enumerate(found):
            rows.append(
                SuffixMatchRow(
                    layer=layer,
                    head=head,
                    condition=name,
                    longer=a,
                    shorter=b,
                    **intervals("", advantage=interval),
                    chance=1 / pos,
                    sequences=longer.shape[-1],
                )
            )
    return rows


def _prediction_row(
    name: str, shown: Shown, nothing: Float[Tensor, "batch n"], generator: torch.Generator
) -> SuffixPredictionRow:
    found = shown.clean.trace.logits[:, -1].log_softmax(-1).gather(1, shown.followed)
    gains = longer_and_shorter(found - nothing.repeat(2, 1))
    values = torch.stack([*gains.unbind(-1), gains[:, 0] - gains[:, 1]])
    longer, shorter, advantage = mean_intervals(values, independent(values), generator)
    first, second = (found[:, 0] > found[:, 1]).chunk(2)
    wins = torch.cat([first, ~second]).double().mean().item()
    return SuffixPredictionRow(
        condition=name,
        **intervals(longer_nats=longer, shorter_nats=shorter),
        **intervals("", advantage_nats=advantage),
        wins=wins,
        sequences=len(gains),
    )


def ranked_others(shown: Shown, roles: Roles) -> dict[str, list[Place]]:
    """Return the earlier heads outside the circuit, for "Q" and "K", those that carry most of the advantage first."""
    late = roles.induction
    others = [h for h in shown.clean.places if h[0] < late[0] and h not in (*roles.previous, *roles.two_back)]

    def advantage(edge: Edge) -> float:
        longer, shorter = shown.attention(cut(shown.clean, [edge], "resample"), late).mean(0).tolist()
        return longer - shorter

    return {kind: sorted(others, key=lambda h: advantage(Edge(kind, h, late))) for kind in "QK"}


def cuts(roles: Roles, others: Mapping[str, Sequence[Place]]) -> dict[Cut, Edges]:
    def edges(kind: str, heads: Iterable[Place]) -> Edges:
        return tuple(Edge(kind, h, roles.induction) for h in heads)

    previous, back = roles.previous, roles.two_back
    queries, keys = edges("Q", sorted({*previous, *back, *others["Q"]})), edges("K", sorted({*back, *others["K"]}))
    found = {
        Cut.NONE: (),
        Cut.QUERY_EDGE: edges("Q", previous),
        Cut.KEY_EDGE: edges("K", back),
        Cut.ALL_QUERIES: queries,
        Cut.OTHER_KEYS: keys,
        Cut.BUT_ONE_TOKEN: (*queries, *keys),
        Cut.PREVIOUS_KEYS: edges("K", previous),
        Cut.QUERY_OTHERS: edges("Q", others["Q"][: len(previous)]),
        Cut.KEY_OTHERS: edges("K", others["K"][: len(back)]),
        Cut.QUERY_RANDOM: edges("Q", previous),
        Cut.KEY_RANDOM: edges("K", back),
    }
    few = {c for of, controls in CONTROLS_OF.items() for c in controls if len(found[c]) < len(found[of])}
    return {name: some for name, some in found.items() if (some or name == Cut.NONE) and name not in few}


def _cut_rows(
    trained: TrainedModel,
    roles: Roles,
    sets: Mapping[Cut, Edges],
    shown: Mapping[Condition, Shown],
    generator: torch.Generator,
) -> list[SuffixCutRow]:
    late, copies = roles.induction, Run(trained.model, trained.repeated_tokens[:COPIES])
    rivals, single = shown[Condition.TWO_ONE], shown[Condition.ONE]
    d_model = copies.streams[0].shape[-1]
    rotations = [random_rotation(d_model, generator).to(copies.streams[0]) for _ in range(ROTATIONS)]
    uncut, rows = second_copy(copies, trained.block), []
    advantages: dict[tuple[Cut, str], Tensor] = {}
    whole: tuple[Tensor, Tensor] | None = None  # advantage and attention without ablation
    for name, edges in sets.items():
        turns: Sequence[Tensor | None] = rotations if name in (Cut.QUERY_RANDOM, Cut.KEY_RANDOM) else [None]
        for method, (i, turned) in itertools.product(METHODS if edges else ("",), enumerate(turns)):
            both, one, again = (cut(run, edges, method, turned) for run in (rivals.clean, single.clean, copies))
            advantage, gain = (
                pair[:, 0] - pair[:, 1]
                for pair in (rivals.attention(both, late), longer_and_shorter(rivals.log_probs(both)))
            )
            alone, cost = single.attention(one, late)[:, 0], second_copy(again, trained.block) - uncut
            whole = whole or (advantage, alone)  # ``Cut.NONE`` is first
            advantages[name, method] = advantage
            of_advantage, of_alone, of_gain = mean_intervals(
                torch.stack([advantage, alone, gain]), independent(gain), generator
            )
            (rise,) = mean_intervals(cost[None], independent(cost), generator)
            spared = NO_INTERVAL
            if name in CONTROLLED:
                more = advantage - advantages[CONTROLLED[name], method]
                (spared,) = mean_intervals(more[None], independent(more), generator)
            left, alone_left = (
                share_interval(part, of, independent(of), generator)
                for part, of in zip((advantage, alone), whole, strict=True)
            )
            rows.append(
                SuffixCutRow(
                    cut=name,
                    edges=" ".join(f"{kind}←{path_name((early,))}" for kind, early, _ in edges),
                    method=method,
                    rotation=None if turned is None else i,
                    layer=late[0],
                    head=late[1],
                    **intervals("", advantage=of_advantage),
                    **intervals(alone=of_alone, gain_nats=of_gain, second_copy_nats=rise),
                    **intervals(left=left, alone_left=alone_left, spared=spared),
                    sequences=len(advantage),
                    windows=len(cost),
                )
            )
    return rows
