"""Measure whether induction heads match more tokens than the current one, and through which edges.

In sequences of random tokens, matches of one, two and three tokens compete. The induction head and the previous-token
heads are those of training's last evaluation, and the heads that attend two tokens back are chosen on text. See
docs/framework.md §5.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behaviour.suffix_sequences import SHORTEST_WINDOW, Trials, draw_trials
from pathsum.behaviour.suffixes import last_attention, longer_and_shorter
from pathsum.circuits.paths import path_name
from pathsum.config import ExtractConfig
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.roles import Roles
from pathsum.interventions.run import Place, Run
from pathsum.model.transformer import Transformer
from pathsum.records.suffixes import SuffixCutRow, SuffixMatchRow, SuffixPredictionRow
from pathsum.statistics.bootstrap import NO_INTERVAL, Columns, independent, mean_intervals, ratio_interval

SEQUENCES, POSITIONS = 64, 64  # intervals are then about ±0.07 of attention
COPIES = 12  # windows of repeated random tokens on which edges are ablated
CONDITIONS = {  # kinds of the longer and the shorter match, keys of ``MATCHES``
    "two against one": ("two", "one"),
    "three against two": ("three", "two"),
    "one alone": ("one", "none"),
    "two alone": ("two", "none"),
    "three alone": ("three", "none"),
    "previous only": ("previous only", "none"),
}
RIVALS, ALONE = "two against one", "one alone"
METHODS = ("resample", "mean")
SHIFTS = {"Q": 1, "K": 2}  # windows back for resampling; queries and keys from one window would match
_SEED = 2025

Edges = tuple[tuple[str, Place], ...]


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the records ``suffix_matches``, ``suffix_predictions`` and ``suffix_cuts``.

    No rows without heads, or if sequences would be shorter than ``SHORTEST_WINDOW`` (12) positions. ``suffix_cuts``
    also needs a second layer and an evaluation log."""
    pos = min(POSITIONS, trained.model.config.n_ctx, int(data.present[1:].sum()) + 1)
    found: dict[str, list[Any]] = {"suffix_matches": [], "suffix_predictions": [], "suffix_cuts": []}
    if pos < SHORTEST_WINDOW or not trained.weights.layers:
        return found
    generator = torch.Generator().manual_seed(_SEED)
    trials = draw_trials(SEQUENCES, pos, data.present, generator)
    nothing = trained.model.trace(trials.tokens).logits[:, -1].log_softmax(-1).gather(1, trials.followed())
    kept = {}
    for name, kinds in CONDITIONS.items():  # a run takes much memory; only those that are ablated are kept
        shown = Shown.of(trained.model, trials, *kinds)
        found["suffix_matches"] += _match_rows(name, shown, pos, generator)
        found["suffix_predictions"].append(_prediction_row(name, shown, nothing, generator))
        if name in (RIVALS, ALONE):
            kept[name] = shown
        del shown
    roles = Roles.of(trained)
    if roles is not None:
        found["suffix_cuts"] = _cut_rows(trained, roles, kept, generator)
    return found


@dataclass(frozen=True)
class Shown:
    """The model's run on the windows of one condition. The longer match comes before the shorter one in the first half
    of the batch, and after it in the second half."""

    clean: Run
    keys: Int[Tensor, "batch n"]  # positions of the two followers
    followed: Int[Tensor, "batch n"]  # tokens at these positions

    @staticmethod
    def of(model: Transformer, trials: Trials, longer: str, shorter: str) -> Shown:
        """Run ``model`` on the windows of one condition, in both orders of the two matches. ``longer`` and ``shorter``
        are their kinds, as in ``Trials.matched``."""
        tokens = torch.cat([trials.matched(longer, shorter), trials.matched(shorter, longer)])
        return Shown(Run(model, tokens), trials.followers.repeat(2, 1), trials.followed().repeat(2, 1))

    def log_probs(self, run: Run) -> Float[Tensor, "batch n"]:
        """Return the log-probabilities, in nats, of the two followers as the token after the last position. Columns are
        the first and the second occurrence; ``longer_and_shorter`` orders them by match."""
        return F.linear(run.read[:, -1], run.model.W_U).log_softmax(-1).gather(1, self.followed)

    def attention(self, run: Run, head: Place) -> Float[Tensor, "n k"]:
        """Return a replaced head's attention to the followers of the longer and of the shorter match, averaged over
        both orders. KeyError if ``run`` does not replace ``head``."""
        return longer_and_shorter(last_attention(run.replaced[head].pattern[:, None], self.keys))[0]


