"""Transformers with every norm and position scheme, and tokens for them."""

import torch

from pathsum.config import ModelConfig
from pathsum.model.transformer import Transformer

BATCH, POS, VOCAB = 2, 11, 23
POSITIONS, NORMS = ("relative", "sinusoidal", "rotary", "none"), ("none", "rms", "layer")


def config(n_layers: int = 2, positions: str = "relative", norm: str = "none", smeared: bool = False) -> ModelConfig:
    return ModelConfig(
        n_layers=n_layers, n_heads=3, d_head=4, d_model=18, embedding_std=0.25, n_ctx=13, positions=positions,
        norm=norm, smeared_keys=smeared,
    )  # fmt: skip


def build(cell: ModelConfig) -> Transformer:
    """Return a float64 model in which every parameter is random, including position biases, which are initialized as
    zero."""
    generator = torch.Generator().manual_seed(5)
    model = Transformer(cell, VOCAB, generator).double()
    for p in model.parameters():
        p.data.add_(torch.randn(p.shape, generator=generator, dtype=torch.float64) * 0.3)
    return model


def sample() -> torch.Tensor:
    return torch.randint(VOCAB, (BATCH, POS), generator=torch.Generator().manual_seed(7))
