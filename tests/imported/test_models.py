"""Weights that TransformerLens wrote give its logits. Its forward pass is written out here independently."""

import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from pathsum.circuits.folding import centre, fold_gains
from pathsum.core.manifest import write_manifest
from pathsum.hand_made import loaded
from pathsum.imported.open_weights import open_weights
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.interventions.run import Run
from pathsum.model.checkpoint import save_checkpoint
from pathsum.model.opened import Opened, converted, only
from pathsum.model.transformer import Transformer
from tests.imported.models import BATCH, D_HEAD, D_MODEL, D_VOCAB, N_CTX, N_HEADS, POS, POSITIONS, some_tokens, written
from tests.training.small import MODEL

EXACT = 1e-10  # float64: 2e-16 a rounding, over some thousands of terms


def plain(
    state: dict[str, Tensor],
    config: dict[str, Any],
    tokens: Tensor,
    hooks: Mapping[str, Callable[..., Any]] | None = None,
) -> Tensor:
    """Compute TransformerLens's forward pass head by head, with row vectors as there. ``hooks`` change what is computed
    in a head, by the name that it has there, layer and head: ``"hook_z 1.0"``."""

    def hooked(name: str, value: Tensor) -> Any:
        return (hooks or {}).get(name, lambda x: x)(value)

    def normed(name: str, x: Tensor) -> Tensor:
        kind = config["normalization_type"]
        if kind is None:
            return x
        if kind.startswith("LN"):
            x = x - x.mean(-1, keepdim=True)
        x = x / (x.pow(2).mean(-1, keepdim=True) + config["eps"]).sqrt()
        return x * state.get(f"{name}.w", 1) + state.get(f"{name}.b", 0)

    pos, kind = tokens.shape[1], config["positional_embedding_type"]
    x = state["embed.W_E"][tokens]
    where = state["pos_embed.W_pos"][:pos] if kind != "rotary" else torch.zeros(pos, x.shape[-1]).to(x)
    if kind == "standard":
        x = x + where
    for layer in range(config["n_layers"]):
        at, out = f"blocks.{layer}.attn", 0
        read = normed(f"blocks.{layer}.ln1", x)
        looking = read + where if kind == "shortformer" else read
        for h in range(len(state[f"{at}.W_Q"])):
            q = looking @ state[f"{at}.W_Q"][h] + state[f"{at}.b_Q"][h]
            k = looking @ state[f"{at}.W_K"][h] + state[f"{at}.b_K"][h]
            v = read @ state[f"{at}.W_V"][h] + state[f"{at}.b_V"][h]
            k = hooked(f"hook_k {layer}.{h}", k)
            if kind == "rotary":
                q, k = turned(q, config), turned(k, config)
            scores = q @ k.mT / (math.sqrt(q.shape[-1]) if config.get("use_attn_scale", True) else 1)
            scores = hooked(f"hook_attn_scores {layer}.{h}", scores)
            scores = scores.masked_fill(torch.ones(pos, pos).triu(1).bool(), -math.inf)
            pattern = hooked(f"hook_pattern {layer}.{h}", scores.softmax(-1))
            out = out + hooked(f"hook_z {layer}.{h}", pattern @ v) @ state[f"{at}.W_O"][h]
        x = x + out + state[f"{at}.b_O"]
    return normed("ln_final", x) @ state["unembed.W_U"] + state["unembed.b_U"]


