"""Check that weights and configuration of TransformerLens can be represented here, and list the reasons if not."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

from torch import Tensor

NORMS: dict[str | None, Literal["none", "rms", "layer"]] = {
    None: "none", "LNPre": "layer", "LN": "layer", "RMSPre": "rms", "RMS": "rms",
}  # fmt: skip
PATHS = "only causal attention-only models are sums of paths"
CORRECT = "correct the configuration"
STATE = "set it in the configuration"
GROUPED = "grouped-query attention is not supported; store separate keys and values for each head"
LARGEST = 1e4  # of a weight; those of trained models are far below, and float32 rounds larger logits to 1e-3 and more
MOST_SHOWN = 8  # complaints in a message
NO = (
    "parallel_attn_mlp", "use_local_attn", "scale_attn_by_inverse_layer_idx", "final_rms", "post_embedding_ln",
    "use_normalization_before_and_after", "use_qk_norm", "use_logn_attn", "use_dynamic_ntk_rope", "use_yarn_rope",
    "use_NTK_by_parts_rope", "use_attention_sinks", "attn_sinks", "scale_embedding",
)  # fmt: skip
RULES: dict[str, tuple[tuple[Any, ...], str]] = {  # settings that are read, the values that they may have, and why
    **dict.fromkeys(NO, ((False,), PATHS)),
    **dict.fromkeys(("attn_scores_soft_cap", "output_logits_soft_cap"), ((-1.0,), PATHS)),
    **dict.fromkeys(("rotary_scaling_factor", "embed_multiplier"), ((1.0,), PATHS)),
    **dict.fromkeys(("clip_qkv", "rope_scaling"), ((None,), PATHS)),
    **dict.fromkeys(("use_attn_scale", "rotary_adjacent_pairs"), ((True, False), CORRECT)),
    **dict.fromkeys(("eps", "rotary_base"), ((), CORRECT)),  # numbers
    **dict.fromkeys(("attn_scale", "rotary_dim"), ((None, -1), CORRECT)),  # or numbers
    "attn_only": ((True,), PATHS),
    "rope_theta": ((None,), "give it as rotary_base"),
    "attention_dir": (("causal",), PATHS),
    "n_ctx": ((), STATE),
    "normalization_type": (tuple(NORMS), STATE),
    "positional_embedding_type": (("shortformer", "standard", "rotary"), STATE),
}
NUMBERS = {  # the least and the largest; whole if the least is
    "n_ctx": (1, 65_536), "eps": (1e-12, 1.0), "attn_scale": (1e-6, 1e6), "rotary_base": (1.0, 1e12),
    "rotary_dim": (2, 65_536),
}  # fmt: skip
SIZES = ("n_heads", "d_head", "d_model", "d_vocab")
KNOWN = (*RULES, *SIZES, "n_layers", "n_key_value_heads", "d_vocab_out")
WITHOUT_EFFECT = re.compile(  # settings of TransformerLens that change nothing here
    "model_name|original_architecture|from_checkpoint|checkpoint_.*|tokenizer_.*|default_prepend_bos|init.*|seed|dtype"
    "|device|n_devices|act_fn|d_mlp|gated_mlp|window_size|attn_types|n_params|use_attn_result|use_attn_in|use_hook_.*"
    "|use_split_qkv_input|ungroup_grouped_query_attention|num_experts|experts_per_token|relative_attention_.*"
    "|decoder_start_token_id|tie_word_embeddings|load_in_4bit|trust_remote_code|NTK_.*|yarn_.*|normalization"
    "|shortformer_pos"
)
REASONS = {  # why a parameter has no place, by the first pattern in its name
    r"\b(tok_embed\.weight|attn\.[qkvo]\.(weight|bias))$": "a name of TransformerLens 4; save with transformer_lens<4",
    r"\.(mlp|ln2)\.": "an MLP is not linear in its input; expected an attention-only model",
    r"attn\._": GROUPED,
    r"\.ln1\.|ln_final\.": "a norm of this normalization_type has no such parameter; check the configuration",
    r"pos_embed\.W_pos": "rotary positions have no position vectors; check positional_embedding_type",
    "": "not part of an attention-only model, so its effect would be lost",
}


def refuse(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Raise ValueError if some settings, numbers, parameter names or shapes cannot be represented."""
    if not (found := _tensors(state)):
        found = _settings(state, config) + _parameters(state, config)
    if (more := len(found) - MOST_SHOWN) > 0:
        found[MOST_SHOWN:] = [f"… and {more} more"]
    if found:
        raise ValueError("\n  - ".join(["These weights cannot be represented:", *found]))


def unread(config: Mapping[str, Any]) -> list[str]:
    """Return the keys of a configuration that this code does not read and that may change what the model computes."""
    return [name for name in config if name not in KNOWN and not WITHOUT_EFFECT.fullmatch(name)]


