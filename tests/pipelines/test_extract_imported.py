"""`make extract`: from files of another library to a folder of tables. Every mistake is reported in one message."""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from pathsum.config import TokenizerConfig
from pathsum.model.checkpoint import save_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.text.tokenizer import tokenizer_hash, train_tokenizer
from pipelines.extract_imported import arguments, extract
from pipelines.paths import ROOT
from tests.imported.models import POSITIONS, written
from tests.training.small import MODEL

TEXT = "the cup and the spoon\n" * 60
SKIPS = {"skip_trigrams", "skip_trigram_bugs", "skip_trigram_tallies"}
TABLES = {"heads", "eigenvalues", "composition", "distances", "bigrams"} | SKIPS


def run(**given: str) -> None:
    options = {"weights": "mine.safetensors", "tokenizer": "tokenizer.json", "text": "*.txt"} | given
    extract(arguments([f"--{name}={value}" for name, value in options.items()]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with weights in TransformerLens's names, a tokenizer whose BOS has the last id, and a text."""
    names = ["the", "cup", "and", "spoon", "<unk>", "<|endoftext|>"]
    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "text.txt").write_text(TEXT)
    state, config = written(1, normalization_type="LN", **POSITIONS[1])
    save_file({name: tensor.float() for name, tensor in state.items()}, tmp_path / "mine.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the variable is read at import alone
    return tmp_path


def test_an_imported_model_becomes_a_folder_of_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run()
    made = folder / "imported" / "mine"
    assert {p.stem for p in made.glob("*.csv")} == TABLES
    summary = json.loads((made / "summary.json").read_text())
    assert summary["exactness"] < 1e-12
    assert (summary["n_layers"], summary["n_heads"], summary["d_vocab"]) == (2, 3, 23)
    assert summary["tokenizer_ids"] == 6
    printed = capsys.readouterr()
    assert f'"exactness": {summary["exactness"]}' in printed.out
    pairs = pd.read_csv(made / "bigrams.csv")
    assert {("the", "cup"), ("and", "the")} <= set(zip(pairs.token, pairs.next, strict=True))
    before = {p.name: p.read_bytes() for p in made.iterdir()}
    said = printed.err
    assert "pathsum: the tokenizer has 6 of the model's 23 ids; the others count in losses only" in said
    assert "are replaced" not in said
    run()
    assert "mine: the tables of an earlier call are replaced; give --out to keep them" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in made.iterdir()} == before


def test_this_project_s_own_checkpoint_needs_its_own_tokenizer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = train_tokenizer([TEXT], TokenizerConfig(d_vocab=260, train_bytes=500))
    tokenizer.save(str(folder / "own.json"))
    model = Transformer(MODEL, 260, torch.Generator().manual_seed(0))
    save_checkpoint(folder / "own.safetensors", model, tokenizer_hash(tokenizer))
    monkeypatch.setenv("HOME", str(folder / "home"))
    run(weights="own.safetensors", tokenizer="own.json", out="~/elsewhere")
    assert not (folder / "~").exists()
    assert json.loads((folder / "home" / "elsewhere" / "summary.json").read_text())["exactness"] < 1e-12
    with pytest.raises(ValueError, match="trained with tokenizer"):
        run(weights="own.safetensors")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": "", "text": ""}, "expected all of WEIGHTS, TOKENIZER and TEXT, got no WEIGHTS and no TEXT"),
        ({"weights": "model.pth"}, "expected a .safetensors file, got a pickle"),
        ({"weights": "none.safetensors"}, "found none; check WEIGHTS"),
        ({"weights": "owner/name"}, "owner/name: expected a local file, or a hub repository with model.safetensors"),
        ({"tokenizer": "none.json"}, "TOKENIZER: expected a JSON file of the tokenizers library, got none.json"),
        ({"text": "none/*.txt"}, "TEXT: expected UTF-8 text files"),
        ({"bos": "<s>"}, "BOS: expected one token of <s> in TOKENIZER, got none"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_written(folder: Path, given: dict[str, str], said: str) -> None:
    with pytest.raises((ValueError, OSError), match=said):
        run(**given)
    assert not (folder / "imported").exists()


def test_a_folder_with_other_files_is_left_alone(folder: Path) -> None:
    (folder / "tokens").mkdir()
    (folder / "tokens" / "tokenizer.json").write_text("{}")
    before = {p: p.read_bytes() for p in folder.rglob("*.*") if p.is_file()}
    for out, named in (("tokens", "tokenizer.json"), (".", "config.json")):
        with pytest.raises(
            ValueError, match=f"expected an empty folder, or that of an earlier .* got one with {named}"
        ):
            run(out=out)
    assert {p: p.read_bytes() for p in folder.rglob("*.*") if p.is_file()} == before
