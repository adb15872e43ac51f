"""A model that trains in a second, on text with a structure to learn."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import numpy as np

from pathsum.config import CellConfig, ModelConfig, TrainConfig
from pathsum.core.storage import read_lines
from pathsum.records.evaluation import Evaluation
from pathsum.text.windows import Windows
from pathsum.training.loop import train

D_VOCAB = 19
MODEL = ModelConfig(
    n_layers=2, n_heads=2, d_head=5, d_model=10, embedding_std=0.3, n_ctx=13, positions="relative", norm="none",
    smeared_keys=False,
)  # fmt: skip
TRAIN = TrainConfig(
    tokens=13 * 5 * 24,
    repeat_weight=1.0,
    repeat_tokens=0,
    shuffled=False,
    batch=5,
    lr_attention=0.02,
    lr_embedding=0.01,
    lr_unembedding=0.01,
    lr_positions=0.03,
    lr_later_positions=0.03,
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
RUN = "run"  # name of the folder of every run that is compared with another: its files contain the name
LED = CellConfig(
    seed=3, model=MODEL, train=TRAIN.model_copy(update={"repeat_weight": 3.0, "repeat_tokens": 13 * 5 * 16})
)


def text(seed: int = 0, count: int = 3000) -> np.ndarray:
    """Return tokens of a noisy cycle 1 → 2 → … → 18 → 1."""
    noise = np.random.default_rng(seed).integers(0, 2, count)
    return (np.cumsum(1 + noise) % (D_VOCAB - 1) + 1).astype(np.uint16)


def windows(seed: int = 0, count: int = 3000) -> Windows:
    """Return windows of that text."""
    return Windows(text(seed, count), MODEL.n_ctx)


def run(folder: Path, cell: CellConfig = CELL) -> list[Evaluation]:
    """Train a model in ``folder``, and return the evaluations that training reports."""
    told: list[Evaluation] = []
    train(cell, D_VOCAB, "words", (windows(0), windows(1)), folder, told.append, "cell")
    return told


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a run."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@functools.cache
def _trained(cell: str) -> Path:
    """Return the folder of a trained run of this configuration. It is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="small-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    run(folder / RUN, CellConfig.model_validate_json(cell))
    return folder / RUN


def trained(folder: Path, cell: CellConfig = CELL) -> list[Evaluation]:
    """Copy a finished run into ``folder``, and return its evaluations. Each configuration is trained once per
    process."""
    shutil.copytree(_trained(cell.model_dump_json()), folder, dirs_exist_ok=True)
    return read_lines(folder / "log.jsonl", Evaluation)