def n_layers_of(state: Collection[str]) -> int:
    """Return the number of layers in a state dict: the largest layer number plus 1, or 0 if there are no layers."""
    return 1 + max((int(name.split(".")[1]) for name in state if re.match(r"blocks\.\d+\.", name)), default=-1)


def _tensors(state: Mapping[str, Tensor]) -> list[str]:
    """Return a message for each tensor without finite numbers of a usual size, and for a layer number too large."""
    found = []
    for name, tensor in state.items():
        if name.endswith(("attn.mask", "attn.IGNORE")):
            continue
        got = "none" if not tensor.numel() else "" if tensor.dim() else "a single number"
        got = got or ("" if tensor.is_floating_point() and tensor.element_size() > 1 else "another type")  # or 8 bits
        if got or not tensor.isfinite().all():
            found.append(f"{name}: expected finite floating-point numbers, got {got or 'NaN or infinity'}")
        elif (size := tensor.abs().max().item()) > LARGEST:
            found.append(f"{name}: expected weights from {-LARGEST:g} to {LARGEST:g}, got {size:g}; scale the weights")
    if (n_layers := n_layers_of(state)) > len(state):
        found.append(f"blocks: expected layers that are numbered from 0, got a layer {n_layers - 1}")
    return found


def _sizes(state: Mapping[str, Tensor]) -> tuple[int | None, ...]:
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    embedding, first = shapes.get("embed.W_E", ()), shapes.get("blocks.0.attn.W_Q", ())
    d_vocab, d_model = embedding if len(embedding) == 2 else (None, None)
    n_heads, d_head = (first[0], first[2]) if len(first) == 3 and first[1] == d_model else (None, None)
    return n_heads, d_head, d_model, d_vocab


def _settings(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    """Return a message for each setting with a value that is not allowed."""
    sizes = {"n_layers": n_layers_of(state), **dict(zip(SIZES, _sizes(state), strict=True))}
    rules = RULES | {name: ((size,), "as in the weights") for name, size in sizes.items() if size is not None}
    rules |= {"n_key_value_heads": ((None, sizes["n_heads"]), GROUPED)}
    rules |= {"d_vocab_out": ((None, -1, sizes["d_vocab"]), CORRECT)}
    found = []
    for name, (allowed, why) in rules.items():
        value, (least, most) = config.get(name, ...), NUMBERS.get(name, (1, 0))
        number = type(value) in (int, type(least)) and least <= value <= most
        if (name in config or why == STATE) and value not in allowed and not number:
            expected = [f"a number from {least:g} to {most:g}", *map(json.dumps, allowed)][not most :]
            got = "nothing" if value is ... else json.dumps(value, default=str)
            found.append(f"{name}: expected {' or '.join(expected)}, got {got}; {why}")
    return found


def _parameters(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    """Return a message for each parameter that has no place in the model, that is missing or that has a wrong shape."""
    (n_heads, d_head, d_model, d_vocab), n_ctx = _sizes(state), config.get("n_ctx")
    norms = {"LN": ("w", "b"), "RMS": ("w",)}.get(str(config.get("normalization_type")), ())
    needed: dict[str, tuple[int | None, ...]] = {"embed.W_E": (d_vocab, d_model), "unembed.W_U": (d_model, d_vocab)}
    may: dict[str, tuple[int | None, ...]] = {"unembed.b_U": (d_vocab,)}
    if config.get("positional_embedding_type") != "rotary":
        needed["pos_embed.W_pos"] = (n_ctx if isinstance(n_ctx, int) else None, d_model)
    for at in (f"blocks.{i}" for i in range(n_layers_of(state))):
        needed |= {f"{at}.attn.W_{part}": (n_heads, d_model, d_head) for part in "QKV"}
        needed |= {f"{at}.attn.W_O": (n_heads, d_head, d_model), **{f"{at}.ln1.{part}": (d_model,) for part in norms}}
        may |= {f"{at}.attn.b_{part}": (n_heads, d_head) for part in "QKV"} | {f"{at}.attn.b_O": (d_model,)}
        may |= {f"{at}.attn.{name}": () for name in ("mask", "IGNORE", "rotary_sin", "rotary_cos")}
    needed |= {f"ln_final.{part}": (d_model,) for part in norms}
    may |= needed
    strange = dict.fromkeys(re.sub(r"^blocks\.\d+", "blocks.*", name) for name in state if name not in may)
    found = [f"{name}: {next(REASONS[pattern] for pattern in REASONS if re.search(pattern, name))}" for name in strange]
    found += [f"{name}: expected in the weights, found nothing" for name in needed if name not in state]
    for name, tensor in state.items():
        shape, must = tuple(tensor.shape), may.get(name, ())
        if must and (len(shape) != len(must) or any(m not in (None, n) for m, n in zip(must, shape, strict=True))):
            why = GROUPED if name.endswith(("W_K", "W_V")) and shape[1:] == must[1:] else "check the file"
            told = ", ".join("any" if size is None else str(size) for size in must)
            found.append(f"{name}: expected shape ({told}), got {shape}; {why}")
    return found
