"""A report page carries the models of its lab: opened from it, they compute what they do on the page."""

from pathlib import Path

import pytest
import torch

import pathsum
from tests.report.conftest import OTHER
from tests.report.page.small import HOSTILE, documents, other_tokenizer, random_model, tokenizer

NAMES = ("L0S0", "L1H2S0", "L2H2S0")


def test_the_models_of_a_page_open_as_they_run_there(full: Path) -> None:
    words = other_tokenizer()
    models = {name: (random_model(n, n_layers=n, n_heads=2), tokenizer()) for n, name in enumerate(NAMES)}
    models[OTHER] = (random_model(9, words.get_vocab_size(), n_heads=2), words)
    for name, (model, spelled) in models.items():
        opened = pathsum.load(full / "index.html", name=name)
        with pytest.warns(UserWarning, match="texts are cut to"):
            tokens = opened.tokens([text for text in (*documents()[:3], *HOSTILE) if len(text) > 40])
        torch.testing.assert_close(opened.net(tokens), model(tokens), rtol=0, atol=1e-5)
        for text in HOSTILE:
            assert opened.codec.tokenizer.encode(text).ids == spelled.encode(text).ids
            assert opened.codec.tokenizer.decode(spelled.encode(text).ids) == spelled.decode(spelled.encode(text).ids)
    assert pathsum.load(full / "index.html").name == NAMES[-1]


def test_a_page_without_the_model_is_refused(full: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a report whose lab has L9, got one with L0S0, L1H2S0, L2H2S0"):
        pathsum.load(full / "index.html", name="L9")
    (tmp_path / "other.html").write_text("<p>nothing</p>")
    with pytest.raises(ValueError, match="expected a report whose lab has a model, got one with none"):
        pathsum.load(tmp_path / "other.html")


def test_a_model_with_further_parts_is_refused(full: Path, tmp_path: Path) -> None:
    page = (full / "index.html").read_text(encoding="utf-8").replace('"name":"L2H2S0"', '"further":"","name":"L2H2S0"')
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with pytest.raises(ValueError, match="L2H2S0 has biases, LayerNorm or other positions"):
        pathsum.load(tmp_path / "page.html")
