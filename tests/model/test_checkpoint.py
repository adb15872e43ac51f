"""Equal weights give equal checkpoint bytes, and files of other origin are refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from pathsum.config import ModelConfig
from pathsum.model.checkpoint import load_checkpoint, save_checkpoint, weights_hash
from pathsum.model.transformer import Transformer

CONFIG = ModelConfig(
    n_layers=2, n_heads=2, d_head=5, d_model=10, embedding_std=0.3, n_ctx=13, positions="relative", norm="none",
    smeared_keys=True,
)  # fmt: skip


def model(seed: int = 3) -> Transformer:
    return Transformer(CONFIG, 17, torch.Generator().manual_seed(seed))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "a.safetensors", model(), "words")
    return tmp_path / "a.safetensors"


def test_a_checkpoint_gives_back_the_same_weights_and_equal_weights_give_equal_bytes(path: Path) -> None:
    again = load_checkpoint(path, "words")
    assert weights_hash(again) == weights_hash(model()) != weights_hash(model(seed=4))
    assert again.config == CONFIG
    save_checkpoint(path.with_name("b"), again, "words")
    assert path.with_name("b").read_bytes() == path.read_bytes()


def test_a_writer_killed_half_way_leaves_one_draft_that_the_next_takes_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                save_checkpoint(path, model(), "words")
    assert {p.name for p in path.parent.iterdir()} == {"a.safetensors", "a.safetensors.draft"}
    save_checkpoint(path, model(), "words")
    assert [p.name for p in path.parent.iterdir()] == ["a.safetensors"]


def test_another_tokenizer_and_what_is_no_checkpoint_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="trained with tokenizer words, got other; train again"):
        load_checkpoint(path, "other")
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match="expected a whole safetensors file, got another"):
        load_checkpoint(path, "words")
    save_file({"blocks.0.W_Q": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="expected pathsum's header with model and d_vocab, got None"):
        load_checkpoint(path, "words")
    with pytest.raises(FileNotFoundError, match="expected a checkpoint at .*b.safetensors, found none"):
        load_checkpoint(path.with_name("b.safetensors"), "words")
