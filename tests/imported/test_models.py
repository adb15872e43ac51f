"""Weights that TransformerLens wrote give its logits. Its forward pass is written out here independently."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from pathsum.circuits.folding import centre, fold_gains
from pathsum.core.manifest import write_manifest
from pathsum.imported.model import CheckpointModel, Rotation, TransformerLensModel
from pathsum.imported.open_weights import open_weights
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.interventions.run import Run
from pathsum.model.checkpoint import save_checkpoint
from pathsum.model.transformer import Transformer
from tests.imported.models import BATCH, D_HEAD, D_MODEL, D_VOCAB, N_CTX, N_HEADS, POS, POSITIONS, some_tokens, written
from tests.training.small import MODEL

EXACT = 1e-10  # float64: 2e-16 a rounding, over some thousands of terms


def plain(state: dict[str, Tensor], config: dict[str, Any], tokens: Tensor) -> Tensor:
    """Compute TransformerLens's forward pass head by head, with row vectors as there."""

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
    where = state["pos_embed.W_pos"][:pos] if kind != "rotary" else torch.zeros(pos, D_MODEL).double()
    if kind == "standard":
        x = x + where
    for layer in range(config["n_layers"]):
        at, out = f"blocks.{layer}.attn", 0
        read = normed(f"blocks.{layer}.ln1", x)
        looking = read + where if kind == "shortformer" else read
        for h in range(N_HEADS):
            q = looking @ state[f"{at}.W_Q"][h] + state[f"{at}.b_Q"][h]
            k = looking @ state[f"{at}.W_K"][h] + state[f"{at}.b_K"][h]
            v = read @ state[f"{at}.W_V"][h] + state[f"{at}.b_V"][h]
            if kind == "rotary":
                q, k = turned(q, config), turned(k, config)
            scores = q @ k.mT / (math.sqrt(D_HEAD) if config.get("use_attn_scale", True) else 1)
            scores = scores.masked_fill(torch.ones(pos, pos).triu(1).bool(), -math.inf)
            out = out + scores.softmax(-1) @ v @ state[f"{at}.W_O"][h]
        x = x + out + state[f"{at}.b_O"]
    return normed("ln_final", x) @ state["unembed.W_U"] + state["unembed.b_U"]


