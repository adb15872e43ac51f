"""Say why weights and a configuration of TransformerLens cannot be represented here."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

NORMS: dict[str | None, Literal["none", "rms", "layer"]] = {
    None: "none", "LNPre": "layer", "LN": "layer", "RMSPre": "rms", "RMS": "rms",
}  # fmt: skip
GROUPED = "grouped-query attention is not supported; store separate keys and values for each head"
MOST_SHOWN = 8  # complaints in a message
BUFFERS = ("mask", "IGNORE", "rotary_sin", "rotary_cos")


@dataclass(frozen=True)
class Rule:
    """The values that a setting may have: those in ``allowed``, and all between ``numbers`` (whole if these are)."""

    allowed: tuple[Any, ...] = ()
    numbers: tuple[int, int] | tuple[float, float] = (1, 0)
    required: bool = False
    why: str = ""

    def holds(self, value: object) -> bool:
        least, most = self.numbers
        number = isinstance(value, int | float) and type(value) in (int, type(least)) and least <= value <= most
        return number or value in self.allowed

    def __str__(self) -> str:
        least, most = self.numbers
        return " or ".join([f"a number from {least:g} to {most:g}", *map(json.dumps, self.allowed)][not most :])


OFF = (
    "parallel_attn_mlp", "use_local_attn", "scale_attn_by_inverse_layer_idx", "final_rms", "post_embedding_ln",
    "use_normalization_before_and_after", "use_qk_norm", "use_logn_attn", "use_dynamic_ntk_rope", "use_yarn_rope",
    "use_NTK_by_parts_rope", "use_attention_sinks", "attn_sinks", "scale_embedding",
)  # fmt: skip
RULES = {  # by setting; only causal attention-only models are sums of paths
    **dict.fromkeys(OFF, Rule((False,))),
    **dict.fromkeys(("attn_scores_soft_cap", "output_logits_soft_cap"), Rule((-1.0,))),
    **dict.fromkeys(("rotary_scaling_factor", "embed_multiplier"), Rule((1.0,))),
    **dict.fromkeys(("clip_qkv", "rope_scaling"), Rule((None,))),
    **dict.fromkeys(("use_attn_scale", "rotary_adjacent_pairs"), Rule((True, False))),
    "attn_only": Rule((True,)),
    "attention_dir": Rule(("causal",)),
    "normalization_type": Rule(tuple(NORMS), required=True),
    "positional_embedding_type": Rule(("shortformer", "standard", "rotary"), required=True),
    "n_ctx": Rule(numbers=(1, 65_536), required=True),
    "eps": Rule(numbers=(1e-12, 1.0)),
    "attn_scale": Rule((None, -1), numbers=(1e-6, 1e6)),
    "rotary_base": Rule(numbers=(1.0, 1e12)),
    "rotary_dim": Rule((None, -1), numbers=(2, 65_536)),
    "rope_theta": Rule((None,), why="; give it as rotary_base"),
}
READ = {*RULES, "n_heads", "d_head", "d_model", "d_vocab", "n_layers", "n_key_value_heads", "d_vocab_out"}
WITHOUT_EFFECT = re.compile(  # settings of TransformerLens that change nothing here
    "model_name|original_architecture|from_checkpoint|checkpoint_.*|tokenizer_.*|default_prepend_bos|init.*|seed|dtype"
    "|device|n_devices|act_fn|d_mlp|gated_mlp|window_size|attn_types|n_params|use_attn_result|use_attn_in|use_hook_.*"
    "|use_split_qkv_input|ungroup_grouped_query_attention|num_experts|experts_per_token|relative_attention_.*"
    "|decoder_start_token_id|tie_word_embeddings|load_in_4bit|trust_remote_code|NTK_.*|yarn_.*|normalization"
    "|shortformer_pos"
)
LARGEST = 1e4  # of a weight; those of trained models are far below, and float32 rounds larger logits to 1e-3 and more
REASONS = {  # why a parameter has no place, by the first pattern in its name
    r"\.(mlp|ln2)\.": "an MLP is not linear in its input; expected an attention-only model",
    r"attn\._": GROUPED,
    "": "not part of an attention-only model with this configuration, so its effect would be lost",
}


def refuse(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Raise ValueError if some settings, numbers, parameter names or shapes cannot be represented."""
    found = _tensors(state) or _settings(state, config) + _parameters(state, config)
    if (more := len(found) - MOST_SHOWN) > 0:
        found[MOST_SHOWN:] = [f"… and {more} more"]
    if found:
        raise ValueError("\n  - ".join(["These weights cannot be represented:", *found]))


def unread(config: Mapping[str, Any]) -> list[str]:
    """Return the keys of a configuration that nothing here reads and that may change what the model computes."""
    return [name for name in config if name not in READ and not WITHOUT_EFFECT.fullmatch(name)]


