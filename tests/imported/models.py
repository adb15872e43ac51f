"""Random weights with TransformerLens's names, and tokens for them."""

import math
from typing import Any

import torch
from torch import Tensor

D_VOCAB, D_MODEL, D_HEAD, N_HEADS, N_CTX, BATCH, POS = 23, 13, 6, 3, 11, 2, 7
POSITIONS: list[dict[str, Any]] = [
    {"positional_embedding_type": "shortformer"},
    {"positional_embedding_type": "standard"},
    {"positional_embedding_type": "rotary"},
    {"positional_embedding_type": "rotary", "rotary_dim": 4, "rotary_adjacent_pairs": True, "rotary_base": 50},
]


def written(seed: int, n_layers: int = 2, **config: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return a random state dict with TransformerLens's names and every bias that it may have, and its
    configuration."""
    g = torch.Generator().manual_seed(seed)
    config = {"n_ctx": N_CTX, "n_layers": n_layers, "eps": 1e-3, **config}

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64) / 2

    state = {"embed.W_E": normal(D_VOCAB, D_MODEL), "unembed.W_U": normal(D_MODEL, D_VOCAB)}
    state["unembed.b_U"] = normal(D_VOCAB)
    if config["positional_embedding_type"] != "rotary":
        state["pos_embed.W_pos"] = normal(N_CTX, D_MODEL)
    for layer in range(n_layers):
        for part in "QKV":
            state[f"blocks.{layer}.attn.W_{part}"] = normal(N_HEADS, D_MODEL, D_HEAD)
            state[f"blocks.{layer}.attn.b_{part}"] = normal(N_HEADS, D_HEAD)
        state[f"blocks.{layer}.attn.W_O"] = normal(N_HEADS, D_HEAD, D_MODEL)
        state[f"blocks.{layer}.attn.b_O"] = normal(D_MODEL)
        state[f"blocks.{layer}.attn.mask"] = torch.ones(N_CTX, N_CTX, dtype=torch.bool).tril()
        state[f"blocks.{layer}.attn.IGNORE"] = torch.tensor(-math.inf)
    if config["normalization_type"] in ("LN", "RMS"):
        for name in [*(f"blocks.{layer}.ln1" for layer in range(n_layers)), "ln_final"]:
            state[f"{name}.w"] = 1 + normal(D_MODEL)
            if config["normalization_type"] == "LN":
                state[f"{name}.b"] = normal(D_MODEL)
    return state, config


def some_tokens(seed: int = 0) -> Tensor:
    return torch.randint(D_VOCAB, (BATCH, POS), generator=torch.Generator().manual_seed(seed))
