"""The typed and frozen configuration of a run.

``load(kind, values, where)`` is the only way to create one. It refuses unknown keys, missing values and `???`, and
reports all of them at once. ``conf/`` gives the reason for each default.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

Positive = Annotated[int, Field(gt=0)]
Spread = Annotated[float, Field(ge=0, le=20)]  # nats; with a larger spread some words would never occur
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ConfigError(ValueError):
    """Raised for a configuration that cannot be run. The message lists every problem."""


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PythonCorpus(Frozen):
    """Python sources of installed distributions. Each file is checked against the hash in its wheel's RECORD."""

    source: Literal["python"]
    name: str
    validation_share: Share
    distributions: tuple[str, ...] = Field(min_length=1)
    max_documents: Positive


class TextCorpus(Frozen):
    """Local text files, given as paths or globs: one document per file, or several where ``separator`` splits files."""

    source: Literal["text"]
    name: str
    validation_share: Share
    paths: tuple[str, ...] = Field(min_length=1)
    separator: str  # "" = one document per file
    max_documents: Positive


class HubCorpus(Frozen):
    """A streamed dataset of the Hugging Face hub."""

    source: Literal["hub"]
    name: str
    validation_share: Share
    dataset: str
    subset: str
    split: str
    text_field: str
    max_documents: Positive


class SyntheticCorpus(Frozen):
    """Synthetic text with known bigrams, skip-trigrams and repetitions (docs/framework.md §11.1)."""

    source: Literal["synthetic"]
    name: str
    validation_share: Share
    seed: int
    n_words: Positive  # distinct words
    zipf: Spread  # exponent of the words' frequencies
    bigram_spread: Spread  # nats, effect of the previous word on the next
    two_back_spread: Spread  # nats, effect of the word before that
    n_skip_trigrams: int
    questions: bool  # whether the text has the rule "question"
    n_answers: int  # number of answers that all lookups share; 0 for no lookups
    repeat_share: Share  # share of words in copies of earlier stretches of the document
    words_per_document: Positive
    max_documents: Positive


CorpusConfig = PythonCorpus | TextCorpus | HubCorpus | SyntheticCorpus
_SOURCES: dict[str, type[CorpusConfig]] = {
    "python": PythonCorpus,
    "text": TextCorpus,
    "hub": HubCorpus,
    "synthetic": SyntheticCorpus,
}


class TokenizerConfig(Frozen):
    """A tokenizer with byte-level BPE (byte-pair encoding) and a BOS (beginning-of-sequence) token."""

    d_vocab: Annotated[int, Field(ge=258)]  # 256 bytes, BOS, at least one merge
    train_bytes: Positive  # bytes of text that the merges are learned from


class ModelConfig(Frozen):
    """An attention-only transformer (docs/framework.md §1.2)."""

    n_layers: Annotated[int, Field(ge=0)]
    n_heads: Annotated[int, Field(ge=0)]  # per layer
    d_head: Annotated[int, Field(ge=0)]
    d_model: Positive
    embedding_std: Annotated[float, Field(gt=0)]  # standard deviation of W_E's entries at initialization
    n_ctx: Annotated[int, Field(ge=8)]
    positions: str  # a key of model.positions.SCHEMES; checked by the model and by pipelines.check
    norm: Literal["none", "rms", "layer"]
    smeared_keys: bool
    clamp: Literal["none", "previous_token"] = "none"  # attention target of layer 0 head 0 from the first step on

    @model_validator(mode="before")
    @classmethod
    def _no_layers_no_heads(cls, values: Any) -> Any:
        """Set n_heads and d_head to 0 for zero layers, so that a sweep over heads has a single zero-layer run."""
        bare = isinstance(values, Mapping) and values.get("n_layers") == 0
        return {**values, "n_heads": 0, "d_head": 0} if bare else values

    @model_validator(mode="after")
    def _heads_fit(self) -> ModelConfig:
        if self.n_layers and not (self.n_heads and self.d_head):
            raise ValueError(f"layers need heads: n_heads and d_head must be > 0, got {self.n_heads} and {self.d_head}")
        return self


