"""Build models from weights with TransformerLens's names, with norms folded in.

The configuration states norm, positions, n_ctx, and every setting that differs from TransformerLens's default.
TransformerLens multiplies rows by matrices on their right, so all matrices are transposed here. The gain of a norm is
folded into the matrices that follow it, and then the centering (docs/framework.md §1.4). Rows of a pattern sum to 1, so
W_O b_V is a constant that is added to b_O.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pathsum.circuits.folding import fold_gains
from pathsum.core.weights import Head, Weights
from pathsum.imported.refusals import NORMS, n_layers_of, refuse
from pathsum.imported.transformer_lens_4 import earlier_names
from pathsum.model.opened import Constants, Opened, Rotation

ROUNDING = 0.02  # of a stored cosine: half of bfloat16's 2^-7, and that of angles up to 65,536 in float32


def from_transformer_lens(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> Opened:
    """Return the model of a state dict and its configuration, folded in float64."""
    state, config = earlier_names(state, config)
    refuse(state, config)
    stored, state = state, {name: t.double() for name, t in state.items()}
    norm, n_ctx, n_layers = NORMS[config["normalization_type"]], config["n_ctx"], n_layers_of(state)
    scale = _softmax_scale(state, config)  # of W_Q, so that scores divided by √d_head equal those of the model
    blocks = [{p: state[f"blocks.{layer}.attn.W_{p}"].mT for p in "QKVO"} for layer in range(n_layers)]
    blocks = [block | {"Q": block["Q"] * scale} for block in blocks]
    raw = Weights(state["embed.W_E"].mT, state["unembed.W_U"].mT, tuple(tuple(map(Head, *b.values())) for b in blocks))
    norms = [f"blocks.{layer}.ln1" for layer in range(n_layers)] + ["ln_final"]
    nothing = raw.W_E.new_zeros(len(raw.W_E))
    before = [state.get(f"{name}.b", nothing) for name in norms]  # biases of the norms
    kind, constants = config["positional_embedding_type"], []
    positions = state.get("pos_embed.W_pos", nothing[None])
    joining = positions if kind == "shortformer" else nothing[None]
    for layer, block in enumerate(blocks):
        read = joining + before[layer]
        bias = {part: state.get(f"blocks.{layer}.attn.b_{part}", block[part].new_zeros(1, 1)) for part in "QKV"}
        bias["Q"] = bias["Q"] * scale
        reads = {"Q": read, "K": read, "V": before[layer][None]}
        q, k, v = (reads[part] @ block[part].mT + bias[part][:, None] for part in "QKV")
        b_O, scores = state.get(f"blocks.{layer}.attn.b_O", nothing), state.get(f"blocks.{layer}.attn.score_bias")
        constants.append(Constants(q, k, v, b_O, scores))
    return Opened(
        fold_gains(raw, [state.get(f"{name}.w", nothing + 1) for name in norms]), constants,
        positions if kind == "standard" else nothing[None],
        b_U=raw.W_U @ before[-1] + state.get("unembed.b_U", raw.W_U.new_zeros(1)),
        norm=norm, eps=float(config.get("eps", 1e-5)), n_ctx=n_ctx, kind=kind,
        rotation=_rotation(stored, config) if kind == "rotary" and n_layers > 0 else None,
    )  # fmt: skip


def _softmax_scale(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> float:
    if "blocks.0.attn.W_Q" not in state:
        return 1.0
    usual, given = math.sqrt(state["blocks.0.attn.W_Q"].shape[-1]), config.get("attn_scale", -1.0)
    return usual if not config.get("use_attn_scale", True) else 1.0 if given in (-1.0, None) else usual / given


def _rotation(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> Rotation:
    """Return the table of rotary positions, computed as TransformerLens does, in at least float32."""
    dtype = torch.promote_types(state["embed.W_E"].dtype, torch.float32)
    d_head = state["blocks.0.attn.W_Q"].shape[-1]
    wave = d_head if config.get("rotary_dim") in (None, -1) else config["rotary_dim"]
    if wave % 2 or wave > d_head:
        raise ValueError(f"rotary_dim: expected an even number up to d_head = {d_head}, got {wave}")
    adjacent = bool(config.get("rotary_adjacent_pairs", False))
    period = config.get("rotary_base", 10_000) ** (torch.arange(wave // 2, dtype=dtype) / (wave / 2))
    period = period.repeat_interleave(2) if adjacent else period.repeat(2)
    angle = torch.arange(config["n_ctx"], dtype=dtype)[:, None] / period
    tables = {"rotary_cos": angle.cos().double(), "rotary_sin": angle.sin().double()}
    for name in [name for name in state if "rotary_" in name]:
        own, kept = tables[name.split(".")[-1]][: len(state[name])], state[name][: len(angle)].double()
        if kept.shape != own.shape or not kept.allclose(own, rtol=0, atol=ROUNDING):
            raise ValueError(f"{name}: expected the table that rotary_dim, rotary_base and rotary_adjacent_pairs give")
    return Rotation(tables["rotary_cos"], tables["rotary_sin"], adjacent)
