"""Equal weights give equal checkpoint bytes, and files of other origin are refused."""

from __future__ import annotations

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


def test_a_checkpoint_gives_back_the_same_weights(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.safetensors", model(), "words")
    again = load_checkpoint(tmp_path / "a.safetensors", "words")
    assert weights_hash(again) == weights_hash(model()) != weights_hash(model(seed=4))
    assert again.config == CONFIG


def test_equal_weights_give_equal_bytes(tmp_path: Path) -> None:
    for name in "ab":
        save_checkpoint(tmp_path / f"{name}.safetensors", model(), "words")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_a_writer_killed_half_way_leaves_one_draft_that_the_next_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer with random draft names would leave one more file at each kill."""
    path = tmp_path / "a.safetensors"
    with monkeypatch.context() as killed:
        killed.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                save_checkpoint(path, model(), "words")
            assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors.draft"]
    save_checkpoint(path, model(), "words")
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.safetensors", model(), "words")
    with pytest.raises(ValueError, match="trained with tokenizer words, got other; weights mean nothing"):
        load_checkpoint(tmp_path / "a.safetensors", "other")


def test_a_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, model(), "words")
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"expected a whole safetensors checkpoint, got a truncated or foreign file"):
        load_checkpoint(path, "words")


def test_a_foreign_file_and_a_missing_one_are_named(tmp_path: Path) -> None:
    save_file({"blocks.0.W_Q": torch.zeros(2)}, tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match=r"without pathsum's header \(it holds \['blocks.0.W_Q'\] …\)"):
        load_checkpoint(tmp_path / "a.safetensors", "words")
    with pytest.raises(FileNotFoundError, match="expected a checkpoint at .*b.safetensors, found none"):
        load_checkpoint(tmp_path / "b.safetensors", "words")