def turned(x: Tensor, config: dict[str, Any]) -> Tensor:
    """Return each pair as a complex number, multiplied by e^(i · position · frequency)."""
    x, wave = x.clone(), config.get("rotary_dim", D_HEAD)
    for j in range(wave // 2):
        pair = [2 * j, 2 * j + 1] if config.get("rotary_adjacent_pairs") else [j, j + wave // 2]
        angle = torch.arange(x.shape[-2]).to(x) / config.get("rotary_base", 10_000) ** (2 * j / wave)
        z = torch.complex(x[..., pair[0]], x[..., pair[1]]) * torch.polar(torch.ones_like(angle), angle)
        x[..., pair[0]], x[..., pair[1]] = z.real, z.imag
    return x


def difference(model: Transformer, state: dict[str, Tensor], config: dict[str, Any]) -> float:
    return (model.trace(some_tokens()).logits - plain(state, config, some_tokens())).abs().max().item()


@pytest.mark.parametrize("n_layers", [0, 1, 3])
@pytest.mark.parametrize("norm", ["LN", "LNPre", "RMS", "RMSPre", None])
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_logits_are_those_of_the_library(n_layers: int, norm: str | None, positions: dict[str, Any]) -> None:
    state, config = written(1, n_layers, normalization_type=norm, **positions)
    assert difference(from_transformer_lens(state, config), state, config) < EXACT


def test_what_may_be_left_out_may_be() -> None:
    state, config = written(2, normalization_type="LN", **POSITIONS[0])
    config["use_attn_scale"] = False
    biases = {name: 0 * t for name, t in state.items() if ".attn.b_" in name or name == "unembed.b_U"}
    rest = {n: t for n, t in state.items() if n not in biases and not n.endswith(("mask", "IGNORE"))}
    assert difference(from_transformer_lens(rest, config), state | biases, config) < EXACT


def test_the_wrong_order_of_folding_gives_other_logits() -> None:
    """Negative control: centering before the gain (docs/framework.md §9.2) changes the logits."""
    state, config = written(3, normalization_type="LN", **POSITIONS[0])
    gains = [state["blocks.0.ln1.w"], state["blocks.1.ln1.w"], state["ln_final.w"]]
    bare = from_transformer_lens(
        {n: t for n, t in state.items() if not n.startswith("ln_final") and ".ln1." not in n},
        config | {"normalization_type": None},
    ).weights()
    model = from_transformer_lens(state, config)
    right, wrong = centre(fold_gains(bare, gains)), fold_gains(centre(bare), gains)
    assert difference(loaded(deepcopy(model), right), state, config) < EXACT
    assert difference(loaded(deepcopy(model), wrong), state, config) > 0.05


def test_each_kind_of_position_makes_a_difference() -> None:
    """Negative control: with another position scheme, the same weights give other logits."""
    state, config = written(4, normalization_type="LN", **POSITIONS[0])
    assert difference(from_transformer_lens(state, config | POSITIONS[1]), state, config) > 0.05
    state, config = written(4, normalization_type="LN", **POSITIONS[2])
    for other in ({"rotary_dim": 4}, {"rotary_adjacent_pairs": True}, {"rotary_base": 50}, {"eps": 0.1}):
        assert difference(from_transformer_lens(state, config | other), state, config) > 1e-3


def test_the_trace_is_the_forward_pass() -> None:
    state, config = written(5, normalization_type="LN", **POSITIONS[1])
    model = from_transformer_lens(state, config)
    trace = model.trace(some_tokens())
    assert len(trace.patterns) == len(trace.outputs) == len(trace.scales) - 1 == 2
    for pattern in trace.patterns:
        torch.testing.assert_close(pattern.sum(-1), torch.ones(BATCH, N_HEADS, POS).double())
        assert pattern.triu(1).abs().max() == 0
    assert converted(model, torch.float32).trace(some_tokens()).logits.dtype == torch.float32
    with pytest.raises(ValueError, match="at most n_ctx = 11 tokens, got 12"):
        model.trace(torch.zeros(1, 12, dtype=torch.int64))


def test_a_model_of_some_ids_has_their_logits() -> None:
    model = from_transformer_lens(*written(6, normalization_type="LN", **POSITIONS[1]))
    for kept in (torch.tensor([0, 2, 5, 21]), torch.arange(D_VOCAB).flip(0)):
        tokens = some_tokens() % len(kept)
        expected = model.trace(kept[tokens]).logits[..., kept]
        torch.testing.assert_close(only(model, kept).trace(tokens).logits, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("norm", ["LN", "RMSPre", None])
@pytest.mark.parametrize("kind", ["standard", "rotary"])
def test_native_models_of_transformer_lens_4_have_the_logits_of_their_own_forward_pass(
    norm: str | None, kind: str
) -> None:
    """Written out with the layers of torch: heads lie side by side in the rows of q, k and v, and rotate in pairs."""
    g, (h, d) = torch.Generator().manual_seed(3), (N_HEADS, D_HEAD)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64) / 2

    state = {"tok_embed.weight": normal(D_VOCAB, D_MODEL), "head.weight": normal(D_VOCAB, D_MODEL)}
    state |= {"pos.weight": normal(N_CTX, D_MODEL)} if kind == "standard" else {}
    for at in ("layers.0.ln1", "layers.1.ln1", "ln_out"):
        state[f"{at}.weight"] = 1 + normal(D_MODEL)
        state |= {f"{at}.bias": normal(D_MODEL)} if norm != "RMSPre" else {}
    for layer in range(2):
        for part in "qkvo":
            out, into = (D_MODEL, h * d) if part == "o" else (h * d, D_MODEL)
            state[f"layers.{layer}.attn.{part}.weight"] = normal(out, into)
            state[f"layers.{layer}.attn.{part}.bias"] = normal(out)
    config = {"n_ctx": N_CTX, "n_heads": h, "eps": 1e-3, "positional_embedding_type": kind, "normalization_type": norm}

    def linear(x: Tensor, at: str) -> Tensor:
        return torch.nn.functional.linear(x, state[f"{at}.weight"], state[f"{at}.bias"])

    def normed(x: Tensor, at: str) -> Tensor:
        if norm == "RMSPre":
            return torch.nn.functional.rms_norm(x, (D_MODEL,), state[f"{at}.weight"], 1e-3)
        return torch.nn.functional.layer_norm(x, (D_MODEL,), state[f"{at}.weight"], state[f"{at}.bias"], 1e-3)

    x = state["tok_embed.weight"][some_tokens()] + (state["pos.weight"][:POS] if kind == "standard" else 0)
    for at in ("layers.0", "layers.1"):
        read = normed(x, f"{at}.ln1")
        q, k, v = (linear(read, f"{at}.attn.{part}").unflatten(-1, (h, d)).transpose(1, 2) for part in "qkv")
        if kind == "rotary":
            q, k = (turned(y, {"rotary_adjacent_pairs": True}) for y in (q, k))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(mixed.transpose(1, 2).flatten(2), f"{at}.attn.o")
    expected = normed(x, "ln_out") @ state["head.weight"].mT
    found = from_transformer_lens(state, config).trace(some_tokens()).logits
    torch.testing.assert_close(found, expected, rtol=0, atol=EXACT)
    with pytest.raises(ValueError, match="n_heads: expected the number of heads in the configuration, got None"):
        from_transformer_lens(state, config | {"n_heads": None})
    with pytest.raises(ValueError, match=r"blocks.\*.mlp.fc_in.weight: an MLP is not linear"):
        from_transformer_lens(state | {"layers.0.mlp.fc_in.weight": normal(3, 3)}, config)


def refused(state: dict[str, Tensor], config: dict[str, Any]) -> str:
    with pytest.raises(ValueError, match="^These weights cannot be represented:") as caught:
        from_transformer_lens(state, config)
    return str(caught.value)


def test_all_complaints_come_at_once_and_by_name() -> None:
    state, config = written(8, normalization_type="LN", **POSITIONS[0])
    for layer in range(2):
        state[f"blocks.{layer}.mlp.W_in"] = torch.zeros(D_MODEL, 17)
    state["blocks.0.attn.W_K"] = state["blocks.0.attn.W_K"][:1]
    del state["ln_final.b"]
    said = refused(state, config | {"attn_only": False, "parallel_attn_mlp": True})
    for expected in (
        "attn_only: expected true, got false",
        "parallel_attn_mlp: expected false, got true",
        "blocks.*.mlp.W_in: an MLP is not linear",
        "ln_final.b: expected in the weights, found nothing",
        "blocks.0.attn.W_K: expected shape (3, 13, 6), got (1, 13, 6); grouped-query attention",
    ):
        assert expected in said
    assert len(said.splitlines()) == 6
    many = refused(state | {f"x{i:02}": torch.zeros(1) for i in range(30)}, config).splitlines()
    assert len(many) == 1 + 9
    assert many[-1] == "  - … and 25 more"


@pytest.mark.parametrize(
    ("name", "shape", "why"),
    [
        ("blocks.0.mlp.W_gate", (D_MODEL, 17), "an MLP is not linear in its input"),
        ("blocks.0.ln2.w", (D_MODEL,), "an MLP is not linear in its input"),
        ("blocks.0.attn._W_K", (1, D_MODEL, D_HEAD), "grouped-query attention"),
        ("blocks.0.attn.q_norm.w", (D_HEAD,), "not part of an attention-only model"),
        ("embed.ln.w", (D_MODEL,), "not part of an attention-only model"),
        ("pos_embed.W_pos", (N_CTX, D_MODEL), "not part of an attention-only model with this configuration"),
        ("ln_final.b", (D_MODEL,), "not part of an attention-only model with this configuration"),
    ],
)
def test_a_tensor_that_has_no_place_is_refused_by_name(name: str, shape: tuple[int, ...], why: str) -> None:
    state, config = written(9, normalization_type="RMS", **POSITIONS[2])
    said = refused(state | {name: torch.zeros(shape)}, config)
    assert f"{re.sub('blocks.[01]', 'blocks.*', name)}: {why}" in said
    assert len(said.splitlines()) == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"normalization_type": "BN"}, 'expected null or "LNPre" or "LN" or "RMSPre" or "RMS", got "BN"'),
        ({"positional_embedding_type": "alibi"}, 'expected "shortformer" or "standard" or "rotary", got "alibi"'),
        ({"attention_dir": "bidirectional"}, 'attention_dir: expected "causal", got "bidirectional"'),
        ({"attn_scores_soft_cap": 50.0}, "attn_scores_soft_cap: expected -1.0, got 50.0"),
        ({"use_local_attn": True}, "use_local_attn: expected false, got true"),
        ({"n_layers": 5}, "n_layers: expected 2, got 5; as in the weights"),
        ({"n_heads": 7}, "n_heads: expected 3, got 7"),
        ({"d_head": "6"}, 'd_head: expected 6, got "6"'),
        ({"use_attn_scale": "false"}, 'use_attn_scale: expected true or false, got "false"'),
        ({"eps": 0}, "eps: expected a number from 1e-12 to 1, got 0"),
        ({"rope_theta": 1e6}, "rope_theta: expected null, got 1000000.0; give it as rotary_base"),
        ({"rope_scaling": {"factor": 2}}, 'rope_scaling: expected null, got {"factor": 2}'),
        ({"n_key_value_heads": 1}, "n_key_value_heads: expected null or 3, got 1; grouped-query attention is not"),
        ({"d_vocab_out": 5}, "d_vocab_out: expected null or -1 or 23, got 5"),
        ({"rotary_dim": 0}, "rotary_dim: expected a number from 2 to 65536 or null or -1, got 0"),
        ({"n_ctx": None}, "n_ctx: expected a number from 1 to 65536, got null"),
        ({"n_ctx": 12}, "pos_embed.W_pos: expected shape (12, 13), got (11, 13)"),
    ],
)
def test_a_setting_that_cannot_be_met_is_refused_by_name(changed: dict[str, Any], said: str) -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    assert said in refused(state, config | changed)
    from_transformer_lens(state, config | {"d_vocab_out": 23, "normalization": None, "n_positions": N_CTX})


