"""The typed and immutable configuration of a run. The types hold the bounds and the meaning of every setting.

``load(kind, values, where)`` creates one from parsed values. It refuses unknown keys, missing settings, values of
another type and numbers out of bounds, and reports all of them at once. ``conf/`` gives the reason for each default.
"""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

MOST_TOKENS_PER_STEP = 2**24  # train.batch · model.n_ctx
PUBLISHED = datetime.date(2021, 12, 22)  # Elhage et al. 2021; nothing of this project is older


def _day(value: Any) -> datetime.date:
    """Return ``value``, a date or a text of the form YYYY-MM-DD, as a date."""
    with suppress(ValueError, TypeError):
        day = value if isinstance(value, datetime.date) else datetime.datetime.strptime(value, "%Y-%m-%d").date()
        if PUBLISHED <= day <= datetime.date(2100, 1, 1):
            return day
    raise ValueError(f"expected a date from {PUBLISHED} to 2100-01-01, as YYYY-MM-DD")


def _printable(name: str) -> str:
    if not name.isprintable() or name.isspace():
        raise ValueError("expected a name of printable characters, not only spaces")
    return name


def _distinct(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) < len(values):
        raise ValueError("expected different numbers")
    return values


Whole = Annotated[int, Field(strict=True)]  # not 2.0, true or "2"
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]  # not true or "1e-3"
Flag = Annotated[bool, Field(strict=True)]  # true or false; not 1, "yes" or "off"
Name = Annotated[str, Field(min_length=1)]
Text = Annotated[str, AfterValidator(_printable)]  # shown in titles and tables
Label = Annotated[Name, AfterValidator(_printable)]
Day = Annotated[datetime.date, BeforeValidator(_day)]
Seed = Annotated[Whole, Field(ge=0, le=2**56 - 1)]  # seven bytes; the seeds that calibration derives have six
Seeds = Annotated[tuple[Seed, ...], AfterValidator(_distinct)]
Share = Annotated[Real, Field(ge=0, le=1)]
Rate = Annotated[Real, Field(ge=1e-9, le=100)]  # learning rate per step
Spread = Annotated[Real, Field(ge=0, le=20)]  # nats; with a larger spread some words would never occur
Positive = Annotated[Whole, Field(ge=1, le=10**10)]
Rotations = Annotated[Whole, Field(ge=10, le=10**6)]  # with fewer, no q-value is below 0.1, and no edge composes


class ConfigError(ValueError):
    """Raised for a configuration that cannot be run. Its message and its ``complaints`` list all problems found."""

    def __init__(self, complaints: Iterable[str]) -> None:
        self.complaints = list(complaints)
        super().__init__("\n".join(["The configuration cannot be run:", *(f"  - {c}" for c in self.complaints)]))


