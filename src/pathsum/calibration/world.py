"""A planted world: text made by known rules, and a model trained on it that has one head a layer.

One head a layer, because then it is known which head must do what, and through which edge, if the rule is learnt at
all: nothing else is there to do it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from pathsum.calibration.edges import composed, edge_costs
from pathsum.config import CellConfig, ExtractConfig, WorldConfig
from pathsum.data.planted import PlantedText, PlantedTruth, planted, planted_text
from pathsum.data.windows import Windows
from pathsum.evaluation import Evaluation
from pathsum.extraction import behaviour
from pathsum.extraction.evidence import Evidence, Subject, examine
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records import LabelRow
from pathsum.storage import read_lines
from pathsum.training.loop import total_steps, train
from pathsum.training.store import fingerprint, finished, locked

HELD_OUT = 512  # documents to judge by, each of them a window
TUNING = 64  # documents for training's evaluations
LEARNT = 0.5  # of the first loss at a rule's places: a model that keeps more has not learnt the rule


@dataclass(frozen=True)
class World:
    """Text whose words are tokens: word w is token w + 1, after BOS."""

    name: str
    config: WorldConfig
    truth: PlantedTruth
    tokens: Int[Tensor, "document word"]
    train: Windows
    tuning: Windows
    held_out: Windows
    copied: Bool[Tensor, "all pos"]  # targets of the held-out windows that continue a copy
    ruled: Bool[Tensor, "all pos"]  # and those that a rule gave

    @property
    def words(self) -> list[str]:
        """By token."""
        return ["<bos>", *self.truth.words]

    @cached_property
    def origin(self) -> str:
        """The text's hash, which stands for a tokenizer's too."""
        return hashlib.sha256(self.tokens.numpy().tobytes()).hexdigest()

    @property
    def guess_nats(self) -> float:
        """What one loses who knows which answers lookups have, and not which of them comes."""
        n_answers = len(self.truth.answers)
        return math.log(n_answers / self.truth.rule_probability) if n_answers else math.inf

    def cell(self, seed: int) -> CellConfig:
        return CellConfig(seed=seed, model=self.config.model, train=self.config.train)


@dataclass(frozen=True)
class Grown:
    """A model that has grown up in a world, with all that the detectors look at."""

    world: World
    subject: Subject
    seen: Evidence
    how: ExtractConfig
    losses: dict[str, list[float]]  # nats at the places of each rule ("copied", "ruled") by evaluation
    edge_costs: dict[str, float]  # nats at those places that the loss rises by without each edge (Q, K, V)

    @cached_property
    def labels(self) -> list[LabelRow]:
        """What the behaviour of its heads says they are."""
        return list(behaviour.tables(self.subject, self.seen, self.how)["labels"])

    @cached_property
    def composed(self) -> set[str]:
        """Kinds of its edges that composition scores put above chance."""
        return composed(self.subject.weights, self.how)

    @property
    def learnt(self) -> bool:
        return all(series[-1] < min(LEARNT * series[0], self.world.guess_nats) for series in self.losses.values())


def make_world(name: str, config: WorldConfig) -> World:
    """Write the text. Costs some seconds a million words."""
    truth = planted(config.corpus)[1]
    parts = list(planted_text(config.corpus, truth))
    text = PlantedText(*(torch.cat([getattr(p, f) for p in parts]) for f in ("words", "copied", "ruled")))
    tokens, n_ctx = text.words + 1, config.model.n_ctx
    return World(
        name=name,
        config=config,
        truth=truth,
        tokens=tokens,
        train=Windows(tokens[: -HELD_OUT - TUNING].numpy().flatten(), n_ctx),  # numpy copies: a tensor that is sent to
        tuning=Windows(tokens[-HELD_OUT - TUNING : -HELD_OUT].numpy().flatten(), n_ctx),  # another process moves, and
        held_out=Windows(tokens[-HELD_OUT:].numpy().flatten(), n_ctx),  # a view of it would dangle
        copied=text.copied[-HELD_OUT:],
        ruled=text.ruled[-HELD_OUT:],
    )


def raise_model(world: World, seed: int, runs: Path) -> Path:
    """Train the world's model of ``seed``, unless the run store has it; its folder."""
    cell = world.cell(seed)
    run = runs / fingerprint(cell, world.origin)
    with locked(run, wait=True):
        if not finished(run, total_steps(cell)):
            both = (world.train, world.tuning)
            train(cell, len(world.words), world.origin, both, run, lambda _: None, f"{world.name} {seed}")
    return run


def grow(world: World, seed: int, how: ExtractConfig, runs: Path) -> Grown:
    """Raise the world's model, and show it the world's held-out text."""
    run, cell, words, origin = raise_model(world, seed, runs), world.cell(seed), world.words, world.origin
    seen = Evidence(
        held_out=world.held_out.batch(torch.arange(len(world.held_out))),
        documents=torch.arange(len(world.held_out)),
        windows=world.held_out.batch(torch.arange(how.windows)),
        tuning=world.tuning.batch(world.tuning.spread(how.windows)),
        unigram=torch.bincount(world.tokens.flatten(), minlength=len(words)).float(),
        bigram_counts=torch.zeros(len(words), len(words)),  # the truth is known: nothing is held against counts
        words=words,
        tokenizer_hash=origin,
    )
    log = read_lines(run / "log.jsonl", Evaluation)
    checkpoints = sorted((run / "checkpoints").iterdir())
    subject = examine(load_checkpoint(checkpoints[-1], origin), cell, log, seen, how)
    places = world.copied | world.ruled
    costs = edge_costs(subject.model, seen, places) if cell.model.n_layers == 2 and places.any() else {}
    return Grown(world, subject, seen, how, _losses(world, checkpoints, seen), costs)


@torch.no_grad()
def _losses(world: World, checkpoints: list[Path], seen: Evidence) -> dict[str, list[float]]:
    places = {name: at for name in ("copied", "ruled") if (at := getattr(world, name)).any()}
    series: dict[str, list[float]] = {name: [] for name in places}
    for path in checkpoints:
        losses = _token_losses(load_checkpoint(path, seen.tokenizer_hash)(seen.held_out[:, :-1]), seen.held_out)
        for name, at in places.items():
            series[name].append(losses[at].mean().item())
    return series


def _token_losses(
    logits: Float[Tensor, "batch pos vocab"], windows: Int[Tensor, "batch window"]
) -> Float[Tensor, "batch pos"]:
    return cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none").view(logits.shape[:2])