def test_what_the_weights_do_not_say_must_be_said() -> None:
    said = refused(written(11, normalization_type=None, **POSITIONS[0])[0], {})
    missing = {"n_ctx", "normalization_type", "positional_embedding_type"}
    assert {line.split(":")[0].strip(" -") for line in said.splitlines()[1:]} == missing


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("blocks.1.attn.W_Q", None, "blocks.1.attn.W_Q: expected in the weights, found nothing"),
        ("embed.W_E", None, "embed.W_E: expected in the weights, found nothing"),
        ("blocks.0.attn.W_Q", lambda t: t.mT, "blocks.0.attn.W_Q: expected shape (any, 13, any), got (3, 6, 13)"),
        ("unembed.b_U", lambda t: t[1:], "unembed.b_U: expected shape (23), got (22,)"),
        (
            "embed.W_E",
            lambda t: t.to(torch.float8_e4m3fn),
            "expected floating-point numbers within ±10000, got torch.float8",
        ),
        (
            "pos_embed.W_pos",
            lambda t: t / 0,
            "pos_embed.W_pos: expected floating-point numbers within ±10000, got up to inf",
        ),
        ("pos_embed.W_pos", lambda t: t * float("nan"), "within ±10000, got up to nan"),
        ("unembed.b_U", lambda t: 0 * t - 1.1e4, "within ±10000, got up to 11000"),
    ],
)
def test_a_tensor_that_is_missing_or_does_not_fit_is_named(name: str, change: Any, said: str) -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    tensor = state.pop(name)
    assert said in refused(state if change is None else state | {name: change(tensor)}, config)


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float32, torch.float64])
def test_a_rotary_table_that_the_configuration_does_not_give_is_refused(stored: torch.dtype) -> None:
    """Stored as TransformerLens does: computed in float32, then rounded."""
    state, config = written(12, normalization_type="LN", **POSITIONS[2])
    angle = torch.arange(1000)[:, None] / 10_000 ** (torch.arange(3) / 3).repeat(2)
    state["blocks.1.attn.rotary_cos"], state["blocks.1.attn.rotary_sin"] = angle.cos(), angle.sin()
    state = {name: t.to(stored) if t.is_floating_point() else t for name, t in state.items()}
    exact = {name: t.double() for name, t in state.items()}
    assert difference(from_transformer_lens(state, config), exact, config) < 1e-6
    other = state | {"blocks.1.attn.rotary_sin": state["blocks.1.attn.rotary_cos"]}
    wrong = ((state, {"rotary_base": 77}), (state, {"rotary_dim": 4}), (other, {}))
    for weights, change in wrong:
        with pytest.raises(ValueError, match="expected the table that rotary_dim, rotary_base and"):
            from_transformer_lens(weights, config | change)
    with pytest.raises(ValueError, match="rotary_dim: expected an even number up to d_head = 6, got 5"):
        from_transformer_lens(state, config | {"rotary_dim": 5})