def _match_rows(name: str, shown: Shown, pos: int, generator: torch.Generator) -> list[SuffixMatchRow]:
    rows = []
    for layer, pattern in enumerate(shown.clean.trace.patterns):
        longer, shorter = longer_and_shorter(last_attention(pattern, shown.keys)).unbind(-1)
        ahead = longer - shorter
        known = mean_intervals(ahead, independent(ahead), generator)
        for head, (a, b, i) in enumerate(zip(longer.mean(-1).tolist(), shorter.mean(-1).tolist(), known, strict=True)):
            rows.append(SuffixMatchRow(layer, head, name, a, b, *i, 1 / pos, longer.shape[-1]))
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
    return SuffixPredictionRow(name, *longer, *shorter, *advantage, wins, len(gains))


# ---- ablation of edges ----------------------------------------------------------------------------------------------


def cuts(roles: Roles, heads: list[Place]) -> dict[str, Edges]:
    """Return the sets of edges into the induction head that are ablated, by name.

    ``heads`` are all heads of earlier layers. Sets without edges are left out, except "none"."""
    queries = tuple(("Q", h) for h in heads)
    keys = tuple(("K", h) for h in heads if h not in roles.previous)
    others = [h for h in heads if h not in (*roles.previous, *roles.two_back)]
    found: dict[str, Edges] = {
        "none": (),
        "previous token → queries": tuple(("Q", h) for h in roles.previous),
        "two back → keys": tuple(("K", h) for h in roles.two_back),
        "all → queries": queries,
        "all but previous token → keys": keys,
        "all but current × previous": (*queries, *keys),
        "previous token → keys": tuple(("K", h) for h in roles.previous),
        "control: other heads → queries and keys": tuple((reader, h) for h in others for reader in "QK"),
    }
    return {name: edges for name, edges in found.items() if edges or name == "none"}


def _cut_rows(
    trained: TrainedModel, roles: Roles, shown: Mapping[str, Shown], generator: torch.Generator
) -> list[SuffixCutRow]:
    block, tokens, late = trained.block, trained.repeated_tokens[:COPIES], roles.induction
    copies, scored_at = Run(trained.model, tokens), slice(block + 1, 2 * block)
    heads = [place for place in copies.places if place[0] < late[0]]

    def second_copy(run: Run) -> Float[Tensor, "batch"]:
        return F.cross_entropy(run.logits(scored_at).mT, tokens[:, block + 2 :], reduction="none").mean(-1)

    uncut, rows, whole = second_copy(copies), [], torch.empty(0)
    for name, edges in cuts(roles, heads).items():
        for method in METHODS if edges else ("",):
            both, alone = (_ablated(shown[c].clean, late, edges, method) for c in (RIVALS, ALONE))
            rivals, single = shown[RIVALS].attention(both, late), shown[ALONE].attention(alone, late)
            gains = longer_and_shorter(shown[RIVALS].log_probs(both))
            values = torch.stack([rivals[:, 0] - rivals[:, 1], single[:, 0], gains[:, 0] - gains[:, 1]])
            whole = values[:2] if not edges else whole  # "none" is first
            cost = second_copy(_ablated(copies, late, edges, method)) - uncut
            a, b, c = mean_intervals(values, independent(gains[:, 0]), generator)
            (d,) = mean_intervals(cost[None], independent(cost), generator)
            left, alone_left = (_share(part, of, generator) for part, of in zip(values, whole, strict=False))
            named = " ".join(f"{reader}←{path_name((h,))}" for reader, h in edges)
            sizes = (len(gains), len(tokens))
            rows.append(SuffixCutRow(name, named, method, *late, *a, *b, *c, *d, *sizes, *left, *alone_left))
    return rows


def _ablated(clean: Run, late: Place, edges: Edges, method: str) -> Run:
    """Replace the writes on ``edges`` into the induction head by those of another window, or by their mean over
    windows at each position."""
    writes = {
        (side, early): clean.output(early).roll(SHIFTS[side], 0) if method == "resample" else clean.mean_output(early)
        for side, early in edges
    }
    return clean.patch_edges(late, writes)


def _share(part: Float[Tensor, "batch"], whole: Float[Tensor, "batch"], generator: torch.Generator) -> Columns:
    """Return ``part`` as a share of ``whole``, paired by sequence, with its interval; ``NO_INTERVAL`` unless the
    interval of ``whole`` lies above 0."""
    (interval,) = mean_intervals(whole[None], independent(whole), generator)
    return ratio_interval(part, whole, independent(whole), generator) if interval.low > 0 else NO_INTERVAL