class Frozen(BaseModel):
    """An immutable record that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Corpus(Frozen):
    """The settings of every corpus. Each source of ``pathsum.text`` adds its own."""

    source: str
    name: Label
    validation_share: Real = Field(ge=1e-6, le=0.999, description="share of documents outside training")
    max_documents: Positive


class SyntheticCorpus(Corpus):
    """Synthetic text with known bigrams, skip-trigrams and repetitions (docs/framework.md §11.1)."""

    source: Literal["synthetic"]
    validation_share: Share = Field(description="0 in calibration, which holds documents out itself")
    seed: Seed
    n_words: Whole = Field(ge=1, le=10**4, description="distinct words")
    zipf: Spread = Field(description="exponent of the words' frequencies")
    bigram_spread: Spread = Field(description="standard deviation of the effect of the current word, nats")
    two_back_spread: Spread = Field(description="standard deviation of the effect of the word before, nats")
    n_skip_trigrams: Whole = Field(ge=0, le=10**4)
    questions: Flag = Field(description='whether the text has the rule "question"')
    n_answers: Whole = Field(ge=0, le=1000, description="number of answers that all lookups share; 0 for no lookups")
    repeat_share: Share = Field(description="share of words in copies of earlier stretches of the document")
    words_per_document: Whole = Field(ge=1, le=10**5)


class TokenizerConfig(Frozen):
    """A tokenizer with byte-level BPE (byte-pair encoding) and a BOS (beginning-of-sequence) token."""

    d_vocab: Whole = Field(ge=258, le=10**6, description="tokens: 256 bytes, BOS, at least one merge")
    train_bytes: Whole = Field(ge=1, le=10**11, description="bytes of text that the merges are learned from")

    @model_validator(mode="after")
    def _enough_text(self) -> TokenizerConfig:
        if self.train_bytes < (least := 2 * (self.d_vocab - 257)):
            raise ValueError(
                f"expected train_bytes of at least 2 (d_vocab − 257) = {least:,}, got {self.train_bytes:,}; a pair is "
                "merged only if it occurs at least twice"
            )
        return self


class ModelConfig(Frozen):
    """An attention-only transformer (docs/framework.md §1.2). With zero layers, n_heads and d_head are set to 0."""

    n_layers: Whole = Field(ge=0, le=64)
    n_heads: Whole = Field(ge=0, le=1024, description="per layer")
    d_head: Whole = Field(ge=0, le=4096)
    d_model: Whole = Field(ge=2, le=65_536)
    embedding_std: Real = Field(ge=1e-6, le=1000, description="standard deviation of W_E's entries at initialization")
    n_ctx: Whole = Field(ge=8, le=65_536, description="positions of an input, that of BOS included")
    positions: str  # a key of model.positions.SCHEMES; checked by the model and by pipelines.check
    norm: Literal["none", "rms", "layer"]
    smeared_keys: Flag
    clamp: Literal["none", "previous_token"] = Field(
        default="none", description="where head 0 of layer 0 attends from the first step on"
    )

    @model_validator(mode="before")
    @classmethod
    def _no_layers_no_heads(cls, values: Any) -> Any:
        """Set n_heads and d_head to 0 for zero layers, so that a sweep over heads has a single zero-layer run."""
        bare = isinstance(values, Mapping) and values.get("n_layers") == 0
        return {**values, "n_heads": 0, "d_head": 0} if bare else values

    @model_validator(mode="after")
    def _heads_fit(self) -> ModelConfig:
        if self.n_layers and not (self.n_heads and self.d_head):
            raise ValueError(f"expected n_heads and d_head of at least 1, got {self.n_heads} and {self.d_head}")
        return self


class TrainConfig(Frozen):
    """The training recipe."""

    tokens: Whole = Field(ge=0, le=10**13, description="tokens seen, rounded up to whole steps; 0: initial weights")
    repeat_weight: Real = Field(ge=1, le=1000, description="at first, weight of tokens that complete a repeated pair")
    repeat_tokens: Whole = Field(ge=0, le=10**13, description="tokens until that weight is 1; 0 = held to the end")
    shuffled: Flag = Field(description="control: the tokens of each training window in random order")
    batch: Whole = Field(ge=1, le=65_536, description="windows per step")
    lr_attention: Rate = Field(description="Muon or AdamW (optimizer), on W_Q, W_K, W_V and W_O")
    lr_embedding: Rate = Field(description="AdamW, on W_E")
    lr_unembedding: Rate = Field(description="AdamW, on W_U")
    lr_positions: Rate = Field(description="AdamW, on relative position biases and key smearing of the first layer")
    lr_later_positions: Rate = Field(description="AdamW, on those of all later layers")
    optimizer: Literal["muon", "adamw"]  # of the attention matrices
    momentum: Real = Field(ge=0, lt=1, description="of Muon")
    betas: tuple[Annotated[Real, Field(ge=0, lt=1)], Annotated[Real, Field(ge=0, lt=1)]] = Field(description="of AdamW")
    decay_attention: Real = Field(ge=0, le=100, description="decoupled weight decay of the attention matrices")
    decay_embedding: Real = Field(ge=0, le=100, description="decoupled weight decay of W_E and W_U")
    warmup_steps: Whole = Field(ge=0, le=10**7)
    decay_share: Share = Field(description="share of the steps, at the end, over which the rate falls toward 0")
    device: Literal["auto", "cpu", "cuda"]  # auto: a GPU if there is one, otherwise the CPU; Apple's has no float64
    autocast: Flag = Field(description="bf16 matrix products where the hardware has them; float32 elsewhere")
    n_log_evals: Whole = Field(ge=1, le=10**4, description="log-spaced evaluations, before the linearly spaced ones")
    n_linear_evals: Whole = Field(ge=1, le=10**4, description="linearly spaced evaluations")
    eval_windows: Whole = Field(ge=1, le=10**6, description="held-out windows per evaluation")
    resume_every_seconds: Real = Field(ge=0, le=86_400, description="training that is lost when a run is killed")

    @model_validator(mode="after")
    def _weight_falls_in_training(self) -> TrainConfig:
        if self.repeat_weight > 1 and self.repeat_tokens > self.tokens:
            raise ValueError(f"expected repeat_tokens of at most tokens = {self.tokens}, got {self.repeat_tokens}")
        return self


class CellConfig(Frozen):
    """The complete configuration of one model: a model of the grid, a control or a synthetic model."""

    seed: Seed
    model: ModelConfig
    train: TrainConfig
    text: str = ""  # "" = the corpus; else a key of texts

    @model_validator(mode="after")
    def _whole_steps(self) -> CellConfig:
        _require_whole_steps(self.train, self.model)
        return self


def _require_whole_steps(train: TrainConfig, model: ModelConfig) -> None:
    """Raise ValueError if a step is larger than memory, or training is shorter than one. 0 tokens are allowed."""
    if (step := train.batch * model.n_ctx) > MOST_TOKENS_PER_STEP:
        raise ValueError(
            f"expected train.batch · model.n_ctx of at most {MOST_TOKENS_PER_STEP:,} tokens, got {step:,}; lower one"
        )
    if 0 < train.tokens < step:
        raise ValueError(
            f"expected train.tokens of 0 or at least train.batch · model.n_ctx = {step:,}, got {train.tokens:,}"
        )


HELD_OUT = 384  # documents of a synthetic corpus on which detectors run; each fills a window
TUNING = 64  # documents of a synthetic corpus on which heads are chosen
UNREAD: dict[str, dict[str, object]] = {  # synthetic models do not read these, so they keep these values
    "train": {
        "device": "cpu",
        "autocast": False,
        "shuffled": False,
        "repeat_weight": 1.0,
        "repeat_tokens": 0,
        "eval_windows": 64,
        "resume_every_seconds": 20.0,
    },
    "corpus": {"name": "synthetic", "seed": 0, "validation_share": 0.0},
    "model": {"norm": "rms", "positions": "relative"},
}


class SyntheticModelConfig(Frozen):
    """A synthetic corpus and the model that is trained on it."""

    corpus: SyntheticCorpus
    model: ModelConfig
    train: TrainConfig

    @model_validator(mode="after")
    def _fits(self) -> SyntheticModelConfig:
        if self.corpus.words_per_document != self.model.n_ctx:
            got = self.corpus.words_per_document
            raise ValueError(f"expected words_per_document = n_ctx = {self.model.n_ctx}, got {got}")
        if self.model.n_layers == 1 and self.model.n_heads != 1:
            raise ValueError(f"a one-layer model needs one head, whose role is then known; got {self.model.n_heads}")
        for section, settings in UNREAD.items():
            for name, must in settings.items():
                if (given := getattr(getattr(self, section), name)) != must:
                    raise ValueError(f"all synthetic models are alike: expected {section}.{name}={must}, got {given}")
        _require_whole_steps(self.train, self.model)
        return self


class CalibrateConfig(Frozen):
    """The calibration: the kinds of synthetic corpora, the settings that all kinds share, and those that differ by
    kind."""

    seeds: Seeds = Field(min_length=2)  # one synthetic corpus of each kind per seed
    tuning_seeds: Seeds  # on which the texts, the training and the detectors were tuned
    rotations: Rotations  # random rotations of the composition null
    corpus: dict[str, Any]
    model: dict[str, Any]
    train: dict[str, Any]
    synthetic_models: dict[str, dict[str, dict[str, Any]]] = Field(min_length=1)

    @model_validator(mode="after")
    def _untuned(self) -> CalibrateConfig:
        if tuned := sorted(set(self.seeds) & set(self.tuning_seeds)):
            raise ValueError(f"expected seeds that are not in tuning_seeds, got {', '.join(map(str, tuned))}")
        return self


class ExtractConfig(Frozen):
    """Sample sizes of extraction: numbers of windows, table entries and random rotations."""

    held_out_windows: Whole = Field(ge=4, le=10**6, description="windows of verdict documents, for losses")
    windows_per_document: Whole = Field(ge=1, le=10**6, description="most windows of one document")
    windows: Whole = Field(ge=4, le=10**6, description="windows for behavior, the first of held_out_windows")
    repeated_windows: Whole = Field(  # queries and keys are resampled from two other windows
        ge=3, le=10**5, description="windows of repeated random tokens"
    )
    exactness_windows: Whole = Field(ge=1, le=10**4, description="windows of the exactness check")
    top_k: Whole = Field(ge=1, le=256, description="entries kept per table")
    rotations: Rotations  # random rotations of the composition null

    @model_validator(mode="after")
    def _parts_of_windows(self) -> ExtractConfig:
        if not self.exactness_windows <= self.windows <= self.held_out_windows:
            raise ValueError(
                "expected exactness_windows <= windows <= held_out_windows, got "
                f"{self.exactness_windows}, {self.windows} and {self.held_out_windows}"
            )
        return self


class TrackingConfig(Frozen):
    """The settings of logging to Weights & Biases (W&B)."""

    mode: Literal["offline", "online", "disabled", "off"]  # off: W&B is not used; the others are modes of W&B
    project: Label
    group: Text
    entity: Text  # "" = the account's default
    corpus: Text = ""  # these two are part of each run's name, tags and config
    profile: Text = ""


MODEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")  # a folder, and part of a command
GRID_NAME = re.compile(r"(L0|L[1-9]\d*H[1-9]\d*(D[1-9]\d*)?)S(0|[1-9]\d*)")  # of a model of the grid
NAMED = {"n_layers", "n_heads", "d_head"}  # settings that the name of a model states, besides its seed
Changes = dict[str, dict[str, Any]]  # of a model's sections ``model`` and ``train``


def _settings(changes: Changes, info: Any) -> Changes:
    """Require the names of sections and settings of a model, and no change of what the model's name states."""
    for section, settings in changes.items():
        if section not in ("model", "train"):
            raise ValueError(f"expected changes of model and train, got {section}")
        known = set((ModelConfig if section == "model" else TrainConfig).model_fields)
        for key in settings:
            if key not in known:
                raise ValueError(f"{section}.{unknown(str(key), known)}")
            if info.field_name != "controls" and section == "model" and key in NAMED:
                raise ValueError(f"model.{key}: the name of a model states it; choose models with sweep.{key}")
    return changes


