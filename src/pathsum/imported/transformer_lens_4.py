"""The names and settings of TransformerLens 4's own models (``boot_native``), in those of earlier versions."""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

NATIVE = "tok_embed.weight"  # in no other state dict
NAMES = {NATIVE: "embed.W_E", "pos.weight": "pos_embed.W_pos", "head.weight": "unembed.W_U"}


def earlier_names(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[Mapping[str, Tensor], Mapping[str, Any]]:
    """Return a state dict and its configuration with earlier names. ValueError for a native model without n_heads."""
    if NATIVE not in state:
        return state, config
    n_heads = config.get("n_heads")
    if not isinstance(n_heads, int) or n_heads < 1:
        raise ValueError(f"n_heads: expected the number of heads in the configuration, got {n_heads!r}")
    norm = "RMS" if str(config.get("normalization_type")).upper().startswith("RMS") else "LN"  # null is LayerNorm there
    kind = config.get("positional_embedding_type") or "standard"
    found = {_name(name): _matrix(name, tensor, n_heads) for name, tensor in state.items()}
    settings = {"normalization_type": norm, "positional_embedding_type": kind, "rotary_adjacent_pairs": True}
    if not config.get("use_attn_scale", True):  # it divides by √d_head all the same
        settings |= {"use_attn_scale": True, "attn_scale": -1}
    return found, {**config, **settings}


def _name(name: str) -> str:
    name = NAMES.get(name, re.sub(r"^layers\.", "blocks.", name))
    name = re.sub(r"^ln_out\.", "ln_final.", name)
    name = re.sub(r"(ln1|ln_final)\.(w|b)\w+$", r"\1.\2", name)
    return re.sub(r"attn\.([qkvo])\.(w|b)\w+$", lambda m: f"attn.{m[2].replace('w', 'W')}_{m[1].upper()}", name)


def _matrix(name: str, tensor: Tensor, n_heads: int) -> Tensor:
    """Return a tensor with one matrix per head, to be multiplied from the left, as in earlier versions."""
    if name == "head.weight":
        return tensor.mT
    part = re.search(r"attn\.([qkvo])\.(weight|bias)$", name)
    if part is None or part[0] == "attn.o.bias" or tensor.shape[-1 if part[1] == "o" else 0] % n_heads:
        return tensor
    if part[2] == "bias":
        return tensor.unflatten(0, (n_heads, -1))
    heads = (tensor.mT if part[1] == "o" else tensor).unflatten(0, (n_heads, -1))
    return heads if part[1] == "o" else heads.mT
