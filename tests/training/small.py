"""A cell small enough to train in a second, on text with something to learn."""

from __future__ import annotations

import numpy as np

from pathsum.config import CellConfig, ModelConfig, TrainConfig
from pathsum.data.windows import Windows

D_VOCAB = 19
MODEL = ModelConfig(
    n_layers=2, n_heads=2, d_head=5, d_model=10, embedding_std=0.3, n_ctx=13, positions="relative", norm="none",
    smeared_keys=False,
)  # fmt: skip
TRAIN = TrainConfig(
    tokens=13 * 5 * 24,
    curriculum_tokens=0,
    curriculum_share=0.3,
    shuffled=False,
    batch=5,
    lr_attention=0.02,
    lr_embedding=0.01,
    lr_unembedding=0.01,
    lr_positions=0.03,
    optimizer="muon",
    momentum=0.95,
    betas=(0.9, 0.95),
    decay_attention=0.0,
    decay_embedding=0.0,
    warmup_steps=3,
    decay_share=0.4,
    device="cpu",
    autocast=True,
    n_log_evals=2,
    n_linear_evals=4,
    eval_windows=7,
    resume_every_seconds=1e-9,
)
CELL = CellConfig(seed=3, model=MODEL, train=TRAIN)
LESSONS = 9  # steps
TAUGHT = CellConfig(
    seed=3, model=MODEL, train=TRAIN.model_copy(update={"curriculum_tokens": 13 * 5 * (LESSONS - 1) + 1})
)


def windows(seed: int = 0, count: int = 3000) -> Windows:
    """Tokens of a noisy cycle 1 → 2 → … → 18 → 1."""
    noise = np.random.default_rng(seed).integers(0, 2, count)
    return Windows((np.cumsum(1 + noise) % (D_VOCAB - 1) + 1).astype(np.uint16), MODEL.n_ctx)