def turned(x: Tensor, config: dict[str, Any]) -> Tensor:
    """Return each pair as a complex number, multiplied by e^(i · position · frequency)."""
    x, wave = x.clone(), config.get("rotary_dim", D_HEAD)
    for j in range(wave // 2):
        pair = [2 * j, 2 * j + 1] if config.get("rotary_adjacent_pairs") else [j, j + wave // 2]
        angle = torch.arange(x.shape[1]).double() / config.get("rotary_base", 10_000) ** (2 * j / wave)
        z = torch.complex(x[..., pair[0]], x[..., pair[1]]) * torch.polar(torch.ones_like(angle), angle)
        x[..., pair[0]], x[..., pair[1]] = z.real, z.imag
    return x


def difference(model: TransformerLensModel, state: dict[str, Tensor], config: dict[str, Any]) -> float:
    return (model(some_tokens()) - plain(state, config, some_tokens())).abs().max().item()


@pytest.mark.parametrize("n_layers", [0, 1, 3])
@pytest.mark.parametrize("norm", ["LN", "LNPre", "RMS", "RMSPre", None])
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_logits_are_those_of_the_library(n_layers: int, norm: str | None, positions: dict[str, Any]) -> None:
    state, config = written(1, n_layers, normalization_type=norm, **positions)
    assert difference(from_transformer_lens(state, config), state, config) < EXACT


@pytest.mark.parametrize("left_out", ["use_attn_scale", "biases", "buffers"])
def test_what_may_be_left_out_may_be(left_out: str) -> None:
    state, config = written(2, normalization_type="LN", **POSITIONS[0])
    full = state
    if left_out == "use_attn_scale":
        config["use_attn_scale"] = False
    if left_out == "biases":
        gone = {name for name in state if ".attn.b_" in name or name == "unembed.b_U"}
        state = {name: t for name, t in state.items() if name not in gone}
        full = full | {name: 0 * full[name] for name in gone}
    if left_out == "buffers":
        state = {name: t for name, t in state.items() if not name.endswith(("mask", "IGNORE"))}
    assert difference(from_transformer_lens(state, config), full, config) < EXACT


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
    assert difference(replace(model, folded=right), state, config) < EXACT
    assert difference(replace(model, folded=wrong), state, config) > 0.05


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
    assert model.to(torch.float32)(some_tokens()).dtype == torch.float32


@pytest.mark.parametrize("wrong", [-1, D_VOCAB])
def test_an_id_that_the_model_does_not_have_is_refused(wrong: int) -> None:
    state, config = written(13, normalization_type=None, **POSITIONS[0])
    tokens = some_tokens()
    tokens[0, 1] = wrong
    with pytest.raises(ValueError, match=f"expected ids from 0 to {D_VOCAB - 1}, got .*{wrong}"):
        from_transformer_lens(state, config).trace(tokens)


def test_with_bos_first_two_ids_are_exchanged_and_nothing_else() -> None:
    state, config = written(6, normalization_type="RMS", **POSITIONS[2])
    model, bos = from_transformer_lens(state, config), 17
    order = torch.arange(D_VOCAB)
    order[[0, bos]] = order[[bos, 0]]
    renamed = model.bos_first(bos)(order[some_tokens()])
    torch.testing.assert_close(renamed[..., order], model(some_tokens()), rtol=0, atol=EXACT)


def test_a_model_of_some_ids_has_their_logits() -> None:
    model = from_transformer_lens(*written(6, normalization_type="LN", **POSITIONS[1]))
    ids = torch.tensor([0, 2, 5, 21])
    tokens = torch.tensor([[0, 3, 1, 1, 2]])
    torch.testing.assert_close(model.only(ids)(tokens), model(ids[tokens])[..., ids], rtol=0, atol=EXACT)
    own = CheckpointModel(Transformer(MODEL, D_VOCAB, torch.Generator()))
    assert own.only(torch.arange(D_VOCAB)) is own
    with pytest.raises(ValueError, match="TOKENIZER: expected the 23 ids of the checkpoint, got 4"):
        own.only(ids)


def test_a_window_longer_than_the_context_is_refused() -> None:
    model = from_transformer_lens(*written(7, normalization_type=None, **POSITIONS[0]))
    with pytest.raises(ValueError, match="at most n_ctx = 11 tokens, got 12"):
        model(torch.zeros(1, 12, dtype=torch.int64))


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
        "attn_only: expected True, got False",
        "parallel_attn_mlp: expected False, got True",
        "blocks.*.mlp.W_in: an MLP is not linear",
        "ln_final.b: expected in the state dict, found nothing",
        "blocks.0.attn.W_K: expected shape (3, 13, 6), got (1, 13, 6); grouped-query attention",
    ):
        assert expected in said
    assert len(said.splitlines()) == 6


@pytest.mark.parametrize(
    ("name", "shape", "why"),
    [
        ("blocks.0.mlp.W_gate", (D_MODEL, 17), "an MLP is not linear in its input"),
        ("blocks.0.ln2.w", (D_MODEL,), "an MLP is not linear in its input"),
        ("blocks.0.attn._W_K", (1, D_MODEL, D_HEAD), "grouped-query attention"),
        ("blocks.0.attn.q_norm.w", (D_HEAD,), "not part of an attention-only model"),
        ("embed.ln.w", (D_MODEL,), "not part of an attention-only model"),
        ("pos_embed.W_pos", (N_CTX, D_MODEL), "rotary positions have no position vectors"),
        ("ln_final.b", (D_MODEL,), "a norm of this normalization_type has no such parameter"),
    ],
)
def test_a_tensor_that_has_no_place_is_refused_by_name(name: str, shape: tuple[int, ...], why: str) -> None:
    state, config = written(9, normalization_type="RMS", **POSITIONS[2])
    said = refused(state | {name: torch.zeros(shape)}, config)
    assert f"{name.replace('blocks.0', 'blocks.*')}: {why}" in said
    assert len(said.splitlines()) == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"normalization_type": "BN"}, 'normalization_type: expected one of null, LNPre, LN, RMSPre, RMS, got "BN"'),
        ({"positional_embedding_type": "alibi"}, 'expected one of shortformer, standard, rotary, got "alibi"'),
        ({"attention_dir": "bidirectional"}, "attention_dir: expected 'causal', got 'bidirectional'"),
        ({"attn_scores_soft_cap": 50.0}, "attn_scores_soft_cap: expected -1.0, got 50.0"),
        ({"n_layers": 5}, "n_layers: expected 2 as in the weights, got 5"),
        ({"n_heads": 7}, "n_heads: expected 3 as in the weights, got 7"),
        ({"d_head": "6"}, "d_head: expected 6 as in the weights, got '6'"),
        ({"use_attn_scale": "false"}, "use_attn_scale: expected true or false, got 'false'"),
        ({"eps": 0}, "eps: expected a number from 1e-12 to 1, got 0"),
        ({"rotary_bse": 10}, "rotary_bse: expected rotary_base, got a key that is not read; rename it"),
        ({"rope_theta": 10}, "rope_theta: expected rotary_base, got a key that is not read; rename it"),
        ({"rope_scaling": {"factor": 2}}, "rope_scaling: expected None, got {'factor': 2}"),
        ({"n_key_value_heads": 1}, "n_key_value_heads: expected null or n_heads = 3; grouped-query attention is not"),
        ({"d_vocab_out": 5}, "d_vocab_out: expected -1 or d_vocab = 23, got 5"),
        ({"rotary_dim": 0}, "rotary_dim: expected a number from 2 to"),
        ({"n_ctx": None}, "n_ctx: expected the context length, got None"),
        ({"n_ctx": 12}, "pos_embed.W_pos: expected shape (12, 13), got (11, 13)"),
    ],
)
def test_a_setting_that_cannot_be_met_is_refused_by_name(changed: dict[str, Any], said: str) -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    assert said in refused(state, config | changed)


