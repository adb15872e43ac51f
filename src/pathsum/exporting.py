"""Write a model for other libraries: plain weights with a module that needs only torch, or TransformerLens's names."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from pathsum import reference
from pathsum.api import TOKENIZER, WEIGHTS, Model
from pathsum.core.storage import write_whole
from pathsum.model.opened import EPS, Opened, generalised, only
from pathsum.model.positions import Relative, Sinusoidal
from pathsum.model.transformer import Transformer

NORMS = {"none": None, "rms": "RMSPre", "layer": "LNPre"}


def export(model: Model, folder: str | Path, to: str = "torch") -> Path:
    """Write ``model.safetensors``, ``config.json`` and ``tokenizer.json`` to ``folder``, and return it. ``load`` reads
    both forms again.

    ``torch``: the tensors of ``reference.py``, which is written beside them: a module that needs only torch, with
    patterns and head outputs as modules for hooks. ``transformer_lens``: its names and configuration; the relative
    position biases of this project are further tensors (``blocks.0.attn.score_bias``, head × distance, in nats), to be
    added to ``hook_attn_scores`` (docs/your-weights.md). Files of an earlier export are replaced. Logits are equal up
    to rounding. ValueError for smeared keys, for weights of another library in its own names, and for a tokenizer whose
    ids have gaps."""
    if to not in (known := ("torch", "transformer_lens")):
        raise ValueError(f"expected to={' or to='.join(map(repr, known))}, got {to!r}")
    folder, net = Path(folder).expanduser(), _as_tokenized(model)
    if any(net.attention(layer).smear is not None for layer in range(len(net.layers))):
        raise ValueError(f"{model.name}: expected a model whose heads other libraries have, got smeared keys")
    if to == "torch":
        whole = generalised(net)
        state = dict(whole.state_dict())
        about = {"model": whole.about(), "n_ctx": net.n_ctx, "positions": whole.config.positions}
    else:
        state, about = to_transformer_lens(net)
    folder.mkdir(parents=True, exist_ok=True)
    plain = {name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in state.items()}
    write_whole(folder / WEIGHTS, save(plain))
    (folder / "config.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    model.codec.tokenizer.save(str(folder / TOKENIZER))
    if to == "torch":
        shutil.copyfile(reference.__file__, folder / "reference.py")
    return folder


def _as_tokenized(model: Model) -> Transformer:
    """Return the model with the ids of its tokenizer."""
    numbers = model.codec.numbers
    if numbers is None:
        return model.net
    if sorted(numbers) != [*range(len(numbers))]:
        raise ValueError(f"{model.name}: expected a tokenizer with the ids 0 to {len(numbers) - 1}, got one with gaps")
    return only(model.net, torch.tensor([numbers[i] for i in range(len(numbers))]))


def to_transformer_lens(net: Transformer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state dict and the configuration of a model of this project, with TransformerLens's names."""
    if isinstance(net, Opened):
        raise ValueError('expected a model of this project, got weights of another library; export to="torch"')
    kinds = {"sinusoidal": "shortformer", "rotary": "rotary"}
    config = {
        "n_layers": net.config.n_layers, "n_heads": net.config.n_heads, "d_head": net.config.d_head,
        "d_model": net.config.d_model, "d_vocab": len(net.W_U), "n_ctx": net.n_ctx, "attn_only": True,
        "normalization_type": NORMS[net.config.norm], "eps": net.eps or EPS,
        "positional_embedding_type": kinds.get(net.config.positions, "standard"),
    }  # fmt: skip
    state = {"embed.W_E": net.W_E.mT, "unembed.W_U": net.W_U.mT, "unembed.b_U": net.W_U.new_zeros(len(net.W_U))}
    if config["positional_embedding_type"] != "rotary":
        state["pos_embed.W_pos"] = net.W_E.new_zeros(net.n_ctx, len(net.W_E))
    for layer in range(len(net.layers)):
        at, heads = f"blocks.{layer}.attn", net.attention(layer)
        for part in "QKVO":
            W = getattr(heads, f"W_{part}")
            state[f"{at}.W_{part}"] = W.mT
            state[f"{at}.b_{part}"] = W.new_zeros(W.shape[1:2] if part == "O" else W.shape[:2])
        if isinstance(heads, Sinusoidal):
            state["pos_embed.W_pos"] = heads.position_vectors(net.n_ctx)[0]
        if isinstance(heads, Relative):
            state[f"{at}.score_bias"] = heads.bias
    return state, config
