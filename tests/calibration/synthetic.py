"""Small synthetic corpora, and hand-made models that take the place of trained ones, so that their circuits are
known."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pathsum.calibration import synthetic as room
from pathsum.calibration.synthetic import Curve, SyntheticModel, SyntheticWindows, make_windows, train_synthetic
from pathsum.config import UNREAD, CellConfig, ExtractConfig, ModelConfig, SyntheticModelConfig
from pathsum.core.weights import Weights
from pathsum.extraction.inputs import trace_trained
from pathsum.model.transformer import Transformer
from tests import handmade
from tests.training.small import TRAIN

N_WORDS, N_CTX, HELD_OUT = 29, 37, 61
HOW = ExtractConfig(
    held_out_windows=61,
    windows_per_document=1,
    windows=23,
    repeated_windows=5,
    exactness_windows=3,
    top_k=5,
    rotations=199,
)


def config(n_layers: int = 0, steps: int = 0, smeared_keys: bool = False, **corpus: object) -> SyntheticModelConfig:
    text = {
        "source": "synthetic", "name": "synthetic", "validation_share": 0.0, "seed": 0, "n_words": N_WORDS, "zipf": 0.0,
        "bigram_spread": 1.0, "two_back_spread": 0.0, "n_skip_trigrams": 0, "questions": False, "n_answers": 0,
        "repeat_share": 0.0,
        "words_per_document": N_CTX, "max_documents": 131,
    }  # fmt: skip
    model = {
        "n_layers": n_layers, "n_heads": 1, "d_head": 7, "d_model": 11, "embedding_std": 0.3, "n_ctx": N_CTX,
        "positions": "relative", "norm": "rms", "smeared_keys": smeared_keys,
    }  # fmt: skip
    train = {**TRAIN.model_dump(), **UNREAD["train"], "tokens": steps * TRAIN.batch * N_CTX}
    return SyntheticModelConfig.model_validate({"corpus": text | corpus, "model": model, "train": train})


def untrained(config: SyntheticModelConfig, held_out: int = HELD_OUT) -> SyntheticModel:
    """Return an untrained model whose configuration says that it is trained."""
    without = config.model_copy(update={"train": config.train.model_copy(update={"tokens": 0})})
    (synthetic,) = small_models(without, (0,), held_out)
    return replace(synthetic, text=replace(synthetic.text, config=config))


def small_models(config: SyntheticModelConfig, seeds: Sequence[int], held_out: int = HELD_OUT) -> list[SyntheticModel]:
    """Train models as ``train_synthetic`` does, with fewer held-out documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "HELD_OUT", held_out)
        return train_synthetic("small", config, seeds, HOW)


def small_windows(
    config: SyntheticModelConfig, held_out: int = HELD_OUT, seed: int = 0, name: str = "small"
) -> SyntheticWindows:
    """Generate a corpus as ``make_windows`` does, with fewer held-out documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "HELD_OUT", held_out)
        return make_windows(name, config, seed)


def stand_in(
    synthetic: SyntheticModel, weights: Weights, bias: tuple[float, ...] = (), smear: float | None = None
) -> SyntheticModel:
    """Return ``synthetic`` with its model replaced by hand-made ``weights``.

    ``bias`` is what each layer adds to the score of the previous token, in nats, and ``smear`` the logit of a key's own
    share. The model counts as having learned all rules, and every edge and every second-layer head as used.
    """
    model = transformer(weights, synthetic.text.config.model, bias, smear)
    cell = CellConfig(seed=0, model=model.config, train=synthetic.text.config.train)
    edges = {(kind, 0, 0): 9.0 for kind in "QKV"} if len(weights.layers) == 2 else {}
    trained, late = trace_trained(model, cell, [], synthetic.data, HOW), {late: 9.0 for _, _, late in edges}
    return replace(synthetic, trained=trained, curve=Curve([], [], {}), edges=edges, late=late)


def transformer(
    weights: Weights, like: ModelConfig, bias: tuple[float, ...] = (), smear: float | None = None
) -> Transformer:
    n_layers, first = len(weights.layers), weights.layers[0] if weights.layers else ()
    d_head = first[0].W_Q.shape[0] if first else 0
    shape = {"n_layers": n_layers, "n_heads": len(first), "d_head": d_head, "d_model": weights.W_E.shape[0]}
    config = ModelConfig(**{**like.model_dump(), **shape, "norm": "none", "smeared_keys": smear is not None})
    model = Transformer(config, weights.W_E.shape[1], torch.Generator().manual_seed(0))
    state: dict[str, Tensor] = {"W_E": weights.W_E, "W_U": weights.W_U}
    for layer, (heads, toward_before) in enumerate(zip(weights.layers, bias or (0.0,) * n_layers, strict=True)):
        by_distance = torch.zeros(len(heads), config.n_ctx)
        by_distance[:, 1] = toward_before
        names = ("W_Q", "W_K", "W_V", "W_O")
        matrices = {name: torch.stack([getattr(head, name) for head in heads]) for name in names}
        matrices |= {"bias": by_distance}
        matrices |= {"smear": torch.full((len(heads),), smear)} if smear is not None else {}
        state |= {f"layers.{layer}.{name}": matrix for name, matrix in matrices.items()}
    model.load_state_dict(state)
    return model.eval().requires_grad_(False)


def without_qk(weights: Weights, layer: int) -> Weights:
    """Return the same weights with uniform attention in ``layer``."""
    (head,) = weights.layers[layer]
    even = (replace(head, W_Q=0 * head.W_Q),)
    return replace(weights, layers=(*weights.layers[:layer], even, *weights.layers[layer + 1 :]))


def smeared_induction(d_vocab: int, strength: float = 30.0) -> Weights:
    """Return a one-layer model that does induction if every key is that of the previous token."""
    eye = torch.eye(d_vocab, dtype=handmade.DTYPE)
    return handmade.skip_trigram_head(strength * eye, eye)
