"""Check that weights and configuration of TransformerLens can be represented here, and list the reasons if they
cannot."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

NORMS: dict[str | None, Literal["none", "rms", "layer"]] = {
    None: "none", "LNPre": "layer", "LN": "layer", "RMSPre": "rms", "RMS": "rms",
}  # fmt: skip
POSITIONS = ("shortformer", "standard", "rotary")
GROUPED = "grouped-query attention is not supported; store separate keys and values for each head"
# parameters of a TransformerBridge, which has replaced HookedTransformer in TransformerLens 4
BRIDGE = re.compile(r"(^|\.)(tok_embed\.weight|(layers|blocks)\.\d+\.attn\.[qkvo]\.(weight|bias))$")
MASKS = ("attn.mask", "attn.IGNORE")
BUFFERS = (*MASKS, "attn.rotary_sin", "attn.rotary_cos")
# settings and the value that each must have if it is set; another value rules out the path expansion or is not
# supported by this code
MUST_BE: dict[str, Any] = {
    "attn_only": True, "attention_dir": "causal", "parallel_attn_mlp": False, "use_local_attn": False,
    "scale_attn_by_inverse_layer_idx": False, "final_rms": False, "post_embedding_ln": False,
    "use_normalization_before_and_after": False, "attn_scores_soft_cap": -1.0, "output_logits_soft_cap": -1.0,
    "use_qk_norm": False, "clip_qkv": None, "use_logn_attn": False, "use_dynamic_ntk_rope": False,
    "use_NTK_by_parts_rope": False, "use_yarn_rope": False, "rotary_scaling_factor": 1.0, "use_attention_sinks": False,
    "attn_sinks": False, "rope_scaling": None, "embed_multiplier": 1.0, "scale_embedding": False,
}  # fmt: skip

MOST_SHOWN = 8  # complaints in a message; renamed or other weights can have hundreds
LARGEST = 1e4  # of a weight; those of trained models are far below, and float32 rounds larger logits to 1e-3 and more
FLAGS = ("use_attn_scale", "rotary_adjacent_pairs")
SIZES = ("n_layers", "n_heads", "d_head", "d_model", "d_vocab")  # must equal those of the weights, where they are given
NUMBERS: dict[str, tuple[float, float]] = {  # the smallest and the largest that is accepted
    "n_ctx": (1.0, 65_536.0), "eps": (1e-12, 1.0), "attn_scale": (1e-6, 1e6), "rotary_dim": (2.0, 65_536.0),
    "rotary_base": (1.0, 1e12),
}  # fmt: skip
CHOICES = ("normalization_type", "positional_embedding_type")
SETTINGS = (*MUST_BE, *FLAGS, *SIZES, *NUMBERS, *CHOICES, "n_key_value_heads", "d_vocab_out")
OTHER_NAMES = {  # settings of the transformers library, and what they are called here
    "layer_norm_epsilon": "eps", "layer_norm_eps": "eps", "rms_norm_eps": "eps", "rope_theta": "rotary_base",
    "scale_attn_weights": "use_attn_scale",
    "n_positions": "n_ctx", "max_position_embeddings": "n_ctx", "normalisation_type": "normalization_type",
}  # fmt: skip
# settings of TransformerLens that change nothing here: names, initialization, devices, what hooks see, and details of
# what MUST_BE rules out, such as the size of local windows or of MLPs
WITHOUT_EFFECT = re.compile(
    "model_name|original_architecture|from_checkpoint|checkpoint_.*|tokenizer_.*|default_prepend_bos|init_.*|seed|dtype"
    "|initializer_range|device|n_devices|act_fn|d_mlp|gated_mlp|window_size|attn_types|n_params|use_attn_result"
    "|use_attn_in|use_split_qkv_input|use_hook_.*|ungroup_grouped_query_attention|num_experts"
    "|experts_per_token|relative_attention_.*|decoder_start_token_id|tie_word_embeddings|load_in_4bit"
    "|trust_remote_code|NTK_.*|yarn_.*|normalization|shortformer_pos"
)
ALIKE = 0.85  # least similarity (difflib, 0 to 1) of a misspelled setting; "d_vocab_out" and "d_vocab" have 0.78
# defaults of TransformerLens that are accepted although NUMBERS excludes them; a missing n_ctx is refused below
DEFAULTS: dict[str, tuple[Any, ...]] = {
    "attn_scale": (None, -1), "rotary_dim": (None,), "n_ctx": (None,),
}  # fmt: skip


def refuse(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Raise ValueError if some settings, numbers, parameter names or shapes cannot be represented."""
    hints: list[str] = []
    renamed = {_usual(name): tensor for name, tensor in state.items()}
    unusual = [name for name in state if _usual(name) != name]
    if unusual and "embed.W_E" in renamed and len(renamed) == len(state):
        hints = [f"{unusual[0]}: expected the name {_usual(unusual[0])}; rename all {len(unusual)} such tensors"]
        state = renamed
    complaints = _bridge_complaints(state) or hints + (
        _number_complaints(state, config)
        or (_setting_complaints(config) + _name_complaints(state, config) + _shape_complaints(state, config))
    )
    if (more := len(complaints) - MOST_SHOWN) > 0:
        complaints[MOST_SHOWN:] = [f"… and {more} more"]
    if complaints:
        raise ValueError("\n".join(["These weights cannot be represented:", *(f"  - {c}" for c in complaints)]))