class TrainConfig(Frozen):
    """The training recipe."""

    tokens: Annotated[int, Field(ge=0)]  # tokens seen in the whole training; 0 keeps the initial weights
    curriculum_tokens: Annotated[int, Field(ge=0)]  # of these, tokens of the curriculum, at the beginning
    curriculum_share: Annotated[float, Field(gt=0, lt=1)]  # share of all windows that the curriculum uses
    shuffled: bool  # control: put the tokens of each training window in random order
    batch: Positive  # windows per step
    lr_attention: Annotated[float, Field(gt=0)]  # Muon, on W_Q W_K W_V W_O
    lr_embedding: Annotated[float, Field(gt=0)]  # AdamW, on W_E
    lr_unembedding: Annotated[float, Field(gt=0)]  # AdamW, on W_U
    lr_positions: Annotated[float, Field(gt=0)]  # AdamW, on relative position biases and key smearing
    optimizer: Literal["muon", "adamw"]  # of the attention matrices
    momentum: Share
    betas: tuple[float, float]
    decay_attention: Annotated[float, Field(ge=0)]  # decoupled weight decay of the attention matrices
    decay_embedding: Annotated[float, Field(ge=0)]  # decoupled weight decay of W_E and W_U
    warmup_steps: Annotated[int, Field(ge=0)]
    decay_share: Share  # share of the steps, at the end, over which the learning rate falls linearly to 0
    device: Literal["auto", "cpu", "cuda"]  # auto: a GPU if there is one, otherwise the CPU
    autocast: bool  # bf16 matrix products where the hardware has them; float32 elsewhere
    n_log_evals: Positive  # log-spaced evaluations, before the linearly spaced ones
    n_linear_evals: Positive  # linearly spaced evaluations
    eval_windows: Positive  # held-out windows per evaluation
    resume_every_seconds: Annotated[float, Field(gt=0)]  # longest time of training that is lost when a run is killed

    @field_validator("device", mode="before")
    @classmethod
    def _no_apple_gpu(cls, wanted: Any) -> Any:
        if wanted == "mps":
            raise ValueError(
                "expected auto, cpu or cuda; no result is computed on Apple's GPU, which has no float64 and rounds "
                "differently"
            )
        return wanted

    @model_validator(mode="after")
    def _curriculum_fits(self) -> TrainConfig:
        if self.curriculum_tokens > self.tokens:
            raise ValueError(
                "a curriculum is the first part of training: expected curriculum_tokens of at most "
                f"tokens = {self.tokens}, got {self.curriculum_tokens}"
            )
        return self


class CellConfig(Frozen):
    """The complete configuration of one model of the grid."""

    seed: int
    model: ModelConfig
    train: TrainConfig


class SyntheticModelConfig(Frozen):
    """A synthetic corpus and the model that is trained on it."""

    corpus: SyntheticCorpus
    model: ModelConfig
    train: TrainConfig

    @model_validator(mode="after")
    def _document_fills_window(self) -> SyntheticModelConfig:
        if self.corpus.words_per_document != self.model.n_ctx:
            raise ValueError(
                f"a document must fill a window: expected words_per_document = n_ctx = {self.model.n_ctx}, got "
                f"{self.corpus.words_per_document}"
            )
        if self.model.n_layers == 1 and self.model.n_heads != 1:
            raise ValueError(f"a one-layer model needs one head, whose role is then known; got {self.model.n_heads}")
        return self


class CalibrateConfig(Frozen):
    """The calibration: kinds of synthetic corpora, their seeds, their common settings and their differences."""

    seeds: tuple[int, ...] = Field(min_length=2)  # one synthetic corpus of each kind per seed
    rotations: Positive  # random rotations of the composition null
    corpus: dict[str, Any]
    model: dict[str, Any]
    train: dict[str, Any]
    synthetic_models: dict[str, dict[str, dict[str, Any]]] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> CalibrateConfig:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"expected distinct seeds, got {self.seeds}: equal seeds give the same synthetic corpora")
        return self


