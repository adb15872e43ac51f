"""Build models from weights with TransformerLens's names, with norms folded in.

The configuration must state ``normalization_type``, ``positional_embedding_type``, ``n_ctx``, and every setting that
differs from TransformerLens's default. TransformerLens multiplies rows by matrices on their right, so all matrices are
transposed here. The gain of each norm is folded into the matrices that follow it, and then the centering
(docs/framework.md §1.4). The biases of norms and values are multiplied by the matrices that follow them. Rows of a
pattern sum to 1, so W_O b_V is a constant that is added to b_O.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pathsum.circuits.folding import centre, fold_gains
from pathsum.core.weights import Head, Weights
from pathsum.imported.model import Extra, Rotation, TransformerLensModel
from pathsum.imported.refusals import NORMS, n_layers_of, refuse


def from_transformer_lens(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> TransformerLensModel:
    """Return the model of a state dict and its configuration, folded in float64."""
    refuse(state, config)
    stored, state = state, {name: t.double() for name, t in state.items()}
    norm, n_ctx, n_layers = NORMS[config["normalization_type"]], config["n_ctx"], n_layers_of(state)
    blocks = [_block(state, layer, _softmax_scale(state, config)) for layer in range(n_layers)]
    raw = Weights(state["embed.W_E"].mT, state["unembed.W_U"].mT, tuple(tuple(map(Head, *b.values())) for b in blocks))
    norms = [f"blocks.{layer}.ln1" for layer in range(n_layers)] + ["ln_final"]
    nothing = raw.W_E.new_zeros(len(raw.W_E))
    folded = fold_gains(raw, [state.get(f"{name}.w", nothing + 1) for name in norms])
    before = [state.get(f"{name}.b", nothing) for name in norms]  # biases of the norms
    positions = state.get("pos_embed.W_pos", nothing[None])
    joining = positions if config["positional_embedding_type"] == "shortformer" else nothing[None]
    rotary = config["positional_embedding_type"] == "rotary" and n_layers > 0
    queries, keys, extras = [], [], []
    if config["positional_embedding_type"] == "standard":
        extras.append(Extra(0, positions.mT))
    for layer, block in enumerate(blocks):
        read = (joining + before[layer]).expand(n_ctx, -1)
        bias = {part: state.get(f"blocks.{layer}.attn.b_{part}", block[f"W_{part}"].new_zeros(1)) for part in "QKVO"}
        b_Q = bias["Q"] * _softmax_scale(state, config)
        queries.append(read @ block["W_Q"].mT + b_Q[..., None, :])
        keys.append(read @ block["W_K"].mT + bias["K"][..., None, :])
        values = block["W_V"] @ before[layer] + bias["V"]
        constant = (block["W_O"] @ values[..., None]).sum(0).squeeze(-1) + bias["O"]
        extras.append(Extra(layer + 1, constant[:, None]))
    return TransformerLensModel(
        folded=centre(folded) if norm == "layer" else folded,
        queries=tuple(queries),
        keys=tuple(keys),
        extras=tuple(e for e in extras if e.vectors.any()),
        b_U=raw.W_U @ before[-1] + state.get("unembed.b_U", raw.W_U.new_zeros(1)),
        norm=norm,
        eps=float(config.get("eps", 1e-5)),
        n_ctx=n_ctx,
        rotation=_rotation(stored, config) if rotary else None,
    )


def _block(state: Mapping[str, Tensor], layer: int, scale: float) -> dict[str, Tensor]:
    """Return the matrices of a layer, stacked by head, in the orientation of docs/framework.md §1.1."""
    block = {f"W_{part}": state[f"blocks.{layer}.attn.W_{part}"].mT for part in "QKVO"}
    return block | {"W_Q": block["W_Q"] * scale}


def _softmax_scale(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> float:
    """Return the factor by which W_Q is multiplied, so that scores divided by √d_head equal those of the model."""
    if "blocks.0.attn.W_Q" not in state:
        return 1.0
    usual, given = math.sqrt(state["blocks.0.attn.W_Q"].shape[-1]), config.get("attn_scale", -1.0)
    return usual if not config.get("use_attn_scale", True) else 1.0 if given in (-1.0, None) else usual / given


def _rotation(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> Rotation:
    """Return TransformerLens's table of rotary positions, computed in the precision of the weights, at least
    float32."""
    dtype = torch.promote_types(state["embed.W_E"].dtype, torch.float32)
    wave = config.get("rotary_dim") or state["blocks.0.attn.W_Q"].shape[-1]
    adjacent = bool(config.get("rotary_adjacent_pairs", False))
    period = config.get("rotary_base", 10_000) ** (torch.arange(wave // 2, dtype=dtype) / (wave / 2))
    period = period.repeat_interleave(2) if adjacent else period.repeat(2)
    angle = torch.arange(config["n_ctx"], dtype=dtype)[:, None] / period
    tables = {"rotary_cos": angle.cos().double(), "rotary_sin": angle.sin().double()}
    for name, kept in state.items():
        table = tables.get(name.split(".")[-1])
        if table is not None and not _begins_alike(kept, table):
            raise ValueError(
                f"{name}: expected the table that rotary_dim, rotary_base and rotary_adjacent_pairs give, got another, "
                f"of shape {list(kept.shape)}; set them as they were, or leave out a damaged table"
            )
    return Rotation(tables["rotary_cos"], tables["rotary_sin"], adjacent)


def _begins_alike(kept: Tensor, table: Tensor) -> bool:
    """Return whether a stored table of cosines or sines agrees with ``table`` at the positions that both have, up to
    rounding: of the table, in the coarsest precision that holds it, and of angles in float32."""
    if kept.dim() != 2 or kept.shape[1] != table.shape[1]:
        return False
    coarsest = next(d for d in (torch.bfloat16, torch.float16, kept.dtype) if torch.equal(kept.to(d).to(kept), kept))
    rounding = torch.finfo(coarsest).eps + len(table) * torch.finfo(torch.float32).eps
    return torch.allclose(kept[: len(table)].double(), table[: len(kept)], rtol=0, atol=1e-3 + rounding)
