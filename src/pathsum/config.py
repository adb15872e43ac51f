"""The configuration of a run, frozen and typed. Unknown, missing and `???` values are refused, all at once.

``load(section, values)`` is the only way in. ``conf/`` says why each default is what it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

Positive = Annotated[int, Field(gt=0)]
Spread = Annotated[float, Field(ge=0, le=20)]  # nats; more would leave words that never come
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ConfigError(ValueError):
    """A configuration that cannot be run; the message lists every complaint."""


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PythonCorpus(Frozen):
    """Python sources of installed distributions, each file checked against its wheel's RECORD hash."""

    source: Literal["python"]
    name: str
    validation_share: Share
    distributions: tuple[str, ...] = Field(min_length=1)
    max_documents: Positive


class TextCorpus(Frozen):
    """Local text: paths or globs; one document a file, or several a file split at ``separator``."""

    source: Literal["text"]
    name: str
    validation_share: Share
    paths: tuple[str, ...] = Field(min_length=1)
    separator: str  # "" = one document a file
    max_documents: Positive


class HubCorpus(Frozen):
    """A Hugging Face dataset, streamed."""

    source: Literal["hub"]
    name: str
    validation_share: Share
    dataset: str
    subset: str
    split: str
    text_field: str
    max_documents: Positive


class PlantedCorpus(Frozen):
    """Generated text whose bigrams, skip-trigrams and repetition are known."""

    source: Literal["planted"]
    name: str
    validation_share: Share
    seed: int
    n_words: Positive  # distinct words
    zipf: Spread  # exponent of the words' frequencies
    bigram_spread: Spread  # nats, effect of the previous word on the next
    two_back_spread: Spread  # nats, effect of the word before that
    n_skip_trigrams: int
    questions: bool  # whether asked-for words come back
    n_answers: int  # that lookups have in common; 0 for no lookups
    repeat_share: Share  # share of words that stand in copies of earlier stretches
    words_per_document: Positive
    max_documents: Positive


CorpusConfig = PythonCorpus | TextCorpus | HubCorpus | PlantedCorpus
_SOURCES: dict[str, type[CorpusConfig]] = {
    "python": PythonCorpus,
    "text": TextCorpus,
    "hub": HubCorpus,
    "planted": PlantedCorpus,
}


class TokenizerConfig(Frozen):
    """Byte-level BPE with a beginning-of-sequence token."""

    d_vocab: Annotated[int, Field(ge=258)]  # 256 bytes, BOS, at least one merge
    train_bytes: Positive  # text that the merges are learnt from


class ModelConfig(Frozen):
    """An attention-only transformer, docs/framework.md §1.2."""

    n_layers: Annotated[int, Field(ge=0)]
    n_heads: Annotated[int, Field(ge=0)]  # a layer
    d_head: Annotated[int, Field(ge=0)]
    d_model: Positive
    embedding_std: Annotated[float, Field(gt=0)]  # standard deviation of W_E's entries at initialisation
    n_ctx: Annotated[int, Field(ge=8)]
    positions: str  # a name of model.positions.SCHEMES, which the model and pipelines.check hold it against
    norm: Literal["none", "rms", "layer"]
    smeared_keys: bool
    clamp: Literal["none", "previous_token"] = "none"  # what head 0.0 attends to from the first step on

    @model_validator(mode="before")
    @classmethod
    def _no_layers_no_heads(cls, values: Any) -> Any:
        """Remove heads from zero layers, so that such runs of a sweep are one."""
        bare = isinstance(values, Mapping) and values.get("n_layers") == 0
        return {**values, "n_heads": 0, "d_head": 0} if bare else values

    @model_validator(mode="after")
    def _heads_fit(self) -> ModelConfig:
        if self.n_layers and not (self.n_heads and self.d_head):
            raise ValueError(f"layers need heads: n_heads and d_head must be > 0, got {self.n_heads} and {self.d_head}")
        return self


