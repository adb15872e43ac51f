"""Pack trained models and their tokenizer for the report's lab, where they run in the reader's browser.

Weights are rounded to float16. ``templates/lab/model.js`` reads them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor

from pathsum.config import ModelConfig
from pathsum.model.opened import Opened, OpenedAttention, generalised
from pathsum.model.transformer import Transformer
from pathsum.text.tokenizer import token_bytes, vocabulary

PLAIN = ("relative", "none")  # positions of a model without further parts
PASSAGES = 4  # held-out windows that the reader can pick


def runs_on_page(config: ModelConfig) -> bool:
    """Return whether the page (``model.js``) supports models with this ``config``."""
    return not config.smeared_keys


@torch.no_grad()
def export(
    text: str,
    models: Mapping[str, Transformer],
    tokenizer: Tokenizer,
    windows: Int[Tensor, "batch window"],
    earlier: Mapping[str, Transformer] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the data of the lab for one text: its name, the tokenizer, passages of it, and ``models`` with names.
    ``earlier``: checkpoints of the last model."""
    inputs = windows[:, :-1]
    made = [packed_model(name, half_precision(model), inputs) for name, model in models.items()]
    for name, model in earlier.items():
        made.append(packed_model(name, half_precision(model), inputs) | {"of": list(models)[-1]})
    return {
        "text": text,
        "tokenizer": packed_tokenizer(tokenizer),
        "passages": [tokenizer.decode(window[1:].tolist()).strip("\ufffd") for window in inputs[:PASSAGES]],
        "models": made,
    }


def half_precision(model: Transformer) -> Transformer:
    """Return a float32 copy of ``model`` with its weights rounded to float16: the model that runs on the page. A model
    that has more than relative positions and RMSNorm becomes one with constants, biases and tables of positions."""
    plain = not isinstance(model, Opened) and model.config.positions in PLAIN and model.config.norm != "layer"
    rounded = deepcopy(model if plain else generalised(model)).float()
    for tensor in (*rounded.parameters(), *(() if plain else rounded.buffers())):
        tensor.data = tensor.data.half().float()
    return rounded


def packed_model(name: str, model: Transformer, inputs: Int[Tensor, "batch pos"]) -> dict[str, Any]:
    """Return the name and sizes of ``model``, and its weights, position biases and ``mean_values`` in float16."""
    arrays = [model.W_E.mT, model.W_U]
    for layer, mean in enumerate(mean_values(model, inputs[:, : model.config.n_ctx])):
        heads = model.attention(layer)
        bias = heads.position_bias(model.config.n_ctx)
        for h in range(model.config.n_heads):
            arrays += [heads.W_Q[h], heads.W_K[h], heads.W_V[h], heads.W_O[h], bias[h], mean[h]]
    sizes = {key: getattr(model.config, key) for key in ("n_layers", "n_heads", "d_head", "d_model", "n_ctx", "norm")}
    packed = {"name": name, "d_vocab": len(model.W_U), **sizes, "numbers": halves(arrays)}
    return packed | further(model) if isinstance(model, Opened) else packed


def further(model: Opened) -> dict[str, Any]:
    """Return what an opened model has besides weights and biases by distance: eps, and in float16 what joins the
    stream, b_Q, b_K and b_V of each head, b_U, and the cosines and sines of rotary positions."""
    pos = model.n_ctx
    arrays = [model.joining[0][:pos].expand(pos, -1), *model.joining[1:]]
    for heads in cast(Sequence[OpenedAttention], model.layers):
        for b_Q, b_K, b_V in zip(heads.b_Q, heads.b_K, heads.b_V, strict=True):
            arrays += [b_Q[:pos].expand(pos, -1), b_K[:pos].expand(pos, -1), b_V]
    turns = cast(OpenedAttention, model.layers[0]) if model.layers else None
    wave = turns.cos.shape[1] if turns else 0
    arrays += [model.b_U, *((turns.cos[:pos], turns.sin[:pos]) if turns and wave else ())]
    return {"wave": wave, **model.about(), "further": halves(arrays)}


def mean_values(model: Transformer, inputs: Int[Tensor, "batch pos"]) -> list[Float[Tensor, "head pos d_head"]]:
    """Return, for each layer, the mean over windows of each head's A v (attention pattern times values), by
    position."""
    x, means = model.embed(inputs), []
    for layer in range(len(model.layers)):
        heads = model.attention(layer)
        q, k, v = heads.queries_keys_values(model.normalise(x)[0])
        mixed = heads.pattern(q, k) @ v
        x = model.joined(x + (mixed @ heads.W_O.mT).sum(1), layer + 1)
        means.append(mixed.mean(0))
    return means


def packed_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the printed tokens by id, the id of each byte, and the merges in order."""
    ids, bytes_of = tokenizer.get_vocab(), token_bytes(tokenizer)
    letters = {b: i for i, b in enumerate(bytes_of)}
    pairs = json.loads(tokenizer.to_str())["model"]["merges"]
    return {
        "words": vocabulary(tokenizer),
        "bytes": [letters[bytes([b])] for b in range(256)],
        "merges": [[ids[a], ids[b], ids[a + b]] for a, b in pairs],
    }


def halves(arrays: Iterable[Tensor]) -> npt.NDArray[np.float16]:
    """Return the numbers of ``arrays``, one array after another, in float16."""
    numbers = np.concatenate([a.detach().numpy().astype("<f2").ravel() for a in arrays])
    if not np.isfinite(numbers).all():
        raise ValueError("the lab's models have weights in float16: expected finite numbers up to 65504, got others")
    return numbers