@pytest.mark.parametrize("place", ["", "mine.json", "config.json"])
def test_a_file_is_read_with_its_configuration_wherever_that_lies(tmp_path: Path, place: str) -> None:
    """In the metadata of the file, or beside it, and in the words of older versions as well."""
    state, config = written(13, normalization_type="LN", **POSITIONS[0])
    older = {"n_ctx": N_CTX, "eps": config["eps"], "normalization": "LN", "shortformer_pos": True}
    path = tmp_path / "mine.safetensors"
    for words in (config, older):
        save_file(state, path, metadata=None if place else {"config": json.dumps(words)})
        if place:
            (tmp_path / place).write_text(json.dumps(words))
        model = open_weights(path, "any")
        assert isinstance(model, Opened)
        assert difference(model, state, config) < EXACT
    if place:
        (tmp_path / "mine.json").write_text(json.dumps({name: config[name] for name in config if name != "n_ctx"}))
        with pytest.raises(ValueError, match=r"mine.safetensors, with the configuration in .*mine.json: These weights"):
            open_weights(path, "any")


@pytest.mark.parametrize("norm", ["LN", "RMSPre", None])
@pytest.mark.parametrize("positions", POSITIONS)
def test_interventions_on_other_weights_are_those_of_hooks(norm: str | None, positions: dict[str, Any]) -> None:
    """Zero ablation removes the value bias and leaves b_O, as zeroing hook_z does."""
    state, config = written(7, 3, normalization_type=norm, **positions)
    tokens, early, late = some_tokens(), (0, 1), (1, 2)
    run = Run(from_transformer_lens(state, config), tokens)
    uniform = torch.ones(POS, POS).double().tril()
    uniform = uniform / uniform.sum(-1, keepdim=True)
    gain = state.get("blocks.1.ln1.w", 1)
    write = run.model.rescale(run.output(early), run.trace.scales[1])  # as layer 1 reads it
    cut = write * gain @ state["blocks.1.attn.W_K"][2]
    seen: dict[str, Tensor] = {}
    plain(state, config, tokens, {"hook_z 1.2": lambda z: seen.update(z=z) or z})
    mean = seen["z"].mean(0, keepdim=True).expand_as(seen["z"])
    changed = {
        "zero": (run.zero(early), {"hook_z 0.1": torch.zeros_like}),
        "two": (run.zero(early, late), {"hook_z 0.1": torch.zeros_like, "hook_z 1.2": torch.zeros_like}),
        "mean": (run.mean(late), {"hook_z 1.2": lambda z: mean}),
        "pattern": (run.force_pattern(early, uniform), {"hook_pattern 0.1": lambda p: uniform.expand_as(p)}),
        "half": (run.force_pattern(early, uniform / 2), {"hook_pattern 0.1": lambda p: uniform.expand_as(p) / 2}),
        "edge": (run.patch_edge(early, late, "K", torch.zeros_like(write)), {"hook_k 1.2": lambda k: k - cut}),
        "last": (run.zero((2, 0)), {"hook_z 2.0": torch.zeros_like}),
    }
    clean = plain(state, config, tokens)
    for name, (found, hooks) in changed.items():
        expected = plain(state, config, tokens, hooks)
        torch.testing.assert_close(found.logits(), expected, rtol=0, atol=EXACT, msg=name)
        losses = -expected[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)
        torch.testing.assert_close(found.losses(), losses, rtol=0, atol=EXACT, msg=name)
        assert (expected - clean).abs().max() > 1e-3, name
    alone = run.patched_layer(2, {("V", early): torch.zeros_like(write)})[0]  # losses by way of ``mixed``
    whole = run.patch_heads({(2, 0): alone.output})
    torch.testing.assert_close(run.replace({(2, 0): alone}).losses(), whole.losses(), rtol=0, atol=EXACT)
    torch.testing.assert_close(run.freeze_patterns().logits(), clean, rtol=0, atol=EXACT)
    torch.testing.assert_close(run.order_by_order()[-1], run.read, rtol=0, atol=EXACT)


