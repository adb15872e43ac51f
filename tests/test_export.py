"""Models that are written for other libraries give the same logits there, and when they are opened again."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor, nn

import pathsum
from pathsum.api import Model
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.model.transformer import Transformer
from pathsum.text.bos import BOS_TEXT
from pathsum.text.tokenizer import Codec
from tests.extraction.small import cell_of_shape
from tests.imported.models import POSITIONS, written
from tests.imported.test_models import plain

CLOSE = 1e-5
OWN = [
    {"positions": p, "norm": n} for p in ("relative", "sinusoidal", "rotary", "none") for n in ("rms", "layer", "none")
]


def own(**shape: Any) -> Model:
    """Return a model of this project with random weights and position biases."""
    g = torch.Generator().manual_seed(0)
    config = cell_of_shape(**{"d_head": 6, **shape}).model
    net = Transformer(config, 23, g).eval().requires_grad_(False)
    for p in net.parameters():
        p.add_(0.2 * torch.randn(p.shape, generator=g))
    words = [BOS_TEXT, *(f"w{i}" for i in range(1, 23))]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="w1"))
    tokenizer.pre_tokenizer = Whitespace()
    return Model(net, Codec(tokenizer, words), "own")


def tokens(model: Model) -> Tensor:
    return torch.randint(1, 23, (2, model.net.n_ctx), generator=torch.Generator().manual_seed(1))


def reference(folder: Path) -> nn.Module:
    """Run the module that lies beside the weights, as somebody without this project would."""
    spec = importlib.util.spec_from_file_location("reference", folder / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    about = json.loads((folder / "config.json").read_text())
    made: nn.Module = module.Model(load_file(folder / "model.safetensors"), **about["model"])
    return made


@pytest.mark.parametrize("shape", OWN)
def test_a_module_of_torch_alone_gives_the_same_logits_and_so_does_the_model_opened_again(
    tmp_path: Path, shape: dict[str, Any]
) -> None:
    model = own(**shape)
    folder, x = pathsum.export(model, tmp_path / "out"), tokens(model)
    expected = model.net(x)
    torch.testing.assert_close(reference(folder)(x), expected, rtol=0, atol=CLOSE)
    torch.testing.assert_close(pathsum.load(folder).net(x), expected, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("norm", ["LN", "RMS", None])
@pytest.mark.parametrize("positions", POSITIONS)
def test_weights_from_elsewhere_are_exported_as_well(
    tmp_path: Path, norm: str | None, positions: dict[str, Any]
) -> None:
    net, like = from_transformer_lens(*written(2, normalization_type=norm, **positions)), own()
    model = Model(net, like.codec, "foreign")
    folder, x = pathsum.export(model, tmp_path), tokens(like)[:, :7]
    torch.testing.assert_close(reference(folder).double()(x), net(x), rtol=0, atol=1e-10)
    torch.testing.assert_close(pathsum.load(folder).net(x), net(x), rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="got weights of another library"):
        pathsum.export(model, tmp_path, "transformer_lens")


def test_hooks_on_the_module_reach_patterns_and_head_outputs(tmp_path: Path) -> None:
    model = own()
    x, run = tokens(model), model.run(tokens(model))
    made = reference(pathsum.export(model, tmp_path))
    seen: dict[str, Tensor] = {}
    layer: Any = made.layers[0]  # type: ignore[index]
    with torch.no_grad():
        handle = layer.pattern.register_forward_hook(lambda _, __, out: seen.update(pattern=out))
        made(x)
        handle.remove()
        torch.testing.assert_close(seen["pattern"], run.trace.patterns[0], rtol=0, atol=CLOSE)
        keep = torch.tensor([1.0, 0.0])[:, None, None]
        layer.result.register_forward_hook(lambda _, __, out: out * keep)
        torch.testing.assert_close(made(x), run.zero((0, 1)).logits(), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("shape", OWN)
def test_the_names_of_transformer_lens_give_the_same_logits_by_its_forward_pass(
    tmp_path: Path, shape: dict[str, Any]
) -> None:
    """Relative positions need the hook: without it, the logits are others."""
    model = own(**shape)
    folder, x = pathsum.export(model, tmp_path, "transformer_lens"), tokens(model)
    state, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    bias = {name: state.pop(name) for name in [*state] if name.endswith("score_bias")}
    assert bool(bias) == (shape["positions"] == "relative")
    expected = model.net(x)
    far = torch.arange(x.shape[1])
    distance = (far[:, None] - far).clamp(min=0)
    added = {(layer, h): b[distance] for layer, heads in enumerate(bias.values()) for h, b in enumerate(heads)}
    hooks = {f"hook_attn_scores {layer}.{h}": b.add for (layer, h), b in added.items()}
    torch.testing.assert_close(plain(state, config, x, hooks), expected, rtol=0, atol=CLOSE)
    torch.testing.assert_close(pathsum.load(folder).net(x), expected.double(), rtol=0, atol=CLOSE)
    if bias:
        assert (plain(state, config, x) - expected).abs().max() > 0.1


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    for to in ("torch", "transformer_lens"):
        with pytest.raises(ValueError, match="got smeared keys"):
            pathsum.export(own(smeared_keys=True), tmp_path, to)
    assert not list(tmp_path.iterdir())


def test_an_export_in_half_precision_is_computed_in_float32(tmp_path: Path) -> None:
    pathsum.export(own(), tmp_path)
    state = {name: tensor.bfloat16() for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    save_file(state, tmp_path / "model.safetensors")
    assert pathsum.load(tmp_path).weights.W_E.dtype == torch.float32