class ExtractConfig(Frozen):
    """The numbers of windows, table entries and random rotations in the extraction."""

    held_out_windows: Annotated[int, Field(ge=4)]  # total windows of verdict documents, for losses
    windows_per_document: Positive  # largest number of windows of one document
    windows: Annotated[int, Field(ge=4)]  # of these, windows for behavior; split into halves and bootstrapped
    repeated_windows: Annotated[int, Field(ge=2)]  # windows of repeated random tokens, bootstrapped
    exactness_windows: Positive  # windows of the exactness check
    top_k: Positive  # entries kept per table
    rotations: Positive  # random rotations of the composition null


class TrackingConfig(Frozen):
    """The settings of the mirror on Weights & Biases."""

    mode: Literal["offline", "online", "disabled", "off"]
    project: str
    group: str
    entity: str  # "" = the account's default


class SweepConfig(Frozen):
    """The models of the grid: its axes, and settings that differ by number of layers or in single models."""

    n_layers: tuple[int, ...] = Field(min_length=1)
    n_heads: tuple[int, ...] = Field(min_length=1)
    d_head: tuple[int, ...]  # further head widths, with the same n_heads · d_head as the first head count
    seeds: tuple[int, ...] = Field(min_length=1)
    by_layers: dict[int, dict[str, Any]]
    overrides: dict[str, dict[str, Any]]
    controls: dict[str, dict[str, Any]]  # by name: changed settings of the first model with the same layer count


SECTIONS = (
    *("corpus", "tokenizer", "model", "train", "extract", "calibrate", "sweep", "tracking", "seed"),
    *("cells", "synthetic_models"),  # composed from the sections above
)

C = TypeVar("C", bound=Frozen)


def load(kind: type[C], values: Mapping[str, Any], where: str) -> C:
    """Return ``values`` as a configuration of type ``kind``.

    Raises ConfigError with a list of all problems. Each is given with its place under ``where``.
    """
    complaints = [f"{where}.{path}: has no value yet (???); set it in conf/" for path in _missing(values)]
    try:
        config = kind.model_validate(values)
        if not complaints:
            return config
    except ValidationError as error:
        complaints += [_complaint(e, kind, where) for e in error.errors() if e["input"] != "???"]
    raise ConfigError("\n".join(["The configuration cannot be run:", *(f"  - {c}" for c in complaints)]))


def load_corpus(values: Mapping[str, Any]) -> CorpusConfig:
    """Return the configuration of the corpus, of the kind that its ``source`` names. Raises ConfigError as ``load``
    does."""
    source = values.get("source")
    if source not in _SOURCES:
        raise ConfigError(
            f"The configuration cannot be run:\n  - corpus.source: must be one of {', '.join(_SOURCES)}, got {source!r}"
        )
    return load(_SOURCES[source], values, "corpus")


def _missing(values: Any, path: str = "") -> Iterator[str]:
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from _missing(value, f"{path}.{key}" if path else str(key))
    elif values == "???":
        yield path


def _complaint(error: ErrorDetails, kind: type[BaseModel], where: str) -> str:
    place = ".".join([where, *(str(p) for p in error["loc"])])
    if error["type"] == "extra_forbidden":
        known = _keys(kind)
        near = difflib.get_close_matches(str(error["loc"][-1]), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
        return f"{place}: no such setting; {hint}"
    if error["type"] == "missing":
        return f"{place}: is required and was not given"
    return f"{place}: {error['msg'].removeprefix('Value error, ')}, got {error['input']!r}".replace(
        f", got {error['input']!r}" if isinstance(error["input"], Mapping) else "\0", ""
    )


def _keys(kind: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    for name, field in kind.model_fields.items():
        names.add(name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names |= _keys(field.annotation)
    return names