@pytest.mark.parametrize(
    ("usual", "other", "said"),
    [
        ("", "model.", ["model.embed.W_E: expected the name embed.W_E; rename all 24 such tensors"]),
        (
            "blocks.",
            "blocks.0",
            ["blocks.00.attn.W_Q: expected the name blocks.0.attn.W_Q; rename all 20 such tensors"],
        ),
        (
            "blocks.0.attn.W_Q",
            "blocks.0.attn.W_q",
            [
                "blocks.*.attn.W_q: not part of an attention-only model, so its effect would be lost",
                "blocks.0.attn.W_Q: expected in the state dict, found nothing; check the names in the file",
            ],
        ),
    ],
)
def test_tensors_under_other_names_are_to_be_renamed(usual: str, other: str, said: list[str]) -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    named = {name.replace(usual, other, 1) if name.startswith(usual) else name: t for name, t in state.items()}
    assert refused(named, config).splitlines()[1:] == [f"  - {line}" for line in said]


@pytest.mark.parametrize("name", ["tok_embed.weight", "layers.0.attn.q.weight", "blocks.1.attn.o.bias"])
def test_weights_of_a_bridge_are_refused_with_the_version_that_writes_others(name: str) -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    said = "expected a name of HookedTransformer, got one of TransformerLens 4; save with transformer_lens<4"
    assert refused({name: torch.zeros(2, 3), "head.weight": torch.zeros(3, 2)}, config).splitlines()[1:] == [
        f"  - {name}: {said}"
    ]
    assert "TransformerLens 4" not in refused(state | {"blocks.0.attn.weight": torch.zeros(2)}, config)


def test_many_complaints_are_cut_and_counted() -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    said = refused(state | {f"x{i:02}": torch.zeros(1) for i in range(30)}, config).splitlines()
    assert said[8:] == [
        "  - x07: not part of an attention-only model, so its effect would be lost",
        "  - … and 22 more",
    ]


def test_more_heads_of_keys_than_of_queries_are_no_grouped_query_attention() -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    state["blocks.0.attn.W_K"] = torch.zeros(5, D_MODEL, D_HEAD)
    assert "grouped" not in refused(state, config)


def test_a_missing_context_is_one_complaint_that_names_its_file(tmp_path: Path) -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    save_file(state, tmp_path / "mine.safetensors")
    (tmp_path / "mine.json").write_text(json.dumps({name: config[name] for name in config if name != "n_ctx"}))
    with pytest.raises(
        ValueError, match=r"mine.safetensors, with the configuration in .*mine.json: These we"
    ) as caught:
        open_weights(tmp_path / "mine.safetensors", "")
    assert len(str(caught.value).splitlines()) == 2