def _folder(name: str) -> str:
    if not MODEL_NAME.fullmatch(name) or GRID_NAME.fullmatch(name.upper()):
        raise ValueError("expected at most 64 letters, digits and _, the first a letter, and no name of a grid's model")
    return name


def _without_null(controls: Any) -> Any:
    """Leave out the controls that are null, so that a profile can drop controls of conf/sweep/."""
    return {k: v for k, v in controls.items() if v is not None} if isinstance(controls, dict) else controls


Change = Annotated[Changes, AfterValidator(_settings)]
N = TypeVar("N")
Axis = Annotated[tuple[N, ...], AfterValidator(_distinct)]
Width = Annotated[Whole, Field(ge=1, le=4096)]


class SweepConfig(Frozen):
    """The models to train: the axes of the grid, the settings that differ from model to model, and the controls."""

    n_layers: Annotated[Axis[Annotated[Whole, Field(ge=0, le=64)]], Field(min_length=1)]
    n_heads: Annotated[Axis[Width], Field(min_length=1)]
    d_head: Axis[Width]  # further head widths; n_heads then keeps n_heads · d_head at its value for n_heads[0]
    seeds: Seeds = Field(min_length=1)
    by_layers: dict[int, Change]  # by number of layers: changes to all models, and controls, with that number
    overrides: dict[str, Change]  # by name of a model of the grid: changes to it
    controls: Annotated[dict[Annotated[str, AfterValidator(_folder)], Change], BeforeValidator(_without_null)]


