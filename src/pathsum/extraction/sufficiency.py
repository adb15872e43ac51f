"""Measure whether the induction circuit, or single paths into it, suffice for induction (docs/framework.md §5.10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.in_context import in_context_loss_drop
from pathsum.behavior.induction import prefix_matching
from pathsum.behavior.labels import by_window
from pathsum.circuits.paths import path_name
from pathsum.config import ExtractConfig
from pathsum.extraction.circuit import Roles
from pathsum.extraction.inputs import EvalData, TrainedModel
from pathsum.extraction.joint_ablation import induction_heads
from pathsum.interventions.run import HeadActivation, Place, Run
from pathsum.records.registry import intervals
from pathsum.records.roles import HeadRoles
from pathsum.records.sufficiency import FROZEN, HEADS, Kept, SufficiencyRow
from pathsum.statistics.bootstrap import NO_INTERVAL, Columns, independent, share_interval

WINDOWS, TEXT = 64, 64  # windows of repeated random tokens, and of text
CHUNK = 16  # windows in memory at the same time; they are resampled from each other
ON_TEXT = (Kept.MODEL, Kept.CIRCUIT, Kept.NO_PREVIOUS)
SHIFTS = {"Q": 2, "K": 1, "V": 1}  # windows back for resampling; queries and keys from one window would match
FEWEST = 3  # windows; with two, what the queries read would not be resampled
EMBEDDING = None
_SEED = 2024

Sources = tuple[Place | None, ...]  # earlier heads, and the embedding (None)


@dataclass(frozen=True)
class Trial:
    """Heads of the first layer that are kept, and for a path what the induction head reads."""

    kept: Kept
    heads: tuple[Place, ...]
    reads: Mapping[str, Sources] = field(default_factory=dict)


@torch.no_grad()
def tables(trained: TrainedModel, data: EvalData, config: ExtractConfig) -> dict[str, list[Any]]:
    """Return the record ``sufficiency``; no rows unless the induction head is past the first layer."""
    best = HeadRoles.of(trained.log)
    if best.previous is None or not best.induction or not best.induction[0] or not (roles := Roles.of(trained)):
        return {"sufficiency": []}
    generator = torch.Generator().manual_seed(_SEED)
    model, late, block = trained.model, roles.induction, trained.block
    tried = trials(roles, best.previous, [(0, head) for head in range(model.config.n_heads)])
    tokens = data.repeats(WINDOWS, model.config.n_ctx, generator)
    circuit = (late, *(h for h in induction_heads(trained.log[-1]) if h[0] and h != late))
    measured = [on_repeats(Run(model, some), circuit, tried, block) for some in _chunks(tokens)]
    matching, gains = (torch.cat(values, 1) for values in zip(*measured, strict=True))
    unseen = ~torch.isin(data.documents, data.window_documents)
    text, documents = data.held_out[unseen][:TEXT], data.documents[unseen][:TEXT]
    judged, drops = [trial for trial in tried if trial.kept in ON_TEXT], {}
    if len(text) >= FEWEST and len(documents.unique()) > 1:
        found = [on_text(Run(model, some[:, :-1]), some, circuit, judged) for some in _chunks(text)]
        beyond = torch.cat(found, 1) - data.bigram_drops[unseen][:TEXT]
        drops = {trial.kept: values for trial, values in zip(judged, beyond, strict=True)}
    rows, repeats = [], independent(matching)
    for trial, match, gained in zip_longest(tried, matching, gains):
        drop = drops.get(trial.kept)
        rows.append(
            SufficiencyRow(
                kept=trial.kept.value,
                heads=" ".join(path_name((place,)) for place in trial.heads),
                layer=late[0],
                head=late[1],
                prefix_matching=match.mean().item(),
                repeat_gain_nats=None if gained is None else gained.mean().item(),
                loss_drop_nats=None if drop is None else drop.mean().item(),
                **intervals(
                    matching_share=share_interval(match, matching[0], repeats, generator),
                    gain_share=_share(gained, gains[0], repeats, generator),
                    loss_drop_share=_share(drop, drops.get(Kept.MODEL), documents, generator),
                ),
                windows=len(tokens),
                text_windows=len(text),
            )
        )
    return {"sufficiency": rows}


def trials(roles: Roles, best: Place, first: Sequence[Place]) -> list[Trial]:
    previous, back = roles.previous, roles.two_back
    rest = tuple(h for h in first if h not in previous)
    neither = tuple(h for h in rest if h not in back)
    both = (*previous, *back)

    def path(kept: Kept, queries: tuple[Place, ...], keys: tuple[Place, ...]) -> Trial:
        return Trial(kept, tuple(dict.fromkeys((*queries, *keys))), {"Q": (EMBEDDING, *queries), "K": keys})

    return [
        Trial(Kept.MODEL, tuple(first)),
        Trial(Kept.CIRCUIT, both),
        *([Trial(Kept.NO_TWO_BACK, previous)] if back else []),
        Trial(Kept.NO_PREVIOUS, back),
        Trial(Kept.OTHERS, rest),
        path(Kept.KEY, (), (best,)),
        path(Kept.KEYS, (), previous),
        path(Kept.PREFERENCE, previous, both),
        path(Kept.NO_KEYS, previous, back),
        *([path(Kept.NEITHER, neither, neither)] if neither else []),
        path(Kept.MINIMAL, (), (best,)),
        *(path(Kept.ANOTHER, (), (head,)) for head in first if head != best),
        path(Kept.NOTHING, (), ()),
    ]


def on_repeats(
    clean: Run, late: Sequence[Place], tried: Sequence[Trial], block: int
) -> tuple[Float[Tensor, "trial batch"], Float[Tensor, "kind batch"]]:
    """Return the prefix matching of ``late[0]`` by trial, and the gain under each trial that keeps whole heads."""
    readers, patterns, gains = [Reader(clean, head) for head in late], [], []
    for trial in tried:
        if trial.kept in HEADS:
            run = keep_heads(readers, trial)
            losses = run.losses().double()
            gains.append(losses[:, :block].mean(1) - losses[:, block + 1 :].mean(1))
            patterns.append(run.patterns[late[0][0]][late[0][1]])
        else:
            patterns.append(readers[0].pattern(trial.reads["Q"], trial.reads["K"], trial.kept in FROZEN))
    matching = by_window(partial(prefix_matching, block=block), torch.stack(patterns, 1))
    return matching.double(), torch.stack(gains)


def on_text(
    clean: Run, windows: Int[Tensor, "batch window"], late: Sequence[Place], tried: Sequence[Trial]
) -> Float[Tensor, "trial batch"]:
    """Return the in-context loss drop of each window under each trial, which keeps whole heads, in nats per token."""
    readers = [Reader(clean, head) for head in late]
    losses = (keep_heads(readers, trial).losses(windows[:, 1:], slice(None)).double() for trial in tried)
    return torch.tensor([[in_context_loss_drop(row) for row in rows] for rows in losses], dtype=torch.float64)


class Reader:
    """An induction head, past the first layer, with some of what it reads resampled."""

    def __init__(self, clean: Run, late: Place) -> None:
        self.clean, self.late = clean, late
        self.heads, self.at = clean.model.attention(late[0]), slice(late[1], late[1] + 1)
        self.known: dict[tuple[str, Sources, bool], Tensor] = {}

    def projected(self, side: str, kept: Sources, frozen: bool = False) -> Float[Tensor, "batch 1 pos d_head"]:
        """Return the queries, keys or values if only ``kept`` is of this window; at the model's scale if ``frozen``."""
        key, clean, layer = (side, kept, frozen), self.clean, self.late[0]
        if key in self.known:
            return self.known[key]
        x = clean.streams[layer]
        for source in (EMBEDDING, *(place for place in clean.places if place[0] < layer)):
            if source not in kept:
                write = clean.streams[0] if source is EMBEDDING else clean.output(source)
                x = x + write.roll(SHIFTS[side], 0) - write
        read = clean.model.rescale(x, clean.trace.scales[layer]) if frozen else clean.model.normalise(x)[0]
        self.known[key] = self.heads.side(side)(read, self.at)
        return self.known[key]

    def pattern(self, queries: Sources, keys: Sources, frozen: bool = False) -> Float[Tensor, "batch query key"]:
        q, k = self.projected("Q", queries, frozen), self.projected("K", keys, frozen)
        return self.heads.pattern(q, k, self.at)[:, 0]

    def activation(self, kept: Sources) -> HeadActivation:
        pattern = self.pattern(kept, kept)
        mixed = pattern @ self.projected("V", kept)[:, 0]
        return HeadActivation(pattern, mixed @ self.heads.W_O[self.late[1]].mT, mixed)


def keep_heads(readers: Sequence[Reader], trial: Trial) -> Run:
    """Resample all heads but the induction heads (``readers``) and those of the first layer that are kept."""
    clean = readers[0].clean
    if trial.kept is Kept.MODEL:
        return clean
    writes = {p: clean.output(p) if p in trial.heads else clean.output(p).roll(SHIFTS["V"], 0) for p in clean.places}
    heads = {place: HeadActivation(clean.pattern(place), write) for place, write in writes.items()}
    return clean.replace(heads | {reader.late: reader.activation((EMBEDDING, *trial.heads)) for reader in readers})


def _chunks(windows: Int[Tensor, "batch pos"]) -> tuple[Int[Tensor, "some pos"], ...]:
    return windows.tensor_split(-(-len(windows) // CHUNK))


def _share(
    part: Tensor | None, whole: Tensor | None, documents: Int[Tensor, "batch"], generator: torch.Generator
) -> Columns:
    return NO_INTERVAL if part is None or whole is None else share_interval(part, whole, documents, generator)