def test_a_mask_that_is_not_causal_is_refused() -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    causal = torch.ones(N_CTX, N_CTX).tril().bool()
    from_transformer_lens(state | {"blocks.0.attn.mask": causal}, config)
    from_transformer_lens(state | {"blocks.0.attn.IGNORE": torch.tensor(-1e5)}, config)
    said = "blocks.0.attn.IGNORE: expected a score that no key after the query survives"
    assert said in refused(state | {"blocks.0.attn.IGNORE": torch.tensor(0.0)}, config)
    said = "blocks.1.attn.mask: expected 1 for keys up to the query and 0 after it"
    assert said in refused(state | {"blocks.1.attn.mask": causal.mT}, config)


def test_keys_that_are_not_read_are_named(tmp_path: Path) -> None:
    state, config = written(13, normalization_type="LN", **POSITIONS[0])
    known = {"model_name": "mine", "seed": 3, "d_mlp": None, "NTK_by_parts_factor": 8.0, "tokenizer_name": "words"}
    for further, names in ((known, None), (known | {"embed_noise": 1, "lr": 2}, "embed_noise, lr")):
        save_file(state, tmp_path / "mine.safetensors", metadata={"config": json.dumps(config | further)})
        with warnings.catch_warnings(record=True, action="always") as warned:
            open_weights(tmp_path / "mine.safetensors", "any")
        assert [str(w.message).rpartition(": ")[2] for w in warned] == ([names] if names else [])


@pytest.mark.parametrize("biases", [True, False])
def test_an_absent_bias_of_the_unembedding_is_told_if_there_are_other_biases(tmp_path: Path, biases: bool) -> None:
    state, config = written(13, normalization_type="LN", **POSITIONS[0])
    kept = {name: t for name, t in state.items() if name != "unembed.b_U" and (biases or ".attn.b_" not in name)}
    save_file(kept, tmp_path / "mine.safetensors", metadata={"config": json.dumps(config)})
    with warnings.catch_warnings(record=True, action="always") as warned:
        open_weights(tmp_path / "mine.safetensors", "any")
    assert ["no unembed.b_U, which is taken as 0" in str(w.message) for w in warned] == [True] * biases


def test_a_setting_of_the_other_library_may_stand_beside_ours() -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    from_transformer_lens(state, config | {"n_positions": N_CTX, "d_vocab_out": 23, "normalization": None})


def test_a_parameter_that_one_layer_lacks_is_named_with_its_layer() -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    del state["blocks.1.attn.W_Q"]
    assert "blocks.1.attn.W_Q: expected in the state dict, found nothing" in refused(state, config)
    bias = written(10, normalization_type=None, **POSITIONS[0])[0]
    del bias["blocks.1.attn.b_Q"]
    assert "blocks.1.attn.b_Q: expected in the state dict, found nothing" in refused(bias, config)
    del state["blocks.0.attn.W_Q"]
    assert "blocks.*.attn.W_Q: expected in the state dict, found nothing" in refused(state, config)


def test_transposed_queries_are_blamed_on_the_file() -> None:
    state, config = written(10, normalization_type=None, **POSITIONS[0])
    state |= {name: tensor.mT.contiguous() for name, tensor in state.items() if name.endswith("W_Q")}
    said = refused(state, config)
    assert "blocks.0.attn.W_Q: expected n_heads × d_model × d_head numbers" in said
    assert "configuration" not in said


@pytest.mark.parametrize("name", ["unembed.b_U", "pos_embed.W_pos", "blocks.0.attn.b_Q", "blocks.1.attn.W_Q"])
def test_weights_of_which_float32_would_lose_digits_are_refused(name: str) -> None:
    state, config = written(14, normalization_type=None, **POSITIONS[0])
    from_transformer_lens(state | {name: torch.full_like(state[name], -1e4)}, config)
    said = refused(state | {name: torch.full_like(state[name], -1.1e4)}, config)
    assert f"{name}: expected weights from -10000 to 10000, got one of size 11000; scale the weights" in said


def test_weights_of_eight_bits_are_refused() -> None:
    state, config = written(15, normalization_type=None, **POSITIONS[0])
    said = refused(state | {"embed.W_E": state["embed.W_E"].to(torch.float8_e4m3fn)}, config)
    assert "embed.W_E: expected finite floating-point numbers, got NaN, infinity or another type" in said


