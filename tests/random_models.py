"""Random models in float64, models with hand-made heads at given places, and random tokens for them."""

from dataclasses import fields

import torch
import torch.nn.functional as F

from pathsum.config import CellConfig, ExtractConfig, ModelConfig
from pathsum.core.weights import Head, Weights
from pathsum.extraction.inputs import EvalData
from pathsum.hand_made import loaded as loaded
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from tests import handmade
from tests.training.small import TRAIN

D_VOCAB, BLOCK, BATCH = 23, 11, 5
N_CTX = 1 + 2 * BLOCK
UNSEEN = torch.tensor([3, 7, 13])  # ids that the text below does not hold
LOG = [Evaluation(step, step, 0.0, 0.0, 0.0, 0.0, [], [], [], []) for step in (0, 1)]
HOW = ExtractConfig(
    held_out_windows=11,
    windows_per_document=1,
    windows=BATCH,
    repeated_windows=31,
    exactness_windows=BATCH,
    top_k=2,
    rotations=10,
)


def config(**changes: object) -> ModelConfig:
    plain = {"n_layers": 2, "n_heads": 3, "d_head": 5, "d_model": 13, "embedding_std": 0.3, "n_ctx": N_CTX}
    return ModelConfig(**{**plain, "positions": "none", "norm": "none", "smeared_keys": False, **changes})  # type: ignore[arg-type]


def random_model(seed: int, **changes: object) -> Transformer:
    """Return a float64 model with random matrices of order 1."""
    g = torch.Generator().manual_seed(seed)
    model = Transformer(config(**changes), D_VOCAB, g).double().requires_grad_(False)
    for p in model.parameters():
        p.add_(0.3 * handmade.normal(g, *p.shape))
    return model


def evidence(seed: int = 0) -> EvalData:
    """Return windows of independent random tokens. Some tokens never occur."""
    present = torch.ones(D_VOCAB)
    present[0] = 0
    present[UNSEEN] = 0
    g = torch.Generator().manual_seed(seed)
    windows = F.pad(torch.multinomial(present.expand(11, -1), N_CTX, replacement=True, generator=g), (1, 0))
    counts = torch.ones(D_VOCAB, D_VOCAB)
    words, documents = [f"w{i}" for i in range(D_VOCAB)], torch.arange(11)
    losses = torch.rand(11, N_CTX, generator=g, dtype=torch.float64)  # of the bigram model
    return EvalData(windows, documents, windows[:BATCH], windows, present, counts, words, "words", losses)


def cell_of(model: Transformer) -> CellConfig:
    return CellConfig(seed=0, model=model.config, train=TRAIN)


def seated(previous: int, induction: int, *more: int) -> Transformer:
    """Return a model of three heads per layer with the induction pair at these places.

    ``more`` are previous-token heads that write the same as the one at ``previous``. All other heads attend uniformly
    and write nothing.
    """
    pair = handmade.induction_pair(D_VOCAB)
    silent = Head(*[0 * getattr(pair.layers[0][0], f.name) for f in fields(Head)])
    layers = tuple(
        tuple(head if h in seats else silent for h in range(3))
        for (head,), seats in zip(pair.layers, ((previous, *more), (induction,)), strict=True)
    )
    shape = {"d_head": D_VOCAB, "d_model": 2 * D_VOCAB, "positions": "relative"}
    model = loaded(random_model(5, **shape).float(), Weights(pair.W_E, pair.W_U, layers).to(torch.float32))
    for layer in model.layers:
        layer.bias.zero_()  # type: ignore[union-attr, operator]
    model.layers[0].bias[[previous, *more], 1] = 30.0  # type: ignore[index, operator]
    return model
