"""Small worlds, and models that stand in them without having grown up there: their circuits are known exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pathsum.calibration import world as room
from pathsum.calibration.world import Grown, World, grow, make_world
from pathsum.circuits.weights import Weights
from pathsum.config import CellConfig, ExtractConfig, ModelConfig, WorldConfig
from pathsum.evaluation import Evaluation
from pathsum.extraction.evidence import examine
from pathsum.model.transformer import Transformer
from tests import handmade
from tests.training.small import TRAIN

N_WORDS, N_CTX, HELD_OUT, TUNING = 29, 37, 61, 19
HOW = ExtractConfig(
    held_out_windows=512,
    windows_per_document=1,
    windows=23,
    repeated_windows=5,
    certificate_windows=3,
    top_k=5,
    rotations=199,
)


def config(n_layers: int = 0, tokens: int = 0, smeared_keys: bool = False, **corpus: object) -> WorldConfig:
    text = {
        "source": "planted", "name": "p", "validation_share": 0.0, "seed": 3, "n_words": N_WORDS, "zipf": 0.0,
        "bigram_spread": 1.0, "two_back_spread": 0.0, "n_skip_trigrams": 0, "questions": False, "n_answers": 0,
        "repeat_share": 0.0,
        "words_per_document": N_CTX, "max_documents": 131,
    }  # fmt: skip
    model = {
        "n_layers": n_layers, "n_heads": 1, "d_head": 7, "d_model": 11, "n_ctx": N_CTX, "positions": "relative",
        "norm": "none", "smeared_keys": smeared_keys, "embedding_std": 0.3,
    }  # fmt: skip
    train = {**TRAIN.model_dump(), "tokens": tokens, "resume_every_seconds": 60.0}
    return WorldConfig.model_validate({"corpus": text | corpus, "model": model, "train": train})


def small_world(config: WorldConfig, held_out: int = HELD_OUT) -> World:
    """As ``make_world``, with fewer documents held out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "HELD_OUT", held_out)
        patch.setattr(room, "TUNING", TUNING)
        return make_world("small", config)


def untrained(config: WorldConfig, folder: Path, held_out: int = HELD_OUT) -> Grown:
    """What ``grow`` makes of no tokens at all, in a world that says it trains."""
    without = config.model_copy(update={"train": config.train.model_copy(update={"tokens": 0})})
    grown = grow(small_world(without, held_out), 0, HOW, folder)
    return replace(grown, world=replace(grown.world, config=config))


def stand_in(grown: Grown, weights: Weights, bias: tuple[float, ...] = (), smear: float | None = None) -> Grown:
    """``weights`` in the place of the grown model; ``bias`` is what each layer adds to the score of the token before,
    in nats, and ``smear`` the logit of a key's own share. It is said to have learnt all and to rely on every edge."""
    model = transformer(weights, grown.world.config.model, bias, smear)
    cell = CellConfig(seed=0, model=model.config, train=grown.world.config.train)
    return replace(
        grown, subject=examine(model, cell, [], grown.seen, HOW), losses={}, edge_costs=dict.fromkeys("QKV", 9.0)
    )


def transformer(weights: Weights, like: ModelConfig, bias: tuple[float, ...], smear: float | None) -> Transformer:
    n_layers, d_head = len(weights.layers), weights.layers[0][0].W_Q.shape[0] if weights.layers else 0
    shape = {"n_layers": n_layers, "n_heads": 1, "d_head": d_head, "d_model": weights.W_E.shape[0]}
    config = ModelConfig(**{**like.model_dump(), **shape, "smeared_keys": smear is not None})
    model = Transformer(config, weights.W_E.shape[1], torch.Generator().manual_seed(0))
    state: dict[str, Tensor] = {"W_E": weights.W_E, "W_U": weights.W_U}
    for layer, ((head,), toward_before) in enumerate(zip(weights.layers, bias or (0.0,) * n_layers, strict=True)):
        by_distance = torch.zeros(1, config.n_ctx)
        by_distance[0, 1] = toward_before
        matrices = {name: getattr(head, name)[None] for name in ("W_Q", "W_K", "W_V", "W_O")} | {"bias": by_distance}
        matrices |= {"smear": torch.tensor([smear])} if smear is not None else {}
        state |= {f"layers.{layer}.{name}": matrix for name, matrix in matrices.items()}
    model.load_state_dict(state)
    return model.eval().requires_grad_(False)


def without_qk(weights: Weights, layer: int) -> Weights:
    """The same, with a head that attends evenly in ``layer``."""
    (head,) = weights.layers[layer]
    even = (replace(head, W_Q=0 * head.W_Q),)
    return replace(weights, layers=(*weights.layers[:layer], even, *weights.layers[layer + 1 :]))


def turned(weights: Weights, seed: int) -> Weights:
    """The same model in another basis of its residual stream, as another seed has it."""
    generator = torch.Generator().manual_seed(seed)
    R = torch.linalg.qr(handmade.normal(generator, *2 * [weights.W_E.shape[0]])).Q
    layers = tuple(
        tuple(replace(h, W_Q=h.W_Q @ R.mT, W_K=h.W_K @ R.mT, W_V=h.W_V @ R.mT, W_O=R @ h.W_O) for h in layer)
        for layer in weights.layers
    )
    return Weights(R @ weights.W_E, weights.W_U @ R.mT, layers)


def smeared_induction(d_vocab: int, strength: float = 30.0) -> Weights:
    """One layer that does induction where each key is that of the token before."""
    eye = torch.eye(d_vocab, dtype=handmade.DTYPE)
    return handmade.skip_trigram_head(strength * eye, eye)


def log(tokens: list[int], matching: list[float]) -> list[Evaluation]:
    """Evaluations of a two-layer model whose later head matches prefixes so well."""
    return [
        Evaluation(
            step=seen, tokens_seen=seen, val_loss_nats=math.nan, in_context_loss_drop_nats=math.nan,
            repeat_first_loss_nats=math.nan, repeat_second_loss_nats=math.nan, prefix_matching=[[0.0], [score]],
            previous_token=[[0.0], [0.0]], copying=[[0.0], [0.0]], loss_by_position_nats=[],
        )
        for seen, score in zip(tokens, matching, strict=True)
    ]  # fmt: skip
