"""Random input to every reader: text, configurations, JSON, weights. Each gives a value or one clear error."""

import functools
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from hypothesis.configuration import set_hypothesis_home_dir
from safetensors.torch import save
from tokenizers import Tokenizer

from pathsum.config import (
    CellConfig,
    ConfigError,
    ExtractConfig,
    Frozen,
    ModelConfig,
    SweepConfig,
    TokenizerConfig,
    TrainConfig,
    load,
)
from pathsum.core.storage import read_json, read_lines, read_records
from pathsum.imported.open_weights import open_weights
from pathsum.model.checkpoint import load_checkpoint, save_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Device
from pathsum.text import tokens
from pathsum.text.bos import BOS
from pathsum.text.corpus import load_corpus
from pathsum.text.text_files import text_documents
from pathsum.text.tokenizer import token_bytes, train_tokenizer
from pathsum.text.tokens import pieces, read_tokens
from tests.extraction.small import HOW
from tests.imported.models import POSITIONS, written
from tests.test_config import SWEEP
from tests.training.small import CELL, D_VOCAB, MODEL, TRAIN

set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "hypothesis")  # not in the repository
settings.register_profile(
    "few", max_examples=40, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
settings.load_profile("few")

ANY_TEXT = some.text(some.characters(exclude_categories=["Cs"]))  # without lone surrogates
SCALARS = some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=9)
KEYS = some.text(max_size=9)
JSON = some.recursive(
    SCALARS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
WORDS = some.lists(some.text("abé7", min_size=1, max_size=9), max_size=60)
SETTINGS = sorted(MODEL.model_dump())


def require(true: bool) -> None:
    assert true


@functools.cache
def tokenizer() -> Tokenizer:
    return train_tokenizer(["def f(x): return x\n" * 9, "é<|bos|>"], TokenizerConfig(d_vocab=265, train_bytes=999))


@given(ANY_TEXT)
@example("<|bos|>")
@example("\0\r\n\u2028 \u0301")
def test_any_text_comes_back_from_its_tokens(text: str) -> None:
    ids = tokenizer().encode(text).ids
    assert BOS not in ids
    assert b"".join(token_bytes(tokenizer())[i] for i in ids) == text.encode()


@given(ANY_TEXT, some.integers(1, 9), WORDS, some.sampled_from([" ", "\n", " \n ", "\n\n"]))
def test_pieces_are_the_text_and_have_its_tokens_where_words_end_in_time(
    text: str, size: int, words: list[str], between: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "PIECE", size)
        assert "".join(pieces(text)) == text
        assert max(map(len, pieces(text))) <= 2 * size
        patch.setattr(tokens, "PIECE", 20)
        prose = between.join(words)
        assert [i for p in pieces(prose) for i in tokenizer().encode(p).ids] == tokenizer().encode(prose).ids


@given(some.lists(some.binary(max_size=50), min_size=1, max_size=3), some.sampled_from(["", "\n", "\\0", "ab"]))
def test_files_of_any_bytes_are_text_or_are_named(contents: list[bytes], separator: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(contents):
            (Path(folder) / str(number)).write_bytes(content)
        shown = separator.replace("\\0", "\0")
        absent = shown != "" and not any(shown.encode() in content for content in contents)
        told = ["corpus.paths: expected UTF-8 text files, got:\n  - "]
        told += ["corpus.separator: expected a string that occurs"] if absent else []
        try:
            found = list(text_documents([folder], separator))
        except ValueError as error:
            require(str(error).startswith(tuple(told)))
            return
        require(not absent)
        texts = [d for c in contents for d in (c.decode().split(shown) if shown else [c.decode()]) if d.strip()]
        assert found == texts


SECTIONS: list[tuple[type[Frozen], dict[str, Any]]] = [
    (ModelConfig, MODEL.model_dump()),
    (TrainConfig, TRAIN.model_dump()),
    (CellConfig, CELL.model_dump()),
    (ExtractConfig, HOW.model_dump()),
    (SweepConfig, SWEEP),
    (TokenizerConfig, {"d_vocab": 300, "train_bytes": 99}),
]


@given(some.sampled_from(SECTIONS), some.data())
@settings(max_examples=150)
def test_any_value_of_any_key_is_read_or_is_refused(
    section: tuple[type[Frozen], dict[str, Any]], data: some.DataObject
) -> None:
    kind, right = section
    key = data.draw(some.sampled_from(sorted(right)) | some.text(max_size=5))
    try:
        config = load(kind, {**right, key: data.draw(JSON)}, "here")
    except ConfigError as error:
        require(all(complaint.startswith("here") for complaint in error.complaints))
        return
    assert load(kind, config.model_dump(), "here") == config


@given(JSON)
def test_any_corpus_and_any_section_is_a_configuration_or_is_refused(value: Any) -> None:
    for read in (load_corpus, functools.partial(load, SweepConfig, where="sweep")):
        with pytest.raises(ConfigError):
            read(value)


@given(JSON.map(json.dumps) | ANY_TEXT)
@example('{"name": "x", "processes": 1, "peak_flops": NaN}')
@example('{"name": "x", "processes": 1.5, "peak_flops": null}')
def test_any_text_in_place_of_a_record_is_refused_by_name(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="file.json"):
            read_json(path, Device)
        for read, empty in ((read_lines, not text.strip("\n")), (read_records, text.strip() == "{}")):
            try:
                require(not read(path, Device) and empty)
            except ValueError as error:
                require("file.json" in str(error))
        (Path(folder) / "train.bin").write_bytes(b"\0" * 8)
        (Path(folder) / "train.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="train.json"):
            read_tokens(Path(folder) / "train.bin")


@functools.cache
def checkpoint() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.safetensors"
        save_checkpoint(path, Transformer(MODEL, D_VOCAB, torch.Generator().manual_seed(0)), "words")
        return path.read_bytes()


def opened(content: bytes, config: str | None = None) -> None:
    """Open weights, as a checkpoint and as weights trained elsewhere. Both give finite weights or a clear error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.safetensors"
        path.write_bytes(content)
        if config is not None:
            path.with_suffix(".json").write_text(config, encoding="utf-8")
        for read in (load_checkpoint, open_weights):
            try:
                with warnings.catch_warnings(action="ignore"):  # no manifest lists the file
                    weights = read(path, "words").weights()
            except (ValueError, FileNotFoundError) as error:
                require(bool(str(error)))
                continue
            assert weights.W_E.isfinite().all()


@given(some.integers(0, 1 << 30), some.binary(min_size=1, max_size=9))
@settings(max_examples=80)
def test_weights_with_other_bytes_anywhere_are_opened_or_refused(place: int, other: bytes) -> None:
    content, at = checkpoint(), place % len(checkpoint())
    at = at % 1500 if place % 2 else at  # half of the changes are in the header
    opened(content[:at] + other + content[at + len(other) :])
    opened(content[:at])


@given(JSON, some.sampled_from(["model", "d_vocab", "tokenizer_hash", ""]), some.sampled_from(SETTINGS))
def test_a_header_that_does_not_fit_its_weights_is_refused(value: Any, key: str, setting: str) -> None:
    about: Any = {"model": MODEL.model_dump(), "d_vocab": D_VOCAB, "tokenizer_hash": "words"}
    tensors = {"W_E": torch.zeros(10, D_VOCAB)}
    wrong = value if not key else {**about, key: value}
    setting_wrong = {**about, "model": {**about["model"], setting: value}}
    for header in (wrong, setting_wrong):
        opened(save(tensors, metadata={"pathsum": json.dumps(header)}))


@functools.cache
def imported() -> tuple[bytes, dict[str, Any]]:
    state, config = written(1, normalization_type="LN", **POSITIONS[2])
    return save({name: tensor.float() for name, tensor in state.items()}), config


@given(JSON, some.data())
@example({"n_layers": 2}, None)
def test_any_setting_of_weights_from_elsewhere_is_read_or_refused(value: Any, data: some.DataObject | None) -> None:
    content, config = imported()
    keys = sorted({*config, "rotary_base", "rotary_dim", "attn_scale", "eps", "n_layers", "use_attn_scale"})
    key = data.draw(some.sampled_from(keys)) if data else "n_layers"
    opened(content, json.dumps({**config, key: value}))
    opened(content, json.dumps(value))