class TrainConfig(Frozen):
    """The recipe of training."""

    tokens: Annotated[int, Field(ge=0)]  # tokens seen in all; 0 keeps the initial weights
    curriculum_tokens: Annotated[int, Field(ge=0)]  # of these, from the most repetitive windows alone at first
    curriculum_share: Annotated[float, Field(gt=0, lt=1)]  # which share of all windows those are
    shuffled: bool  # the tokens of each training window in random order: a control
    batch: Positive  # windows a step
    lr_attention: Annotated[float, Field(gt=0)]  # Muon, on W_Q W_K W_V W_O
    lr_embedding: Annotated[float, Field(gt=0)]  # AdamW, on W_E
    lr_unembedding: Annotated[float, Field(gt=0)]  # AdamW, on W_U
    lr_positions: Annotated[float, Field(gt=0)]  # AdamW, on relative position biases and key smearing
    optimizer: Literal["muon", "adamw"]  # of the attention matrices
    momentum: Share
    betas: tuple[float, float]
    decay_attention: Annotated[float, Field(ge=0)]  # decoupled weight decay of the attention matrices
    decay_embedding: Annotated[float, Field(ge=0)]  # and of W_E and W_U
    warmup_steps: Annotated[int, Field(ge=0)]
    decay_share: Share  # last share of the steps, over which the rate falls linearly to 0
    device: Literal["auto", "cpu", "cuda"]  # auto: a GPU where there is one
    autocast: bool  # bf16 matrix products where the hardware has them; float32 elsewhere
    n_log_evals: Positive  # log-spaced evaluations, before
    n_linear_evals: Positive  # linear ones
    eval_windows: Positive  # held-out windows an evaluation
    resume_every_seconds: Annotated[float, Field(gt=0)]  # how much a kill can cost

    @field_validator("device", mode="before")
    @classmethod
    def _not_apples(cls, wanted: Any) -> Any:
        if wanted == "mps":
            raise ValueError(
                "no number is reported from Apple's GPU, which has no float64 and rounds otherwise; expected auto, cpu "
                "or cuda"
            )
        return wanted

    @model_validator(mode="after")
    def _a_curriculum_ends(self) -> TrainConfig:
        if self.curriculum_tokens > self.tokens:
            raise ValueError(
                "a curriculum is the first part of training: expected curriculum_tokens of at most "
                f"tokens = {self.tokens}, got {self.curriculum_tokens}"
            )
        return self


class CellConfig(Frozen):
    """One model of the grid, complete."""

    seed: int
    model: ModelConfig
    train: TrainConfig


class WorldConfig(Frozen):
    """A synthetic corpus, and the model that is trained on it."""

    corpus: PlantedCorpus
    model: ModelConfig
    train: TrainConfig

    @model_validator(mode="after")
    def _a_document_a_window(self) -> WorldConfig:
        if self.corpus.words_per_document != self.model.n_ctx:
            raise ValueError(
                f"a document must fill a window: expected words_per_document = n_ctx = {self.model.n_ctx}, got "
                f"{self.corpus.words_per_document}"
            )
        if self.model.n_layers == 1 and self.model.n_heads != 1:
            raise ValueError(f"a single layer has one head, for then its job is known; got {self.model.n_heads}")
        return self


class CalibrateConfig(Frozen):
    """The number of synthetic corpora of each kind, their common settings and their differences."""

    seeds: tuple[int, ...] = Field(min_length=2)  # of each kind a world: its own rules, text and model
    rotations: Positive  # random rotations of the composition null
    corpus: dict[str, Any]
    model: dict[str, Any]
    train: dict[str, Any]
    worlds: dict[str, dict[str, dict[str, Any]]] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> CalibrateConfig:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds must differ, got {self.seeds}: twice the same world is no second one")
        return self


class ExtractConfig(Frozen):
    """The resolution of extraction."""

    held_out_windows: Annotated[int, Field(ge=4)]  # windows of verdict documents in all, for losses
    windows_per_document: Positive  # of one document, at most
    windows: Annotated[int, Field(ge=4)]  # of these, for behaviour: halved and bootstrapped
    repeated_windows: Annotated[int, Field(ge=2)]  # repeated random blocks, bootstrapped
    certificate_windows: Positive  # windows of the exactness certificate
    top_k: Positive  # entries kept a table
    rotations: Positive  # random rotations of the composition null


class TrackingConfig(Frozen):
    """The target of the Weights & Biases mirror."""

    mode: Literal["offline", "online", "disabled", "off"]
    project: str
    group: str
    entity: str  # "" = the account's default


class SweepConfig(Frozen):
    """The cells: the axes of the grid, and what differs by layer count or in single cells."""

    n_layers: tuple[int, ...] = Field(min_length=1)
    n_heads: tuple[int, ...] = Field(min_length=1)
    d_head: tuple[int, ...]  # further widths of a head, all heads together as wide as the first head count's
    seeds: tuple[int, ...] = Field(min_length=1)
    by_layers: dict[int, dict[str, Any]]
    overrides: dict[str, dict[str, Any]]
    controls: dict[str, dict[str, Any]]  # by name: what is changed in the grid's first cell of that layer count


SECTIONS = (
    *("corpus", "tokenizer", "model", "train", "extract", "calibrate", "sweep", "tracking", "seed"),
    *("cells", "worlds"),  # composed from those
)

C = TypeVar("C", bound=Frozen)


def load(kind: type[C], values: Mapping[str, Any], where: str) -> C:
    """Read ``values`` as a ``kind``. Raises ConfigError that lists every complaint, each with its place under
    ``where``."""
    complaints = [f"{where}.{path}: has no value yet (???); set it in conf/" for path in _missing(values)]
    try:
        config = kind.model_validate(values)
        if not complaints:
            return config
    except ValidationError as error:
        complaints += [_complaint(e, kind, where) for e in error.errors() if e["input"] != "???"]
    raise ConfigError("\n".join(["The configuration cannot be run:", *(f"  - {c}" for c in complaints)]))


def load_corpus(values: Mapping[str, Any]) -> CorpusConfig:
    """Read the corpus section, of the kind that its ``source`` names. Raises ConfigError as ``load`` does."""
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