def test_what_the_weights_do_not_say_must_be_said() -> None:
    state, _ = written(11, normalization_type=None, **POSITIONS[0])
    said = refused(state, {"n_ctx": N_CTX})
    assert "normalization_type: expected one of null, LNPre, LN, RMSPre, RMS, got nothing; set it in" in said
    assert "positional_embedding_type: expected one of shortformer, standard, rotary, got nothing" in said


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("read", [None, torch.float32])
def test_a_rotary_table_is_compared_in_the_precision_that_holds_it(
    stored: torch.dtype, read: torch.dtype | None
) -> None:
    """Stored as TransformerLens does: computed in float32, then rounded. A file may also have been made float32
    later."""
    state, config = written(12, normalization_type="LN", **POSITIONS[2])
    angle = torch.arange(1000)[:, None] / 10_000 ** (torch.arange(3) / 3).repeat(2)
    for layer in range(2):
        state[f"blocks.{layer}.attn.rotary_cos"], state[f"blocks.{layer}.attn.rotary_sin"] = angle.cos(), angle.sin()
    state = {name: t.to(stored).to(read or stored) if t.is_floating_point() else t for name, t in state.items()}
    exact = {name: t.double() for name, t in state.items()}
    assert difference(from_transformer_lens(state, config), exact, config) < 1e-6
    with pytest.raises(ValueError, match="expected the table that rotary_dim, rotary_base and"):
        from_transformer_lens(state, config | {"rotary_base": 9_000})


def test_a_rotary_table_with_nan_is_blamed_itself() -> None:
    state, config = written(12, normalization_type=None, **POSITIONS[2])
    state["blocks.0.attn.rotary_cos"] = torch.full((N_CTX, D_HEAD), math.nan)
    said = refused(state, config)
    assert "blocks.0.attn.rotary_cos: expected finite floating-point numbers, got NaN, infinity or" in said


def test_a_rotary_table_that_the_configuration_does_not_give_is_refused() -> None:
    state, config = written(12, normalization_type=None, **POSITIONS[2])
    turn = from_transformer_lens(state, config).rotation
    assert isinstance(turn, Rotation)
    state["blocks.0.attn.rotary_cos"] = turn.cos.clone()
    assert difference(from_transformer_lens(state, config), state, config) < EXACT
    with pytest.raises(ValueError, match="rotary_cos: expected the table that rotary_dim, rotary_base and"):
        from_transformer_lens(state, config | {"rotary_base": 77})
    for name, table in {
        "1.attn.rotary_cos": 2 * turn.cos,
        "1.attn.rotary_sin": turn.cos,
        "0.attn.rotary_sin": torch.ones(3),
    }.items():
        with pytest.raises(ValueError, match=rf"blocks.{name}: expected the table that rotary_dim, rotary_base and"):
            from_transformer_lens(state | {f"blocks.{name}": table}, config)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"n_ctx": 11, "n_ctx": 12}', "expected each key once, got 'n_ctx' twice; remove the wrong one"),
        ('{"n_ctx": 11}'.encode("utf-16"), "expected text in UTF-8, got other bytes"),
    ],
)
def test_a_configuration_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    state, _ = written(13, normalization_type="LN", **POSITIONS[0])
    save_file(state, tmp_path / "mine.safetensors")
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        open_weights(tmp_path / "mine.safetensors", "")


@pytest.mark.parametrize("place", ["metadata", "beside", "folder"])
def test_a_file_is_read_with_its_configuration_wherever_that_lies(tmp_path: Path, place: str) -> None:
    state, config = written(13, normalization_type="LN", **POSITIONS[0])
    path = tmp_path / "mine.safetensors"
    save_file(state, path, metadata={"config": json.dumps(config)} if place == "metadata" else None)
    if place != "metadata":
        (tmp_path / {"beside": "mine.json", "folder": "config.json"}[place]).write_text(json.dumps(config))
    model = open_weights(path, "any")
    assert isinstance(model, TransformerLensModel)
    assert difference(model, state, config) < EXACT


def test_a_configuration_beside_weights_that_have_their_own_is_told(tmp_path: Path) -> None:
    state, config = written(13, normalization_type="LN", **POSITIONS[0])
    save_file(state, tmp_path / "mine.safetensors", metadata={"config": json.dumps(config)})
    (tmp_path / "config.json").write_text("{}")
    with pytest.warns(
        UserWarning, match="config.json is not read, because mine.safetensors has an entry config of its"
    ):
        open_weights(tmp_path / "mine.safetensors", "any")


