"""A configuration that cannot be run is refused before any work, with all problems in one message."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from pathsum.config import (
    MOST_TOKENS_PER_STEP,
    UNREAD,
    CalibrateConfig,
    CellConfig,
    ConfigError,
    ExtractConfig,
    Frozen,
    ModelConfig,
    SweepConfig,
    SyntheticModelConfig,
    TokenizerConfig,
    TrackingConfig,
    TrainConfig,
    load,
)
from pathsum.text.corpus import load_corpus, sources
from pathsum.text.python_sources import PythonCorpus
from tests.extraction.small import HOW
from tests.training.small import CELL, MODEL, TRAIN

STEP = TRAIN.batch * MODEL.n_ctx
SWEEP: dict[str, Any] = {
    "n_layers": [0, 2], "n_heads": [4], "d_head": [], "seeds": [2, 3], "by_layers": {}, "overrides": {}, "controls": {},
}  # fmt: skip
CORPUS = {
    "source": "synthetic", "name": "synthetic", "validation_share": 0.0, "seed": 0, "n_words": 31, "zipf": 0.0,
    "bigram_spread": 1.0, "two_back_spread": 0.0, "n_skip_trigrams": 0, "questions": False, "n_answers": 0,
    "repeat_share": 0.0, "words_per_document": MODEL.n_ctx, "max_documents": 307,
}  # fmt: skip
PYTHON = {"source": "python", "name": "p", "validation_share": 0.1, "distributions": ["a"], "max_documents": 3}
CALIBRATE = {
    "seeds": [0, 1], "tuning_seeds": [2], "rotations": 10, "corpus": {}, "model": {}, "train": {},
    "synthetic_models": {"copies": {"model": {"n_layers": 2}}},
}  # fmt: skip
RIGHT: dict[type[Frozen], dict[str, Any]] = {
    ModelConfig: MODEL.model_dump(),
    TrainConfig: TRAIN.model_dump(),
    CellConfig: CELL.model_dump(),
    ExtractConfig: HOW.model_dump(),
    SweepConfig: SWEEP,
    CalibrateConfig: CALIBRATE,
    TokenizerConfig: {"d_vocab": 307, "train_bytes": 100},
    TrackingConfig: {"mode": "offline", "project": "my project_2.0", "group": "g", "entity": ""},
    SyntheticModelConfig: {
        "corpus": CORPUS,
        "model": {**MODEL.model_dump(), **UNREAD["model"], "n_heads": 1},
        "train": {**TRAIN.model_dump(), **UNREAD["train"]},
    },
}


def complaints(kind: type[Frozen], change: dict[str, Any]) -> list[str]:
    """Return what is said of a right configuration with a change, given by dotted places. None removes a setting."""
    try:
        load(kind, _changed(RIGHT[kind], change), "it")
    except ConfigError as error:
        return error.complaints
    return []


def _changed(values: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    for place, value in change.items():
        first, _, rest = place.partition(".")
        inner = _changed(values.get(first, {}), {rest: value}) if rest else value
        values = {key: old for key, old in {**values, first: inner}.items() if old is not None}
    return values


@pytest.mark.parametrize("kind", RIGHT, ids=lambda kind: kind.__name__)
def test_a_right_configuration_is_read_and_frozen(kind: type[Frozen]) -> None:
    config = load(kind, RIGHT[kind], "it")
    with pytest.raises(ValidationError, match="frozen"):
        setattr(config, next(iter(kind.model_fields)), 3)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (ModelConfig, {"n_haeds": 4}, "it.n_haeds: no such setting; did you mean n_heads?"),
        (ModelConfig, {"zzz": 4}, "it.zzz: no such setting; known: clamp, d_head, d_model, embedding_std"),
        (CellConfig, {"model.n_haeds": 4}, "it.model.n_haeds: no such setting; did you mean n_heads?"),
        (CellConfig, {"train": 5}, "it.train: expected settings by name, got 5"),
        (CellConfig, {"seed": 10**23}, f"it.seed: expected at most 72,057,594,037,927,935, got {10**23}"),
        (ModelConfig, {"d_model": "???"}, "it.d_model: has no value yet (???); set it in conf/"),
        (ModelConfig, {"norm": None}, "it.norm: is required and was not given"),
        (ModelConfig, {"norm": "batch"}, "it.norm: expected 'none', 'rms' or 'layer', got 'batch'"),
        (ModelConfig, {"n_ctx": 3}, "it.n_ctx: expected at least 8, got 3 (positions of an input, that of BOS"),
        (ModelConfig, {"n_heads": 0}, "expected n_heads and d_head of at least 1, got 0 and 5"),
        (TrainConfig, {"batch": 1.0}, "it.batch: expected a whole number, got 1.0 (windows per step)"),
        (TrainConfig, {"batch": True}, "it.batch: expected a whole number, got True"),
        (TrainConfig, {"batch": 10**12}, "it.batch: expected at most 65,536, got 1000000000000"),
        (TrainConfig, {"lr_attention": "1e-3"}, "it.lr_attention: expected a number, got '1e-3'"),
        (TrainConfig, {"lr_attention": math.nan}, "it.lr_attention: expected a finite number, got nan"),
        (TrainConfig, {"lr_attention": 0}, "it.lr_attention: expected at least 1e-09, got 0"),
        (TrainConfig, {"betas": [0.9]}, "it.betas.1: is required and was not given"),
        (TrainConfig, {"betas": [0.9] * 3}, "it.betas: expected a list of 2 at most, got [0.9, 0.9, 0.9]"),
        (TrainConfig, {"betas": 0.9}, "it.betas: expected a list in brackets, got 0.9"),
        (TrainConfig, {"shuffled": "yes"}, "it.shuffled: expected true or false, got 'yes'"),
        (TrainConfig, {"device": "mps"}, "it.device: expected 'auto', 'cpu' or 'cuda', got 'mps'"),
        (TrainConfig, {"repeat_weight": 0.5}, "it.repeat_weight: expected at least 1.0, got 0.5"),
        (TrainConfig, {"repeat_weight": 3, "repeat_tokens": 1561}, "expected repeat_tokens of at most tokens = 1560"),
        (CellConfig, {"train.tokens": STEP - 1}, f"at least train.batch · model.n_ctx = {STEP:,}, got {STEP - 1:,}"),
        (CellConfig, {"train.batch": 65_536, "model.n_ctx": 512}, f"of at most {MOST_TOKENS_PER_STEP:,} tokens, got"),
        (TokenizerConfig, {"train_bytes": 99}, "expected train_bytes of at least 2 (d_vocab − 257) = 100, got 99"),
        (ExtractConfig, {"windows": 102}, "expected exactness_windows <= windows <= held_out_windows"),
        (ExtractConfig, {"top_k": [4]}, "it.top_k: expected a whole number, got [4] (entries kept per table)"),
        (TrackingConfig, {"project": ""}, "it.project: expected a text that is not empty, got ''"),
        (SweepConfig, {"n_heads": 4}, "it.n_heads: expected a list in brackets, got 4"),
        (SweepConfig, {"seeds": []}, "it.seeds: expected a list of 1 or more, got []"),
        (SweepConfig, {"seeds": [0.5]}, "it.seeds.0: expected a whole number, got 0.5"),
        (SweepConfig, {"seeds": [0, 0]}, "it.seeds: expected different numbers, got [0, 0]"),
        (SweepConfig, {"by_layers": {"two": {}}}, "it.by_layers.two: expected a valid integer"),
        (SweepConfig, {"by_layers": {2: {"model": {"n_heads": 1}}}}, "it.by_layers.2: model.n_heads: the name of a"),
        (SweepConfig, {"overrides.L2H4S0.seed": {"a": 7}}, "it.overrides.L2H4S0: expected changes of model and train"),
        (SweepConfig, {"controls.mine": 3}, "it.controls.mine: expected settings by name, got 3"),
        (SweepConfig, {"controls": {"../x": {}}}, "it.controls.../x: expected at most 64 letters, digits and _"),
        (SweepConfig, {"controls.l2h2s7": {}}, "and no name of a grid's model, got 'l2h2s7'"),
        (SweepConfig, {"controls.a.train.tokns": 5}, "it.controls.a: train.tokns: no such setting; did you mean tok"),
        (CalibrateConfig, {"seeds": [0]}, "it.seeds: expected a list of 2 or more, got [0]"),
        (CalibrateConfig, {"seeds": [0, 2]}, "expected seeds that are not in tuning_seeds, got 2"),
        (SyntheticModelConfig, {"corpus.words_per_document": 17}, "expected words_per_document = n_ctx = 13, got 17"),
        (SyntheticModelConfig, {"corpus.zipf": -1.0}, "it.corpus.zipf: expected at least 0.0, got -1.0"),
        (SyntheticModelConfig, {"model.n_layers": 1, "model.n_heads": 2}, "a one-layer model needs one head"),
        (SyntheticModelConfig, {"train.device": "cuda"}, "are alike: expected train.device=cpu, got cuda"),
        (SyntheticModelConfig, {"train.tokens": STEP - 1}, "expected train.tokens of 0 or at least"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_named(kind: type[Frozen], change: dict[str, Any], said: str) -> None:
    found = complaints(kind, change)
    assert len(found) == 1
    assert said in found[0]


def test_every_complaint_comes_at_once() -> None:
    places = [line.split(":")[0] for line in complaints(ModelConfig, {"n_haeds": 4, "d_model": "???", "n_ctx": 3})]
    assert sorted(places) == ["it.d_model", "it.n_ctx", "it.n_haeds"]


def test_every_number_of_the_configuration_has_bounds() -> None:
    kinds = [*RIGHT, *(source.settings for source in sources().values())]
    schemas = [kind.model_json_schema() for kind in kinds]
    sections = [section for schema in schemas for section in (schema, *schema.get("$defs", {}).values())]
    checked = 0
    for name, field in ((name, field) for section in sections for name, field in section["properties"].items()):
        items = field.get("prefixItems") or [field.get("items", field)]
        for item in items if isinstance(items, list) else []:
            if item.get("type") in ("integer", "number"):
                assert {"minimum", "exclusiveMinimum"} & item.keys(), name
                assert {"maximum", "exclusiveMaximum"} & item.keys(), name
                checked += 1
    assert checked > 50


def test_zero_layers_have_no_heads_whatever_a_sweep_says() -> None:
    bare = load(ModelConfig, {**RIGHT[ModelConfig], "n_layers": 0, "n_heads": 7}, "model")
    assert (bare.n_heads, bare.d_head) == (0, 0)


def test_training_may_have_one_step_or_none() -> None:
    for tokens in (0, STEP):
        load(CellConfig, {**RIGHT[CellConfig], "train": {**RIGHT[TrainConfig], "tokens": tokens}}, "cell")


def test_a_control_that_is_null_is_left_out_and_layers_may_be_in_quotes() -> None:
    sweep = load(SweepConfig, {**SWEEP, "controls": {"a": None}, "by_layers": {"2": {"train": {"tokens": 5}}}}, "sweep")
    assert sweep.controls == {}
    assert sweep.by_layers == {2: {"train": {"tokens": 5}}}


def test_a_corpus_is_of_the_kind_its_source_names() -> None:
    assert {"python", "text", "hub", "synthetic"} <= sources().keys()
    assert isinstance(load_corpus(PYTHON), PythonCorpus)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "pythn"}, "corpus.source: pythn: no such source; did you mean python"),
        ({"paths": ["a"]}, "corpus.paths: no such setting"),
        ({"distributions": ["a", "a"]}, "corpus.distributions: expected different distributions"),
        ({"distributions": ["../../etc"]}, "corpus.distributions: expected names of installed packages, such as torch"),
        ({"validation_share": 0}, "corpus.validation_share: expected at least 1e-06, got 0"),
    ],
)
def test_a_wrong_corpus_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_corpus({**PYTHON, **change})
