"""Synthetic corpora with known structure, and the models that are trained on them (docs/framework.md §11.1)."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from pathsum.behavior.induction import prefix_matching
from pathsum.calibration.edges import Edge, edge_effects, late_head_effects
from pathsum.calibration.stacked import train_together
from pathsum.config import HELD_OUT, TUNING, CellConfig, ExtractConfig, SyntheticModelConfig
from pathsum.extraction import behaviour, framework
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.model.transformer import Transformer
from pathsum.records.composition import CompositionRow
from pathsum.records.heads import LabelRow
from pathsum.text.bos import BOS
from pathsum.text.repeated import repeated_random
from pathsum.text.synthetic import SyntheticText, SyntheticTruth, synthetic_corpus, synthetic_text
from pathsum.text.windows import order
from pathsum.training.loop import total_steps

EVALUATED = 128  # held-out documents for each evaluation, and for the effects of edges
LEARNED = 0.35  # a rule is learned if the last loss at its places is below this share of the first loss


@dataclass(frozen=True)
class SyntheticWindows:
    """A synthetic corpus as windows of tokens: BOS and one document each. Word w is token w + 1."""

    name: str
    seed: int
    config: SyntheticModelConfig
    truth: SyntheticTruth
    train: Int[Tensor, "document window"]
    tuning: Int[Tensor, "some window"]
    held_out: Int[Tensor, "all window"]
    copied: Bool[Tensor, "all pos"]  # targets in the held-out windows that continue a copy
    ruled: Bool[Tensor, "all pos"]  # targets in the held-out windows that a rule determines

    @property
    def words(self) -> list[str]:
        return ["<bos>", *self.truth.words]

    @property
    def guess_nats(self) -> float:
        """Return the loss of sharing ``rule_probability`` evenly among the answers of lookups, in nats; ∞ without."""
        n_answers = len(self.truth.answers)
        return math.log(n_answers / self.truth.rule_probability) if n_answers else math.inf

    @property
    def rules(self) -> dict[str, Bool[Tensor, "all pos"]]:
        """Return the held-out targets by rule: "copied" for copies, "ruled" for all other rules."""
        return {name: at for name in ("copied", "ruled") if (at := getattr(self, name)).any()}


@dataclass
class Curve:
    """The evaluations of a model during training."""

    tokens_seen: list[int]
    matching: list[float]  # largest prefix matching of any head; empty without layers
    losses: dict[str, list[float]]  # mean loss at the places of each rule in ``SyntheticWindows.rules``, in nats


@dataclass(frozen=True)
class SyntheticModel:
    """A model trained on a synthetic corpus, with all that the detectors read."""

    text: SyntheticWindows
    trained: TrainedModel
    data: EvalData
    config: ExtractConfig
    curve: Curve
    edges: dict[Edge, float]  # effect of each edge on the loss at all rules' places, nats; empty if no edges or rules
    late: dict[int, float]  # effect of each second-layer head on the same loss, nats; empty where ``edges`` is

    @cached_property
    def labels(self) -> list[LabelRow]:
        return list(behaviour.tables(self.trained, self.data, self.config)["labels"])

    @cached_property
    def composition(self) -> dict[Edge, CompositionRow]:
        rows = framework.composition_rows(self.trained, self.data, self.config)
        return {(row.kind, row.early_head, row.late_head): row for row in rows}

    @property
    def learned(self) -> bool:
        """Return whether the model has learned all rules of its text, if any (docs/framework.md §11.1)."""
        most = self.text.guess_nats
        return all(series[-1] < min(LEARNED * series[0], most) for series in self.curve.losses.values())


def make_windows(name: str, config: SyntheticModelConfig, seed: int) -> SyntheticWindows:
    """Generate a synthetic corpus: rules that depend on ``name`` and ``seed``, and a text that follows them."""
    corpus = config.corpus.model_copy(update={"seed": seed_from(name, seed, "text")})
    truth = synthetic_corpus(corpus)[1]
    parts = list(synthetic_text(corpus, truth))
    text = SyntheticText(*(torch.cat([getattr(p, f) for p in parts]) for f in ("words", "copied", "ruled")))
    kept, n = HELD_OUT + TUNING, len(text.words)
    if n <= kept:
        raise ValueError(f"corpus.max_documents: expected more than the {kept} that are held out, got {n}")
    windows = pad(text.words + 1, (1, 0), value=BOS)
    train, tuning, held_out = windows.split([len(windows) - TUNING - HELD_OUT, TUNING, HELD_OUT])
    made = SyntheticWindows(
        name, seed, config, truth, train, tuning, held_out, copied=text.copied[-HELD_OUT:], ruled=text.ruled[-HELD_OUT:]
    )
    if not all(at[:EVALUATED].any() for at in made.rules.values()):
        raise ValueError(
            f"calibrate.synthetic_models.{name}: expected words that follow its rules in the first {EVALUATED} "
            f"held-out documents of seed {seed}, got none; raise repeat_share, n_skip_trigrams or words_per_document"
        )
    return made


def train_synthetic(
    name: str, rules: SyntheticModelConfig, seeds: Sequence[int], config: ExtractConfig
) -> list[SyntheticModel]:
    """Generate a synthetic corpus for each seed, train one model on each, and trace the models on held-out text."""
    texts = [make_windows(name, rules, seed) for seed in seeds]
    cells = [CellConfig(seed=seed_from(name, seed, "model"), model=rules.model, train=rules.train) for seed in seeds]
    models = [Transformer(rules.model, len(t.words), _generator(c.seed)) for t, c in zip(texts, cells, strict=True)]
    curves = [Curve([], [], {rule: [] for rule in t.rules}) for t in texts]

    def batches(step: int) -> Int[Tensor, "model batch window"]:
        return torch.stack(
            [t.train[order(c.seed, step, rules.train.batch, len(t.train))] for t, c in zip(texts, cells, strict=True)]
        )

    def on_evaluation(step: int) -> None:
        for text, model, curve in zip(texts, models, curves, strict=True):
            curve.tokens_seen.append(step * rules.train.batch * rules.model.n_ctx)
            evaluate(text, model, curve)

    train_together(models, batches, total_steps(cells[0]), rules.train, on_evaluation)
    made = zip(texts, cells, models, curves, strict=True)
    return [_traced(t, c, model.eval().requires_grad_(False), curve, config) for t, c, model, curve in made]


def _traced(
    text: SyntheticWindows, cell: CellConfig, model: Transformer, curve: Curve, config: ExtractConfig
) -> SyntheticModel:
    tokens = torch.cat([text.train, text.tuning, text.held_out])[:, 1:]
    data = EvalData(
        held_out=text.held_out,
        documents=torch.arange(len(text.held_out)),
        windows=text.held_out[: config.windows],
        tuning=text.tuning,
        unigram=torch.bincount(tokens.flatten(), minlength=len(text.words)).float(),
        bigram_counts=torch.zeros(len(text.words), len(text.words)),  # no detector needs them
        words=text.words,
        tokenizer_hash="words",
    )
    windows, places = text.held_out[:EVALUATED], (text.copied | text.ruled)[:EVALUATED]
    composes = cell.model.n_layers == 2 and bool(places.any())
    edges = edge_effects(model, windows, places) if composes else {}
    late = late_head_effects(model, windows, places) if composes else {}
    return SyntheticModel(text, trace_trained(model, cell, [], data, config), data, config, curve, edges, late)


@torch.no_grad()
def evaluate(text: SyntheticWindows, model: Transformer, curve: Curve) -> None:
    """Add to ``curve`` the loss at the targets of each rule, and the largest prefix matching of any head."""
    windows, d_vocab = text.held_out[:EVALUATED], len(text.words)
    if text.rules:
        logits = model(windows[:, :-1])
        losses = cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none").view(logits.shape[:2])
        for rule, at in text.rules.items():
            curve.losses[rule].append(losses[at[:EVALUATED]].mean().item())
    if model.config.n_layers:
        present = (torch.arange(d_vocab) != BOS).float()
        tokens, block = repeated_random(16, model.config.n_ctx, d_vocab, _generator(0), present)
        matching = [prefix_matching(pattern, block).max() for pattern in model.trace(tokens).patterns]
        curve.matching.append(torch.stack(matching).max().item())


def seed_from(*what: object) -> int:
    """Return a seed below 2⁴⁸: a hash of ``what``, such as the name of a kind of corpus, its number, and "text"."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, what)).encode()).digest()[:6], "big")


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