class TextConfig(Frozen):
    """A further text of the grid: its corpus, and what else differs from the settings of the first."""

    corpus: dict[str, Any] = Field(min_length=1)
    tokenizer: dict[str, Any] = {}
    model: dict[str, Any] = {}
    train: dict[str, Any] = {}
    sweep: dict[str, Any] = {}


SECTIONS = ("corpus", "tokenizer", "model", "train", "extract", "calibrate", "sweep", "texts", "tracking", "seed")

C = TypeVar("C", bound=Frozen)


def load(kind: type[C], values: Any, where: str) -> C:
    """Return ``values`` as a configuration of type ``kind``."""
    complaints = [f"{where}.{path}: has no value yet (???); set it in conf/" for path in _missing(values)]
    try:
        config = kind.model_validate(values)
        if not complaints:
            return config
    except ValidationError as error:
        found = error.errors()
        wrong = {e["loc"][:-1] for e in found}  # a list with wrong items is also called too short
        found = [e for e in found if e["input"] != "???" and not (e["type"] == "too_short" and e["loc"] in wrong)]
        complaints += [_complaint(e, kind, where) for e in found]
    raise ConfigError(complaints)


def unknown(key: str, known: Iterable[str], what: str = "setting") -> str:
    """Return the message that ``key`` is not among the ``known`` keys, with the most similar one, or all."""
    known = sorted(known)
    near = difflib.get_close_matches(key, known, n=1)
    return f"{key}: no such {what}; " + (f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}")


