"""A configuration that cannot be run is refused before any work, with all problems in one message."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pathsum.complaints import missing
from pathsum.config import (
    UNREAD,
    CalibrateConfig,
    CellConfig,
    ConfigError,
    ModelConfig,
    SweepConfig,
    SyntheticModelConfig,
    TokenizerConfig,
    TrackingConfig,
    TrainConfig,
    load,
)
from pathsum.corpora.corpus import load_corpus, sources
from pathsum.corpora.python_sources import PythonCorpus
from tests.training.small import CELL, TRAIN

MODEL = {**CELL.model.model_dump()}


def refusal(values: dict[str, object], kind: type = ModelConfig) -> str:
    with pytest.raises(ConfigError) as error:
        load(kind, values, "model")
    return str(error.value)


def test_a_misspelt_key_is_named_with_the_nearest_valid_one() -> None:
    assert "model.n_haeds: no such setting; did you mean n_heads?" in refusal({**MODEL, "n_haeds": 4})
    assert "model.zzz: no such setting; known: clamp, d_head, d_model, embedding_std" in refusal({**MODEL, "zzz": 4})


def test_a_value_that_was_never_set_is_named() -> None:
    assert "model.d_model: has no value yet (???); set it in conf/" in refusal({**MODEL, "d_model": "???"})
    assert list(missing({"paths": ["a", "???"]})) == ["paths.1"]


def test_a_missing_value_is_named() -> None:
    assert "model.norm: is required and was not given" in refusal({k: v for k, v in MODEL.items() if k != "norm"})


def test_every_complaint_comes_at_once() -> None:
    text = refusal({**MODEL, "n_haeds": 4, "d_model": "???", "norm": "batch", "n_ctx": 3})
    assert text.count("\n  - ") == 4
    assert "model.norm: expected 'none', 'rms' or 'layer', got 'batch'" in text
    assert "model.n_ctx: expected a number from 8 to 65,536 tokens, got 3" in text
    assert "8 to 65,536 tokens, got {'a': 9}" in refusal({**MODEL, "n_ctx": {"a": 9}})


def test_any_number_of_heads_goes_with_any_width() -> None:
    assert load(ModelConfig, {**MODEL, "n_heads": 3}, "model").d_head == MODEL["d_head"]


def test_heads_that_cannot_be_are_refused() -> None:
    assert "expected n_heads and d_head of at least 1, got 0 and 5" in refusal({**MODEL, "n_heads": 0})


def test_zero_layers_have_no_heads() -> None:
    bare = load(ModelConfig, {**MODEL, "n_layers": 0}, "model")
    assert (bare.n_heads, bare.d_head) == (0, 0)


def test_a_value_in_place_of_a_section_is_told_and_so_is_a_key_that_is_no_text() -> None:
    said = refusal({"seed": 0, "model": MODEL, "train": 5}, CellConfig)
    assert "model.train: expected settings by name, got 5" in said
    assert "overrides.L1H2S0" in refusal({"overrides": {"L1H2S0": {1: 2}}}, SweepConfig)


def test_nested_places_are_spelt_out() -> None:
    values = {**CELL.model_dump(), "model": {**MODEL, "n_haeds": 4}}
    assert "model.model.n_haeds: no such setting; did you mean n_heads?" in refusal(values, CellConfig)


def test_zero_layers_have_no_heads_whatever_a_sweep_says() -> None:
    assert load(ModelConfig, {**MODEL, "n_layers": 0, "n_heads": 7}, "model").n_heads == 0


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        CELL.model.n_heads = 3


def test_a_corpus_is_of_the_kind_its_source_names() -> None:
    python = {"source": "python", "name": "p", "validation_share": 0.1, "distributions": ["a"], "max_documents": 3}
    assert {"python", "text", "hub", "synthetic"} <= sources().keys()
    assert isinstance(load_corpus(python), PythonCorpus)
    with pytest.raises(ConfigError, match=f"corpus.source: expected one of {', '.join(sources())}, got 'pile'"):
        load_corpus({**python, "source": "pile"})
    with pytest.raises(ConfigError, match=r"corpus.paths: no such setting"):
        load_corpus({**python, "paths": ["a"]})


CORPUS = {
    "source": "synthetic", "name": "synthetic", "validation_share": 0.0, "seed": 0, "n_words": 31, "zipf": 0.0,
    "bigram_spread": 1.0, "two_back_spread": 0.0, "n_skip_trigrams": 0, "questions": False, "n_answers": 0,
    "repeat_share": 0.0,
    "words_per_document": MODEL["n_ctx"], "max_documents": 307,
}  # fmt: skip
TOGETHER = {**MODEL, "norm": "rms", "positions": "relative"}
SYNTHETIC = {
    "corpus": CORPUS,
    "model": {**TOGETHER, "n_heads": 1},
    "train": {**TRAIN.model_dump(), **UNREAD["train"]},
}


def test_a_document_of_a_synthetic_model_fills_a_window() -> None:
    assert load(SyntheticModelConfig, SYNTHETIC, "synthetic").corpus.words_per_document == 13
    text = refusal({**SYNTHETIC, "corpus": {**CORPUS, "words_per_document": 17}}, SyntheticModelConfig)
    assert "model: a document must fill a window: expected words_per_document = n_ctx = 13, got 17" in text


def test_a_single_layer_of_a_synthetic_model_has_one_head() -> None:
    text = refusal({**SYNTHETIC, "model": {**TOGETHER, "n_layers": 1, "n_heads": 2}}, SyntheticModelConfig)
    assert "model: a one-layer model needs one head, whose role is then known; got 2" in text
    for n_layers, n_heads in ((2, 2), (0, 0)):
        described = {**SYNTHETIC, "model": {**TOGETHER, "n_layers": n_layers, "n_heads": 2}}
        assert load(SyntheticModelConfig, described, "synthetic").model.n_heads == n_heads


@pytest.mark.parametrize(("section", "name", "given"), [
    ("train", "device", "cuda"), ("train", "autocast", True), ("train", "shuffled", True),
    ("train", "repeat_weight", 3.0), ("train", "eval_windows", 32), ("train", "resume_every_seconds", 1.0),
    ("corpus", "seed", 5), ("corpus", "validation_share", 0.5),
])  # fmt: skip
def test_what_synthetic_models_do_not_read_is_refused(section: str, name: str, given: object) -> None:
    values = {**SYNTHETIC, section: {**SYNTHETIC[section], name: given}}
    said = refusal(values, SyntheticModelConfig)
    assert f"synthetic models do not read it: expected {section}.{name}=" in said


def test_training_has_whole_steps() -> None:
    step = TRAIN.batch * MODEL["n_ctx"]
    train = {**TRAIN.model_dump(), "autocast": False}
    for given in (0, step):
        assert load(CellConfig, {"seed": 0, "model": MODEL, "train": {**train, "tokens": given}}, "cell")
    said = refusal({"seed": 0, "model": MODEL, "train": {**train, "tokens": step - 1}}, CellConfig)
    assert f"expected train.tokens of 0 or at least train.batch · model.n_ctx = {step:,}, got {step - 1:,}" in said


def test_a_vocabulary_needs_two_bytes_of_text_for_each_merge() -> None:
    assert load(TokenizerConfig, {"d_vocab": 307, "train_bytes": 100}, "tokenizer")
    said = refusal({"d_vocab": 307, "train_bytes": 99}, TokenizerConfig)
    assert "expected train_bytes of at least 2 (d_vocab − 257) = 100, got 99; raise train_bytes" in said


def test_the_training_of_synthetic_models_has_whole_steps() -> None:
    step = TRAIN.batch * MODEL["n_ctx"]
    values = {**SYNTHETIC, "train": {**SYNTHETIC["train"], "tokens": step - 1}}
    assert f"expected train.tokens of 0 or at least train.batch · model.n_ctx = {step:,}" in refusal(
        values, SyntheticModelConfig
    )


def test_a_misspelt_key_of_a_synthetic_model_is_named_where_it_stands() -> None:
    text = refusal({**SYNTHETIC, "corpus": {**CORPUS, "repeat_shar": 0.5}, "trian": {}}, SyntheticModelConfig)
    assert "model.corpus.repeat_shar: no such setting; did you mean repeat_share?" in text
    assert "model.trian: no such setting; did you mean train?" in text


def test_spreads_and_frequencies_of_synthetic_text_are_not_negative() -> None:
    wrong = {**CORPUS, "zipf": -1.0, "bigram_spread": -1.0, "two_back_spread": -1.0}
    text = refusal({**SYNTHETIC, "corpus": wrong}, SyntheticModelConfig)
    assert [f"model.corpus.{key}: expected a number from 0 to 20 nats, got -1.0" in text
            for key in ("zipf", "bigram_spread", "two_back_spread")] == [True] * 3  # fmt: skip


def test_calibration_needs_two_seeds_and_a_synthetic_model() -> None:
    right = {
        "seeds": [0, 1],
        "tuning_seeds": [2],
        "rotations": 10,
        "corpus": {},
        "model": {},
        "train": {},
        "synthetic_models": {"copies": {"model": {"n_layers": 2}}},
    }
    assert load(CalibrateConfig, right, "calibrate").seeds == (0, 1)
    shared = refusal({**right, "model": {"n_layers": 3}}, CalibrateConfig)
    assert "expected no model.n_layers for all kinds, because each kind states its own" in shared
    copies = {"model": {"n_layers": 2}}
    misspelt = refusal({**right, "synthetic_models": {"copies": copies, "copy": {"train": {}}}}, CalibrateConfig)
    said = (
        "synthetic_models.copy: expected its model.n_layers, such as 2, got none; or is it meant to be one of copies?"
    )
    assert said in misspelt
    twice = refusal({**right, "synthetic_models": {"copies": copies, "COPIES": copies}}, CalibrateConfig)
    assert "synthetic_models: expected names that differ by more than case" in twice
    text = refusal({**right, "seeds": [0], "synthetic_models": {}, "synthetic_model": {}}, CalibrateConfig)
    assert text.count("\n  - ") == 3
    assert "model.seeds: expected a list of 2 or more, got [0]" in text
    assert "model.synthetic_models: expected a list of 1 or more" in text
    assert "model.synthetic_model: no such setting; did you mean synthetic_models?" in text


@pytest.mark.parametrize("key", ["project", "entity"])
def test_a_name_in_an_address_of_wandb_has_no_separator(key: str) -> None:
    right = {"mode": "offline", "project": "p", "group": "g", "entity": ""}
    assert load(TrackingConfig, right, "tracking")
    said = refusal({**right, key: "a/b"}, TrackingConfig)
    assert f"model.{key}: expected at most 128 characters and none of" in said


def test_the_weight_of_repeats_falls_to_1_within_training() -> None:
    led = {**TRAIN.model_dump(), "repeat_weight": 3}
    assert load(TrainConfig, {**led, "repeat_tokens": TRAIN.tokens}, "train").repeat_tokens == TRAIN.tokens
    with pytest.raises(ConfigError, match=r"expected repeat_tokens of at most tokens = 1560, got 1561"):
        load(TrainConfig, {**led, "repeat_tokens": 1561}, "train")
    with pytest.raises(ConfigError, match="repeat_weight"):
        load(TrainConfig, {**led, "repeat_weight": 0.5}, "train")