def _bridge_complaints(state: Mapping[str, Tensor]) -> list[str]:
    """Return a message for the first parameter that TransformerLens 4 has named, if there is one."""
    return [
        f"{name}: expected a name of HookedTransformer, got one of TransformerLens 4; save with transformer_lens<4"
        for name in filter(BRIDGE.search, state)
    ][:1]


def _usual(name: str) -> str:
    """Return a parameter name without a prefix such as "model." and without zeros before the number of the layer."""
    name = re.sub(r"^(?!blocks\.).*?\.(?=(embed|unembed|pos_embed|blocks|ln_final)\.)", "", name)
    return re.sub(r"^blocks\.0+(?=\d)", "blocks.", name)


def unread(config: Mapping[str, Any]) -> list[str]:
    """Return the keys of a configuration that this code does not read and that may change what the model computes."""
    return [name for name in config if name not in SETTINGS and not WITHOUT_EFFECT.fullmatch(name)]


def n_layers_of(state: Mapping[str, Tensor]) -> int:
    """Return the number of layers in a state dict: the largest layer number plus 1, or 0 if there are no layers."""
    return 1 + max((int(name.split(".")[1]) for name in state if re.match(r"blocks\.\d+\.", name)), default=-1)


def _number_complaints(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    """Return a message for each setting that is out of bounds, for each tensor that does not hold finite floating-point
    numbers, and for a layer number that is too large."""
    found = [
        f"{name}: expected a number from {least:g} to {most:g}, got {config[name]!r}; correct the configuration"
        for name, (least, most) in NUMBERS.items()
        if name in config and not _between(least, config[name], most) and config[name] not in DEFAULTS.get(name, ())
    ]
    found += [
        f"{name}: expected finite floating-point numbers, got {_instead(tensor)} in {tensor.dtype} "
        f"{list(tensor.shape)}; convert the file again"
        for name, tensor in state.items()
        if not name.endswith(MASKS) and not (_floating(tensor) and tensor.numel() and _finite(tensor))
    ]
    found = found or [
        f"{name}: expected weights from {-LARGEST:g} to {LARGEST:g}, got one of size {size:g}; scale the weights"
        for name, tensor in state.items()
        if not name.endswith(MASKS) and (size := tensor.abs().max().item()) > LARGEST
    ]
    if (n_layers := n_layers_of(state)) > len(state):
        found.append(f"blocks: expected layers that are numbered from 0, got a layer {n_layers - 1}; rename them")
    return found


def _between(least: float, value: Any, most: float) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and least <= value <= most


def _instead(tensor: Tensor) -> str:
    """Return, in words, what a tensor holds instead of weights."""
    if not tensor.numel():
        return "none"
    return "NaN, infinity or another type" if tensor.dim() else "a single number"


def _finite(tensor: Tensor) -> bool:
    return tensor.element_size() > 1 and bool(tensor.float().isfinite().all())  # torch cannot compute with 8-bit floats


def _floating(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dim() > 0


def _setting_complaints(config: Mapping[str, Any]) -> list[str]:
    found = [
        f"{name}: expected {must!r}, got {config[name]!r}; only causal attention-only models are sums of paths"
        for name, must in MUST_BE.items()
        if config.get(name, must) != must
    ]
    found += [
        f"{name}: expected {meant}, got a key that is not read; rename it"
        for name in config
        if name not in SETTINGS and (meant := OTHER_NAMES.get(name) or _nearest(name)) and meant not in config
    ]
    found += [
        f"{name}: expected true or false, got {config[name]!r}; correct the configuration"
        for name in FLAGS
        if not isinstance(config.get(name, True), bool)
    ]
    if not isinstance(config.get("n_ctx"), int) or config["n_ctx"] < 1:
        found.append(f"n_ctx: expected the context length, got {config.get('n_ctx')!r}; set it in the configuration")
    for name, known in {"normalization_type": tuple(NORMS), "positional_embedding_type": POSITIONS}.items():
        if name not in config or config[name] not in known:
            expected = ", ".join("null" if choice is None else choice for choice in known)
            got = json.dumps(config[name]) if name in config else "nothing"
            found.append(f"{name}: expected one of {expected}, got {got}; set it in the configuration")
    return found


def _nearest(name: str) -> str:
    """Return the setting that ``name`` may be a misspelling of, or "" for none."""
    return next(iter(difflib.get_close_matches(name, SETTINGS, 1, ALIKE)), "")


def _name_complaints(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    """Return a message for each parameter that the state dict lacks or that has no place in the model."""
    n_layers, positions = n_layers_of(state), config.get("positional_embedding_type")
    norms = {"LN": ("w", "b"), "RMS": ("w",)}.get(str(config.get("normalization_type")), ())
    needed = {"embed.W_E", "unembed.W_U", *(f"ln_final.{part}" for part in norms)}
    needed |= {f"blocks.{i}.attn.W_{part}" for i in range(n_layers) for part in "QKVO"}
    needed |= {f"blocks.{i}.ln1.{part}" for i in range(n_layers) for part in norms}
    if positions in ("shortformer", "standard"):
        needed.add("pos_embed.W_pos")
    allowed = needed | {"unembed.b_U", *(f"blocks.{i}.attn.b_{part}" for i in range(n_layers) for part in "QKVO")}
    allowed |= {f"blocks.{i}.{buffer}" for i in range(n_layers) for buffer in BUFFERS}

    def common(name: str) -> str:
        return re.sub(r"^blocks\.\d+", "blocks.*", name)

    if positions not in POSITIONS:
        allowed.add("pos_embed.W_pos")  # the wrong setting has its own message
    found = [f"{name}: {_why_not(name)}" for name in sorted(set(map(common, set(state) - allowed)))]
    biases = {f"attn.b_{part}" for part in "QKVO" if any(name.endswith(f"attn.b_{part}") for name in state)}
    needed |= {f"blocks.{i}.{bias}" for i in range(n_layers) for bias in biases}  # in all layers, or in none
    present, missing = set(map(common, state)), needed - set(state)
    return found + [
        f"{name}: expected in the state dict, found nothing; check the "
        + ("configuration" if "ln" in name or "pos_embed" in name else "names in the file")
        for name in sorted({name if common(name) in present else common(name) for name in missing})
    ]


def _why_not(name: str) -> str:
    if ".mlp." in name or ".ln2." in name:
        return "an MLP is not linear in its input, so the model is no sum of paths; expected an attention-only model"
    if "attn._" in name:
        return GROUPED
    if ".ln1." in name or "ln_final." in name:
        return "a norm of this normalization_type has no such parameter; check the configuration"
    if name == "pos_embed.W_pos":
        return "rotary positions have no position vectors; check positional_embedding_type"
    return "not part of an attention-only model, so its effect would be lost"


def _shape_complaints(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> list[str]:
    """Return a message for each parameter with a wrong shape, each size in the configuration that differs from that of
    the weights, each attention mask that is not causal, and a rotary_dim that is odd or above d_head."""
    if "embed.W_E" not in state or state["embed.W_E"].dim() != 2:
        return ["embed.W_E: expected d_vocab × d_model numbers, from which the other sizes follow"]
    d_vocab, d_model = state["embed.W_E"].shape
    first = state.get("blocks.0.attn.W_Q")
    n_heads, d_head = (first.shape[0], first.shape[-1]) if first is not None else (0, 0)
    if first is not None and (first.dim() != 3 or first.shape[1] != d_model):
        return [
            f"blocks.0.attn.W_Q: expected n_heads × d_model × d_head numbers, with d_model = {d_model} as in "
            f"embed.W_E, got {tuple(first.shape)}; check the file"
        ]
    n_ctx = config.get("n_ctx") or 0
    expected = {
        "unembed.W_U": (d_model, d_vocab), "unembed.b_U": (d_vocab,), "pos_embed.W_pos": (n_ctx, d_model),
        **{f"attn.W_{part}": (n_heads, d_model, d_head) for part in "QKV"}, "attn.W_O": (n_heads, d_head, d_model),
        **{f"attn.b_{part}": (n_heads, d_head) for part in "QKV"}, "attn.b_O": (d_model,),
        "ln1.w": (d_model,), "ln1.b": (d_model,), "ln_final.w": (d_model,), "ln_final.b": (d_model,),
    }  # fmt: skip
    sizes = dict(zip(SIZES, (n_layers_of(state), n_heads, d_head, d_model, d_vocab), strict=True))
    found = [
        f"{name}: expected {size} as in the weights, got {config[name]!r}; correct the configuration"
        for name, size in sizes.items()
        if config.get(name, size) != size and (first is not None or name not in ("n_heads", "d_head"))
    ]
    if first is not None and config.get("n_key_value_heads") not in (None, n_heads):
        found.append(f"n_key_value_heads: expected null or n_heads = {n_heads}; {GROUPED}")
    if config.get("d_vocab_out", -1) not in (-1, None, d_vocab):
        found.append(f"d_vocab_out: expected -1 or d_vocab = {d_vocab}, got {config['d_vocab_out']!r}")
    for name, tensor in state.items():
        if name.endswith("attn.IGNORE") and not bool((tensor < -1e4).all()):
            found.append(f"{name}: expected a score that no key after the query survives, such as -inf")
        if name.endswith("attn.mask") and not torch.equal(tensor.bool(), tensor.new_ones(tensor.shape).tril().bool()):
            found.append(f"{name}: expected 1 for keys up to the query and 0 after it; attention must be causal")
        must = expected.get(".".join(name.split(".")[-2:]))
        if must is not None and 0 not in must and tuple(tensor.shape) != must:  # 0: W_Q or n_ctx is missing
            grouped = name.endswith(("W_K", "W_V")) and tensor.dim() == 3 and len(tensor) < n_heads
            why = GROUPED if grouped else "sizes follow from embed.W_E, blocks.0.attn.W_Q and n_ctx; check the file"
            found.append(f"{name}: expected shape {must}, got {tuple(tensor.shape)}; {why}")
    rotary = config.get("rotary_dim") or d_head
    if config.get("positional_embedding_type") == "rotary" and first is not None and (rotary % 2 or rotary > d_head):
        found.append(f"rotary_dim: expected an even number up to d_head = {d_head}, got {rotary}")
    return found