def _missing(values: Any, path: str = "") -> Iterator[str]:
    """Yield the place of each missing value (``???``) in nested mappings, lists and tuples, such as "train.tokens"."""
    if isinstance(values, Mapping | list | tuple):
        for key, value in values.items() if isinstance(values, Mapping) else enumerate(values):
            yield from _missing(value, f"{path}.{key}" if path else str(key))
    elif values == "???":
        yield path


EXPECTED = {  # by type of pydantic's error
    "greater_than_equal": "at least {ge:,}", "less_than_equal": "at most {le:,}", "less_than": "less than {lt:,}",
    "finite_number": "a finite number", "int_type": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "string_type": "a text", "string_too_short": "a text that is not empty",
    "tuple_type": "a list in brackets", "dict_type": "settings by name", "model_type": "settings by name",
    "too_short": "a list of {min_length} or more", "too_long": "a list of {max_length} at most",
}  # fmt: skip


def _complaint(error: ErrorDetails, kind: Any, where: str) -> str:
    """Return the message for one error that pydantic found when it read values as a ``kind``."""
    description = ""
    for step in error["loc"][: -1 if error["type"] == "extra_forbidden" else None]:
        if _is_section(kind):
            field = kind.model_fields[str(step)]
            kind, description = field.annotation, field.description or ""
        elif inner := [inner for inner in get_args(kind) if inner is not Ellipsis]:
            kind = inner[-1]
    place = ".".join([where, *(str(step) for step in error["loc"] if step != "[key]")])
    if error["type"] == "extra_forbidden":
        above, _, key = place.rpartition(".")
        return f"{above}.{unknown(key, kind.model_fields)}"
    if error["type"] == "missing":
        return f"{place}: is required and was not given"
    told = EXPECTED.get(error["type"])
    said = f"expected {told.format(**error.get('ctx', {}))}" if told else error["msg"].removeprefix("Value error, ")
    shown = repr(error["input"])
    got = "" if isinstance(error["input"], Mapping | BaseModel) and _is_section(kind) else f", got {shown:.100}"
    return f"{place}: {said.replace('Input should be', 'expected')}{got}" + (f" ({description})" if description else "")


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
