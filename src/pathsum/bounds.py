"""The bounds of every number in the configuration, checked whenever a configuration is loaded.

A bound excludes what cannot be meant, such as a learning rate of 1e9 or a batch of 1e12. It does not say what is
sensible: ``conf/`` gives the reason for each value. Both ends are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """The smallest and the largest value that a key may have, and its unit."""

    least: int | float
    most: int | float
    unit: str = ""

    def check(self, value: Any) -> None:
        """Raise ValueError unless ``value`` is a number within the bound, or a list or tuple of such numbers.

        NaN is outside every bound. True, False and text do not count as numbers.
        """
        if not all(map(self.holds, value if isinstance(value, tuple | list) else (value,))):
            raise ValueError(f"expected {self}")

    def holds(self, number: Any) -> bool:
        """Return whether ``number`` is a number within the bound, ends included. NaN, True, False and text are not."""
        return not isinstance(number, bool) and isinstance(number, int | float) and self.least <= number <= self.most

    def __str__(self) -> str:
        least, most = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in (self.least, self.most))
        return f"a number from {least} to {most} {self.unit}".rstrip()


SEED = Bound(0, 2**56 - 1)  # seven bytes; the seeds that calibration derives have six
SHARE = Bound(0, 1)
RATE = Bound(1e-9, 100, "per step")
SPREAD = Bound(0, 20, "nats")  # with a larger spread some words would never occur
LAYERS, HEADS, WIDTH = Bound(0, 64, "layers"), Bound(0, 1024, "heads"), Bound(0, 4096, "dimensions")
DOCUMENTS = Bound(1, 10**10, "documents")
ROTATIONS = Bound(10, 10**6, "rotations")  # with fewer, no q-value is below 0.1, and no edge composes

CORPUS = {"validation_share": Bound(1e-6, 0.999), "max_documents": DOCUMENTS}

BOUNDS: Mapping[str, Mapping[str, Bound]] = {  # by class or base class, then by key
    "Corpus": CORPUS,
    "SyntheticCorpus": {
        "validation_share": SHARE,  # 0 in the calibration, which holds out documents of its own
        "seed": SEED,
        "n_words": Bound(1, 10**4, "words"),
        "zipf": SPREAD,
        "bigram_spread": SPREAD,
        "two_back_spread": SPREAD,
        "n_skip_trigrams": Bound(0, 10**4, "skip-trigrams"),
        "n_answers": Bound(0, 10**3, "answers"),
        "repeat_share": SHARE,
        "words_per_document": Bound(1, 10**5, "words"),
    },
    "TokenizerConfig": {
        "d_vocab": Bound(258, 10**6, "tokens"),  # at least 256 bytes, BOS and one merge
        "train_bytes": Bound(1, 10**11, "bytes"),
    },
    "ModelConfig": {
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "d_head": WIDTH,
        "d_model": Bound(2, 65_536, "dimensions"),
        "embedding_std": Bound(1e-6, 1000),
        "n_ctx": Bound(8, 65_536, "tokens"),
    },
    "TrainConfig": {
        "tokens": Bound(0, 10**13, "tokens"),
        "repeat_weight": Bound(1, 1000),
        "repeat_tokens": Bound(0, 10**13, "tokens"),
        "batch": Bound(1, 65_536, "windows"),
        "lr_attention": RATE,
        "lr_embedding": RATE,
        "lr_unembedding": RATE,
        "lr_positions": RATE,
        "lr_later_positions": RATE,
        "momentum": Bound(0, 0.99999),
        "betas": Bound(0, 0.99999),
        "decay_attention": Bound(0, 100),
        "decay_embedding": Bound(0, 100),
        "warmup_steps": Bound(0, 10**7, "steps"),
        "decay_share": SHARE,
        "n_log_evals": Bound(1, 10**4, "evaluations"),
        "n_linear_evals": Bound(1, 10**4, "evaluations"),
        "eval_windows": Bound(1, 10**6, "windows"),
        "resume_every_seconds": Bound(0, 86_400, "seconds"),
    },
    "CellConfig": {"seed": SEED},
    "ExtractConfig": {
        "held_out_windows": Bound(4, 10**6, "windows"),
        "windows_per_document": Bound(1, 10**6, "windows"),
        "windows": Bound(4, 10**6, "windows"),
        "repeated_windows": Bound(3, 10**5, "windows"),  # queries and keys are resampled from two other windows
        "exactness_windows": Bound(1, 10**4, "windows"),
        "top_k": Bound(1, 256, "entries"),
        "rotations": ROTATIONS,
    },
    "CalibrateConfig": {"seeds": SEED, "tuning_seeds": SEED, "rotations": ROTATIONS},
    "SweepConfig": {
        "n_layers": LAYERS,
        "n_heads": Bound(1, HEADS.most, HEADS.unit),
        "d_head": Bound(1, WIDTH.most, WIDTH.unit),
        "seeds": SEED,
    },
    "Protocol": {"tuning_seeds": SEED},
    "ReferenceRun": {"minutes": Bound(1, 10**6, "minutes")},
}
MOST_WEIGHTS = 10**10  # in the attention heads of one model
MOST_TOKENS_PER_STEP = 2**24  # train.batch · model.n_ctx