def test_interventions_run_on_an_opened_checkpoint(tmp_path: Path) -> None:
    own, tokens = Transformer(MODEL, D_VOCAB, torch.Generator().manual_seed(3)).requires_grad_(False), some_tokens()
    save_checkpoint(tmp_path / "own.safetensors", own, "words")
    unlisted = "no manifest lists own.safetensors, so a damaged number in it is not noticed"
    with pytest.warns(UserWarning, match=unlisted), pytest.raises(ValueError, match="tokenizer words, got other"):
        open_weights(tmp_path / "own.safetensors", "other")
    with pytest.warns(UserWarning, match=unlisted):
        opened = open_weights(tmp_path / "own.safetensors", "words")
    for run in (Run, lambda *given: Run(*given).zero((0, 0)), lambda *given: Run(*given).resample((1, 0))):
        assert torch.equal(run(opened, tokens).losses(), run(own, tokens).losses())
    exact = converted(opened, torch.float64)
    assert exact.trace(tokens).logits.dtype == torch.float64
    assert opened.trace(tokens).logits.dtype == torch.float32


def test_a_checkpoint_that_differs_from_its_manifest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model" / "checkpoints" / "00000001.safetensors"
    path.parent.mkdir(parents=True)
    save_checkpoint(path, Transformer(MODEL, D_VOCAB, torch.Generator()), "words")
    write_manifest(tmp_path / "model")
    open_weights(path, "words")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"00000001.safetensors: expected the file that .*manifest.json lists, got"):
        open_weights(path, "words")
    copy = path.rename(tmp_path / "copy.safetensors")
    with pytest.warns(UserWarning, match="no manifest lists copy.safetensors"):
        open_weights(copy, "words")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pth").write_bytes(b"\x80\x02.")
    (tmp_path / "half.safetensors").write_bytes(b"\x00" * 5)
    save_file({"embed.W_E": torch.zeros(2, 3)}, tmp_path / "bare.safetensors")
    for name, said in (
        ("model.pth", "expected a .safetensors file, got a pickle.*docs/your-weights.md"),
        ("none.safetensors", "expected a .safetensors file, found none; check WEIGHTS"),
        ("half.safetensors", "expected a whole safetensors file"),
        ("bare.safetensors", "expected its configuration in bare.json or config.json, found neither"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=said):
            open_weights(tmp_path / name, "any")
    for content, said in (("[]", "expected the settings of a model by name"), ("{", "config.json: expected JSON")):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(ValueError, match=said):
            open_weights(tmp_path / "bare.safetensors", "any")


def test_a_layer_number_beyond_the_tensors_is_refused() -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    said = refused(state | {"blocks.99999999999.attn.W_Q": torch.ones(1)}, config)
    assert "expected layers that are numbered from 0, got a layer 99999999999" in said


def test_keys_that_are_not_read_are_named(tmp_path: Path) -> None:
    state, config = written(13, normalization_type="LN", **POSITIONS[0])
    known = {"model_name": "mine", "seed": 3, "d_mlp": None, "NTK_by_parts_factor": 8.0, "tokenizer_name": "words"}
    for further, names in ((known, None), (known | {"embed_noise": 1, "rotary_bse": 2}, "embed_noise, rotary_bse")):
        save_file(state, tmp_path / "mine.safetensors", metadata={"config": json.dumps(config | further)})
        with warnings.catch_warnings(record=True, action="always") as warned:
            open_weights(tmp_path / "mine.safetensors", "any")
        assert [str(w.message).rpartition(", got ")[2] for w in warned] == ([names] if names else [])