def n_layers_of(state: Collection[str]) -> int:
    """Return the number of layers in a state dict: the largest layer number plus 1, or 0 if there are no layers."""
    return 1 + max((int(name.split(".")[1]) for name in state if re.match(r"blocks\.\d+\.", name)), default=-1)


def _tensors(state: Mapping[str, Tensor]) -> list[str]:
    if (n_layers := n_layers_of(state)) > len(state):
        return [f"blocks: expected layers that are numbered from 0, got a layer {n_layers - 1}"]
    numbers = {name: tensor for name, tensor in state.items() if not name.endswith(BUFFERS)}
    usual = {n: t.numel() and t.is_floating_point() and t.element_size() > 1 for n, t in numbers.items()}  # or 8 bits
    return [
        f"{name}: expected floating-point numbers within ±{LARGEST:g}, "
        f"got {f'up to {tensor.abs().max():g}' if usual[name] else tensor.dtype}"
        for name, tensor in numbers.items()
        if not (usual[name] and tensor.abs().max() <= LARGEST)
    ]


def _sizes(state: Mapping[str, Tensor]) -> dict[str, int | None]:
    """Return the sizes of a model by name of the setting. None if the shape that determines a size is unusual."""
    embedding, first = (tuple(state[n].shape) if n in state else () for n in ("embed.W_E", "blocks.0.attn.W_Q"))
    d_vocab, d_model = embedding if len(embedding) == 2 else (None, None)
    n_heads, d_head = (first[0], first[2]) if len(first) == 3 and first[1] == d_model else (None, None)
    return {"n_heads": n_heads, "d_head": d_head, "d_model": d_model, "d_vocab": d_vocab}


def _settings(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    sizes = _sizes(state)
    rules = RULES | {name: Rule((size,), why="; as in the weights") for name, size in sizes.items() if size is not None}
    rules |= {
        "n_layers": Rule((n_layers_of(state),), why="; as in the weights"),
        "n_key_value_heads": Rule((None, sizes["n_heads"]), why=f"; {GROUPED}"),
        "d_vocab_out": Rule((None, -1, sizes["d_vocab"])),
    }
    got = {name: json.dumps(value, default=str) for name, value in config.items()}
    return [
        f"{name}: expected {rule}, got {got.get(name, 'nothing')}{rule.why}"
        for name, rule in rules.items()
        if (name in config or rule.required) and not rule.holds(config.get(name, ...))
    ]


def _parameters(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    """Return a message for each parameter that has no place in the model, that is missing or that has a wrong shape."""
    n_heads, d_head, d_model, d_vocab = _sizes(state).values()
    n_ctx = config["n_ctx"] if isinstance(config.get("n_ctx"), int) else None
    norms = {"LN": ("w", "b"), "RMS": ("w",)}.get(str(config.get("normalization_type")), ())
    needed: dict[str, tuple[int | None, ...]] = {"embed.W_E": (d_vocab, d_model), "unembed.W_U": (d_model, d_vocab)}
    may: dict[str, tuple[int | None, ...]] = {"unembed.b_U": (d_vocab,)}
    if config.get("positional_embedding_type") != "rotary":
        needed["pos_embed.W_pos"] = (n_ctx, d_model)
    for at in (f"blocks.{i}" for i in range(n_layers_of(state))):
        needed |= {f"{at}.attn.W_{part}": (n_heads, d_model, d_head) for part in "QKV"}
        needed |= {f"{at}.attn.W_O": (n_heads, d_head, d_model), **{f"{at}.ln1.{part}": (d_model,) for part in norms}}
        may |= {f"{at}.attn.b_{part}": (n_heads, d_head) for part in "QKV"} | {f"{at}.attn.b_O": (d_model,)}
        may |= {f"{at}.attn.score_bias": (n_heads, n_ctx)} | {f"{at}.attn.{name}": () for name in BUFFERS}
    needed |= {f"ln_final.{part}": (d_model,) for part in norms}
    may |= needed
    strange = dict.fromkeys(re.sub(r"^blocks\.\d+", "blocks.*", name) for name in state if name not in may)
    found = [f"{name}: {next(REASONS[pattern] for pattern in REASONS if re.search(pattern, name))}" for name in strange]
    found += [f"{name}: expected in the weights, found nothing" for name in needed if name not in state]
    for name, tensor in state.items():
        shape, must = tuple(tensor.shape), may.get(name, ())
        if must and (len(shape) != len(must) or any(m not in (None, n) for m, n in zip(must, shape, strict=True))):
            why = f"; {GROUPED}" if name.endswith(("W_K", "W_V")) and shape[1:] == must[1:] else ""
            told = ", ".join("any" if size is None else str(size) for size in must)
            found.append(f"{name}: expected shape ({told}), got {shape}{why}")
    return found