def test_older_words_for_positions_and_norm_are_understood(tmp_path: Path) -> None:
    state, config = written(14, normalization_type="LN", **POSITIONS[0])
    older = {"n_ctx": N_CTX, "eps": config["eps"], "normalization": "LN", "shortformer_pos": True}
    save_file(state, tmp_path / "old.safetensors", metadata={"config": json.dumps(older)})
    model = open_weights(tmp_path / "old.safetensors", "any")
    assert isinstance(model, TransformerLensModel)
    assert difference(model, state, config) < EXACT
    both = {"config": json.dumps(older | {"positional_embedding_type": "standard"})}
    save_file(state, tmp_path / "both.safetensors", metadata=both)
    with pytest.raises(ValueError, match="positional_embedding_type is 'standard', but 'shortformer' under the older"):
        open_weights(tmp_path / "both.safetensors", "any")


def test_this_project_s_own_checkpoint_is_read_as_what_it_is(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "own.safetensors", Transformer(MODEL, D_VOCAB, torch.Generator()), "words")
    unlisted = "no manifest lists own.safetensors, so a damaged number in it is not noticed"
    with pytest.warns(UserWarning, match=unlisted):
        assert isinstance(open_weights(tmp_path / "own.safetensors", "words"), CheckpointModel)
    with pytest.warns(UserWarning, match=unlisted), pytest.raises(ValueError, match="tokenizer words, got other"):
        open_weights(tmp_path / "own.safetensors", "other")


def test_interventions_run_on_an_opened_checkpoint_and_refuse_other_weights(tmp_path: Path) -> None:
    own, tokens = Transformer(MODEL, D_VOCAB, torch.Generator().manual_seed(3)).requires_grad_(False), some_tokens()
    save_checkpoint(tmp_path / "own.safetensors", own, "words")
    with pytest.warns(UserWarning, match="no manifest lists own.safetensors"):
        opened = open_weights(tmp_path / "own.safetensors", "words")
    for run in (Run, lambda *given: Run(*given).zero((0, 0)), lambda *given: Run(*given).resample((1, 0))):
        assert torch.equal(run(opened, tokens).losses(), run(own, tokens).losses())
    exact = opened.to(torch.float64)
    assert exact.trace(tokens).logits.dtype == torch.float64
    assert opened.trace(tokens).logits.dtype == torch.float32
    with pytest.raises(ValueError, match="^Run: expected a model of this project, got a TransformerLensModel$"):
        Run(from_transformer_lens(*written(0, normalization_type=None, **POSITIONS[0])), tokens)


def test_a_checkpoint_that_differs_from_its_manifest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model" / "checkpoints" / "00000001.safetensors"
    path.parent.mkdir(parents=True)
    save_checkpoint(path, Transformer(MODEL, D_VOCAB, torch.Generator()), "words")
    write_manifest(tmp_path / "model")
    assert isinstance(open_weights(path, "words"), CheckpointModel)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"00000001.safetensors: expected the file that .*manifest.json lists"):
        open_weights(path, "words")
    (tmp_path / "model" / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="manifest.json: expected the hashes of the model's files, got something else"):
        open_weights(path, "words")
    copy = path.rename(tmp_path / "copy.safetensors")
    with pytest.warns(UserWarning, match="no manifest lists copy.safetensors"):
        assert isinstance(open_weights(copy, "words"), CheckpointModel)


def test_files_that_cannot_be_read_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "model.pth").write_bytes(b"\x80\x02.")
    with pytest.raises(ValueError, match="expected a .safetensors file, got a pickle.*docs/your-weights.md"):
        open_weights(tmp_path / "model.pth", "any")
    with pytest.raises(FileNotFoundError, match="expected a .safetensors file, found none; check WEIGHTS"):
        open_weights(tmp_path / "none.safetensors", "any")
    (tmp_path / "half.safetensors").write_bytes(b"\x00" * 5)
    with pytest.raises(ValueError, match="expected a whole safetensors file"):
        open_weights(tmp_path / "half.safetensors", "any")
    save_file({"embed.W_E": torch.zeros(2, 3)}, tmp_path / "bare.safetensors")
    with pytest.raises(FileNotFoundError, match="expected its configuration in bare.json or config.json next to it"):
        open_weights(tmp_path / "bare.safetensors", "any")
