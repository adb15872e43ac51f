"""The public interface gives what is known of hand-made weights, and names what is wrong."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split, Whitespace

import pathsum
from pathsum import Model, hand_made
from pathsum.text.tokenizer import tokenizer_hash
from pathsum.training.loop import train
from tests.imported.models import POSITIONS, written
from tests.training.small import CELL, D_VOCAB, windows

TEXT = "some words some words"


@pytest.fixture(scope="module")
def toy() -> Model:
    return hand_made.induction_pair()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model that this project has trained on letters."""
    folder = tmp_path_factory.mktemp("models") / "L2H2S3"
    folder.mkdir()
    names = ["<|bos|>", *"abcdefghijklmnopqr"]
    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}))
    tokenizer.pre_tokenizer = Split(Regex("."), "isolated")
    tokenizer.save(str(folder / "tokenizer.json"))
    train(CELL, D_VOCAB, tokenizer_hash(tokenizer), (windows(0), windows(1)), folder, lambda _: None, "cell")
    return folder


def foreign(folder: Path, names: list[str]) -> Path:
    """Write weights of another library with their tokenizer."""
    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="the"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    state, config = written(1, normalization_type="LN", **POSITIONS[1])
    save_file({name: tensor.float() for name, tensor in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_package_lists_its_interface() -> None:
    assert dir(pathsum) == ["Attention", "Model", "export", "hand_made", "load"]
    assert pathsum.Model is Model
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        _ = pathsum.lod


def test_heads_have_the_roles_that_they_were_made_for(toy: Model) -> None:
    table = toy.heads().set_index(["layer", "head"])
    assert table.role.tolist() == ["previous token", "induction"]
    assert table.previous_token[0, 0] == pytest.approx(1)
    assert table.prefix_matching[1, 0] > 0.4  # letters occur more than once in a block
    assert table.prefix_matching_low[1, 0] <= table.prefix_matching[1, 0] <= table.prefix_matching_high[1, 0]
    assert (table.prefix_matching_chance < 0.1).all()
    assert table.copying_positivity[1, 0] == pytest.approx(1)
    assert toy.induction_pair() == ((0, 0), (1, 0))


def test_without_a_match_there_is_no_pair() -> None:
    """Negative control: an induction head that prefers nothing attends uniformly."""
    blind = hand_made.induction_pair(strength=0.0)
    assert blind.induction_pair() is None
    assert blind.heads().role.tolist() == ["previous token", ""]


def test_the_pair_composes_by_its_keys_alone(toy: Model) -> None:
    table = toy.composition(rotations=200).set_index("kind")
    assert table.index[0] == "K"
    assert table.score["K"] == pytest.approx(1 / len(toy.words) ** 0.5)  # partial isometries of this rank
    assert table.score["Q"] == pytest.approx(0, abs=1e-12)


def test_paths_add_up_to_the_logit(toy: Model) -> None:
    """The induction head writes the next letter 10 times; other paths add nothing to it."""
    table = toy.paths(TEXT, position=TEXT.rindex("w") + 1)  # BOS stands before the text
    assert table.attrs == {"token": "w", "target": "o"}
    logits = toy.run(TEXT).logits()[0, TEXT.rindex("w") + 1]
    assert table.nats.sum() == pytest.approx((logits[toy.words.index("o")] - logits.mean()).item(), abs=1e-4)
    assert table.path[0] == "L1H0"
    assert table.nats[0] == pytest.approx(10, abs=0.5)
    assert toy.paths(TEXT, target="q").attrs["target"] == "q"


def test_patterns_and_runs_are_those_of_the_model(toy: Model) -> None:
    attention = toy.attention("abab")
    assert attention.words == ["<|bos|>", "a", "b", "a", "b"]
    assert attention.of((1, 0)).iloc[3].idxmax() == "b"
    assert torch.allclose(torch.tensor(attention.of((1, 0)).to_numpy()).sum(-1), torch.ones(5))
    run = toy.run(TEXT)
    cost = run.zero((1, 0)).losses() - run.losses()
    second = TEXT.rindex("some")
    assert cost[0, second + 1 : second + 4].min() > 2  # "ome" of the second "some"
    axes = attention.plot((1, 0))
    assert [label.get_text() for label in axes.get_xticklabels()] == attention.words


def test_skip_trigrams_are_those_of_the_circuits(toy: Model) -> None:
    """The induction head copies, and without the previous-token head it compares nothing: its QK circuit is 0."""
    assert toy.skip_trigrams((1, 0)).empty
    found = toy.skip_trigrams((1, 0), n=3, text="ab ab ab ab ab")
    assert len(found) == 3
    assert (found.source == found.out).all()
    assert (found.effect_nats > 0).all()
    assert found.effect_nats.is_monotonic_decreasing


def test_several_texts_are_cut_to_the_shortest(toy: Model) -> None:
    with pytest.warns(UserWarning, match="hand-made induction pair: texts are cut to 2 tokens"):
        assert toy.tokens(["abc", "ab"]).tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.warns(UserWarning, match=f"texts are cut to {hand_made.N_CTX - 1} tokens"):
        assert toy.tokens("a" * 100).shape == (1, hand_made.N_CTX)
    assert toy.tokens(torch.tensor([0, 3])).tolist() == [[0, 3]]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda m: m.tokens(""), "expected text with at least one token"),
        (lambda m: m.tokens("A"), "expected text that the tokenizer can encode, got: WordLevel error"),
        (lambda m: m.tokens(torch.tensor([99])), "expected ids from 0 to 27, got 99"),
        (lambda m: m.skip_trigrams((2, 0)), r"expected a head \(layer, head\) from \(0, 0\) to \(1, 0\), got \(2, 0\)"),
        (lambda m: m.skip_trigrams((1, 0), n=0), "expected n ≥ 1"),
        (lambda m: m.paths("ab", position=3), "expected a position from 0 to 2, got 3"),
        (
            lambda m: m.paths("ab", target="ab"),
            r"expected one of the model's tokens \(a space is ␣\), such as 'b', 'a', got 'ab'",
        ),
        (
            lambda m: m.attention("ab").of((1, 1)),
            r"expected a head \(layer, head\) from \(0, 0\) to \(1, 0\), got \(1, 1\)",
        ),
        (lambda m: pathsum.export(m, "out", "onnx"), "expected to='torch' or to='transformer_lens', got 'onnx'"),
        (lambda m: m.history(), "expected the log of its training"),
        (lambda _: pathsum.load("modls/L2H4S5"), "expected a model's folder or a .safetensors file, found none"),
        (lambda _: hand_made.induction_pair("aa"), "expected different letters"),
    ],
)
def test_what_is_wrong_is_named(toy: Model, asked: object, said: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        asked(toy)  # type: ignore[operator]


def test_a_model_of_another_library_answers_as_well(tmp_path: Path) -> None:
    names = ["the", "cup", "and", "spoon", "plate", "<|endoftext|>"]
    model = pathsum.load(foreign(tmp_path, names))
    ids = model.tokens("the cup and the spoon")
    assert [model.words[i] for i in ids[0].tolist()] == ["<|endoftext|>", "the", "cup", "and", "the", "spoon"]
    paths = model.paths("the cup and the spoon")
    logits = model.net.trace(ids).logits[0, -1]
    assert paths.nats.sum() == pytest.approx((logits.max() - logits.mean()).item(), abs=1e-6)
    assert {"positions", "biases of L0", "biases of L1", "b_U"} <= set(paths.path)
    assert len(model.heads()) == len(model.places)


def test_a_trained_model_has_its_history_and_its_checkpoints(trained: Path, tmp_path: Path) -> None:
    model, first = pathsum.load(str(trained)), pathsum.load(trained, step=0)
    history = model.history()
    assert history.groupby("step").size().eq(len(model.places)).all()
    assert not torch.equal(model.weights.W_E, first.weights.W_E)
    with pytest.raises(ValueError, match="expected a step that has a checkpoint"):
        pathsum.load(trained, step=1_000_000)
    shutil.copy(max((trained / "checkpoints").iterdir()), tmp_path / "alone.safetensors")
    with pytest.raises(FileNotFoundError, match="tokenizer.json: expected the tokenizer"):
        pathsum.load(tmp_path / "alone.safetensors")
