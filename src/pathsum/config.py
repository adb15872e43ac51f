"""The typed and immutable configuration of a run.

``load(kind, values, where)`` creates one from parsed values. It refuses unknown keys, settings that are missing or
`???`, and numbers outside the bounds of ``pathsum.bounds``, and reports all of them at once. ``conf/`` gives the reason
for each default.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pathsum.bounds import BOUNDS, MOST_TOKENS_PER_STEP, MOST_WEIGHTS
from pathsum.complaints import missing, of_change, of_error

PUBLISHED = datetime.date(2021, 12, 22)  # Elhage et al. 2021; nothing of this project is older


def _day(value: Any) -> datetime.date:
    """Return ``value``, a date or a text of the form YYYY-MM-DD, as a date.

    Raises ValueError for anything else, and for a date before ``PUBLISHED`` or after 2100-01-01.
    """
    try:  # fromisoformat reads 20261122 and 2026-W47 as well
        written = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value)
        day = datetime.date.fromisoformat(value) if written else value
    except ValueError:
        day = None
    if type(day) is not datetime.date or not PUBLISHED <= day <= datetime.date(2100, 1, 1):
        raise ValueError(f"expected a date from {PUBLISHED} to 2100-01-01, as YYYY-MM-DD")
    return day


def _printable(name: str) -> str:
    """Return ``name``. Raises ValueError if it has characters that ``str.isprintable`` refuses, or only spaces."""
    if not name.isprintable() or name.isspace():
        raise ValueError("expected a name of printable characters, not only spaces")
    return name


Flag = Annotated[bool, Field(strict=True)]  # true or false; not 1, "yes" or "off"
Name = Annotated[str, Field(min_length=1)]
Label = Annotated[Name, AfterValidator(_printable)]  # shown in titles and tables
Day = Annotated[datetime.date, BeforeValidator(_day)]


class ConfigError(ValueError):
    """Raised for a configuration that cannot be run. Its message and its ``complaints`` list all problems found."""

    def __init__(self, complaints: Iterable[str]) -> None:
        self.complaints = list(complaints)
        super().__init__("\n".join(["The configuration cannot be run:", *(f"  - {c}" for c in self.complaints)]))


class Frozen(BaseModel):
    """An immutable record. It refuses unknown keys, numbers outside their bounds (``pathsum.bounds``), and floats in
    place of integers, with the ValidationError of pydantic. ``load`` raises ConfigError instead."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _within_bounds(cls, value: Any, info: Any) -> Any:
        known = (BOUNDS.get(base.__name__, {}).get(str(info.field_name)) for base in cls.__mro__)
        bound = next(filter(None, known), None)
        if bound and value != "???":
            bound.check(value)
        kind = cls.model_fields[str(info.field_name)].annotation
        items = value if kind == tuple[int, ...] and isinstance(value, list | tuple) else [value]
        if kind in (int, tuple[int, ...]) and any(isinstance(item, float) for item in items):
            raise PydanticCustomError("int_from_float", "expected a whole number")
        return value


class Corpus(Frozen):
    """The settings of every corpus. Each source of ``pathsum.corpora`` adds its own."""

    source: str
    name: Label
    validation_share: float  # share of documents outside training, as in ``corpora.corpus.split``
    max_documents: int


class SyntheticCorpus(Corpus):
    """Synthetic text with known bigrams, skip-trigrams and repetitions (docs/framework.md §11.1)."""

    source: Literal["synthetic"]
    validation_share: float  # 0 in calibration, which holds documents out itself
    seed: int
    n_words: int  # distinct words
    zipf: float  # exponent of the words' frequencies
    bigram_spread: float  # nats, standard deviation of the effect of the current word on the next
    two_back_spread: float  # nats, standard deviation of the effect of the word before the current one on the next
    n_skip_trigrams: int
    questions: Flag  # whether the text has the rule "question"
    n_answers: int  # number of answers that all lookups share; 0 for no lookups
    repeat_share: float  # share of words in copies of earlier stretches of the document
    words_per_document: int


class TokenizerConfig(Frozen):
    """A tokenizer with byte-level BPE (byte-pair encoding) and a BOS (beginning-of-sequence) token."""

    d_vocab: int  # 256 bytes, BOS, at least one merge
    train_bytes: int  # bytes of text that the merges are learned from

    @model_validator(mode="after")
    def _enough_text(self) -> TokenizerConfig:
        if self.train_bytes < (least := 2 * (self.d_vocab - 257)):
            raise ValueError(
                "a pair is merged only if it occurs at least twice: expected train_bytes of at least "
                f"2 (d_vocab − 257) = {least:,}, got {self.train_bytes:,}; raise train_bytes or lower d_vocab"
            )
        return self


class ModelConfig(Frozen):
    """An attention-only transformer (docs/framework.md §1.2). With zero layers, n_heads and d_head are set to 0."""

    n_layers: int
    n_heads: int  # per layer
    d_head: int
    d_model: int
    embedding_std: float  # standard deviation of W_E's entries at initialization
    n_ctx: int  # positions of an input, that of BOS included
    positions: str  # a key of model.positions.SCHEMES; checked by the model and by pipelines.check
    norm: Literal["none", "rms", "layer"]
    smeared_keys: Flag
    clamp: Literal["none", "previous_token"] = "none"  # where head 0 of layer 0 attends from the first step on

    @model_validator(mode="before")
    @classmethod
    def _no_layers_no_heads(cls, values: Any) -> Any:
        """Set n_heads and d_head to 0 for zero layers, so that a sweep over heads has a single zero-layer run."""
        bare = isinstance(values, Mapping) and values.get("n_layers") == 0
        return {**values, "n_heads": 0, "d_head": 0} if bare else values

    @model_validator(mode="after")
    def _heads_fit(self) -> ModelConfig:
        if self.n_layers and not (self.n_heads and self.d_head):
            raise ValueError(
                f"layers need heads: expected n_heads and d_head of at least 1, got {self.n_heads} and {self.d_head}; "
                "set both, or n_layers: 0"
            )
        if (weights := 4 * self.n_layers * self.n_heads * self.d_head * self.d_model) > MOST_WEIGHTS:
            raise ValueError(
                "a model is held in memory: expected 4 · n_layers · n_heads · d_head · d_model of at most "
                f"{MOST_WEIGHTS:,} attention weights, got {weights:,}; lower one of them"
            )
        return self


class TrainConfig(Frozen):
    """The training recipe."""

    tokens: int  # tokens seen in the whole training, rounded up to whole steps; 0 keeps the initial weights
    repeat_weight: float  # at first, weight in the loss of tokens that complete a pair seen before in the window
    repeat_tokens: int  # tokens seen until that weight is 1: held for a half of them, then linear; 0 = held to the end
    shuffled: Flag  # control: put the tokens of each training window in random order
    batch: int  # windows per step
    lr_attention: float  # Muon or AdamW (``optimizer``), on W_Q, W_K, W_V and W_O
    lr_embedding: float  # AdamW, on W_E
    lr_unembedding: float  # AdamW, on W_U
    lr_positions: float  # AdamW, on relative position biases and key smearing of the first layer
    lr_later_positions: float  # AdamW, on those of all later layers
    optimizer: Literal["muon", "adamw"]  # of the attention matrices
    momentum: float  # of Muon
    betas: tuple[float, float]  # of AdamW
    decay_attention: float  # decoupled weight decay of the attention matrices
    decay_embedding: float  # decoupled weight decay of W_E and W_U
    warmup_steps: int
    decay_share: float  # share of the steps, at the end, over which the learning rate falls linearly toward 0
    device: Literal["auto", "cpu", "cuda"]  # auto: a GPU if there is one, otherwise the CPU
    autocast: Flag  # bf16 matrix products where the hardware has them; float32 elsewhere
    n_log_evals: int  # log-spaced evaluations, before the linearly spaced ones
    n_linear_evals: int  # linearly spaced evaluations
    eval_windows: int  # held-out windows per evaluation
    resume_every_seconds: float  # longest time of training that is lost when a run is killed

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
    def _weight_falls_in_training(self) -> TrainConfig:
        if self.repeat_weight > 1 and self.repeat_tokens > self.tokens:
            raise ValueError(
                "the weight of repeats falls to 1 within training: expected repeat_tokens of at most "
                f"tokens = {self.tokens}, got {self.repeat_tokens}"
            )
        return self


def _whole_steps(train: TrainConfig, model: ModelConfig) -> None:
    """Raise ValueError if training is shorter than one step. 0 tokens are allowed."""
    step = train.batch * model.n_ctx
    if 0 < train.tokens < step:
        raise ValueError(
            f"training has whole steps: expected train.tokens of 0 or at least train.batch · model.n_ctx = {step:,}, "
            f"got {train.tokens:,}; raise train.tokens or lower train.batch"
        )


class CellConfig(Frozen):
    """The complete configuration of one model: a model of the grid, a control or a synthetic model."""

    seed: int
    model: ModelConfig
    train: TrainConfig

    @model_validator(mode="after")
    def _step_fits(self) -> CellConfig:
        if (tokens := self.train.batch * self.model.n_ctx) > MOST_TOKENS_PER_STEP:
            raise ValueError(
                f"a step is computed at once: expected train.batch · model.n_ctx of at most {MOST_TOKENS_PER_STEP:,} "
                f"tokens, got {tokens:,}; lower train.batch"
            )
        _whole_steps(self.train, self.model)
        return self


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
}


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
        for kind, only in (("norm", "rms"), ("positions", "relative")):
            if (got := getattr(self.model, kind)) != only:
                raise ValueError(f"synthetic models are trained together: expected model.{kind}={only}, got {got}")
        for section, settings in UNREAD.items():
            for name, must in settings.items():
                if (given := getattr(getattr(self, section), name)) != must:
                    raise ValueError(f"synthetic models do not read it: expected {section}.{name}={must}, got {given}")
        _whole_steps(self.train, self.model)
        return self


class CalibrateConfig(Frozen):
    """The calibration: the kinds of synthetic corpora, the settings that all kinds share, and those that differ by
    kind."""

    seeds: tuple[int, ...] = Field(min_length=2)  # one synthetic corpus of each kind per seed
    tuning_seeds: tuple[int, ...]  # on which the texts, the training and the detectors were tuned
    rotations: int  # random rotations of the composition null
    corpus: dict[str, Any]
    model: dict[str, Any]
    train: dict[str, Any]
    synthetic_models: dict[str, dict[str, dict[str, Any]]] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> CalibrateConfig:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"expected distinct seeds, got {self.seeds}: equal seeds give the same synthetic corpora")
        if tuned := sorted(set(self.seeds) & set(self.tuning_seeds)):
            raise ValueError(f"expected seeds that are not in tuning_seeds, got {', '.join(map(str, tuned))}")
        without = [name for name, kind in self.synthetic_models.items() if "n_layers" not in kind.get("model", {})]
        if "n_layers" in self.model and not without:
            raise ValueError("expected no model.n_layers for all kinds, because each kind states its own")
        if "n_layers" not in self.model and without:
            known = ", ".join(sorted(set(self.synthetic_models) - set(without)))
            raise ValueError(
                f"synthetic_models.{without[0]}: expected its model.n_layers, such as 2, got none; or is it meant to "
                f"be one of {known}?"
            )
        if len({name.casefold() for name in self.synthetic_models}) < len(self.synthetic_models):
            raise ValueError("synthetic_models: expected names that differ by more than case")
        return self


class ExtractConfig(Frozen):
    """Sample sizes of extraction: numbers of windows, table entries and random rotations."""

    held_out_windows: int  # total windows of verdict documents, for losses
    windows_per_document: int  # largest number of windows of one document
    windows: int  # number of windows for behavior, the first of held_out_windows; split into halves and bootstrapped
    repeated_windows: int  # windows of repeated random tokens, bootstrapped
    exactness_windows: int  # windows of the exactness check
    top_k: int  # entries kept per table
    rotations: int  # random rotations of the composition null

    @model_validator(mode="after")
    def _parts_of_windows(self) -> ExtractConfig:
        if not self.exactness_windows <= self.windows <= self.held_out_windows:
            raise ValueError(
                "windows are a part of held_out_windows, and exactness_windows a part of windows: expected "
                f"exactness_windows <= windows <= held_out_windows, got {self.exactness_windows}, {self.windows} and "
                f"{self.held_out_windows}"
            )
        return self


class TrackingConfig(Frozen):
    """The settings of logging to Weights & Biases (W&B)."""

    mode: Literal["offline", "online", "disabled", "off"]  # off: W&B is not used; the others are modes of W&B
    project: Label
    group: Annotated[str, AfterValidator(_printable)]
    entity: Annotated[str, AfterValidator(_printable)]  # "" = the account's default
    corpus: Annotated[str, AfterValidator(_printable)] = ""  # these two are part of each run's name, tags and config
    profile: Annotated[str, AfterValidator(_printable)] = ""

    @field_validator("project", "entity")
    @classmethod
    def _part_of_an_address(cls, name: str) -> str:
        if len(name) > 128 or re.search(r"[/\\#?%:]", name):
            raise ValueError(
                r"expected at most 128 characters and none of / \ # ? % :, because this name is part of W&B's addresses"
            )
        return name


class SweepConfig(Frozen):
    """The models to train: the axes of the grid, the settings that differ by number of layers or for single models, and
    the controls."""

    n_layers: tuple[int, ...] = Field(min_length=1)
    n_heads: tuple[int, ...] = Field(min_length=1)
    d_head: tuple[int, ...]  # further head widths; n_heads then keeps n_heads · d_head at its value for n_heads[0]
    seeds: tuple[int, ...] = Field(min_length=1)
    by_layers: dict[int, dict[str, Any]]  # by number of layers: changes to all models, and controls, with that number
    overrides: dict[str, dict[str, Any]]  # by name of a model of the grid: changes to it
    controls: dict[str, dict[str, Any]]  # by name: changes to the model with n_heads[0], seeds[0] and these n_layers

    @field_validator("controls", mode="before")
    @classmethod
    def _without_null(cls, controls: Any) -> Any:
        """Leave out the controls that are null, so that a profile can drop controls of conf/sweep/."""
        return {k: v for k, v in controls.items() if v is not None} if isinstance(controls, dict) else controls

    @field_validator("by_layers", mode="before")
    @classmethod
    def _numbers_of_layers(cls, changes: Any) -> Any:
        """Refuse keys that are not numbers of layers. A number in quotes is accepted, because Hydra writes "2" for
        ++sweep.by_layers.2.train.tokens=…"""
        for key in changes if isinstance(changes, dict) else ():
            if isinstance(key, bool | float) or not re.fullmatch(r"[0-9]{1,3}", str(key)):
                raise ValueError(f"expected numbers of layers, such as 2, as keys, got the key {key!r}")
        return changes

    @field_validator("n_layers", "n_heads", "d_head", "seeds")
    @classmethod
    def _distinct(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(values)) < len(values):
            raise ValueError("expected different numbers, because each gives models of its own")
        return values

    @field_validator("controls")
    @classmethod
    def _names_of_folders(cls, controls: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name in controls:
            if not MODEL_NAME.fullmatch(name):
                raise ValueError(
                    "the name of a control is the name of its folders: expected at most 64 letters, digits and _, of "
                    f"which the first is a letter, got {name!r}"
                )
            if GRID_NAME.fullmatch(re.sub(r"(?<=[A-Z])0+(?=\d)", "", name.upper())):  # L02H2S7 would pass for L2H2S7
                raise ValueError(f"expected a name that no model of a grid can have, got {name!r}")
        if len({name.casefold() for name in controls}) < len(controls):
            raise ValueError("expected names that differ by more than case, because some file systems ignore case")
        return controls

    @model_validator(mode="after")
    def _changes_are_settings(self) -> SweepConfig:
        """Refuse changes of settings that do not exist. In ``by_layers`` and ``overrides``, also refuse changes of the
        settings that the name of a model states (``NAMED``)."""
        named = "the name of a model states it; choose models with sweep.n_layers, n_heads, d_head and seeds"
        known = changeable("sweep.controls")
        complaints = [
            complaint
            for entries in ("by_layers", "overrides", "controls")
            for fixed in [known["model"] - changeable(f"sweep.{entries}")["model"]]
            for name, change in getattr(self, entries).items()
            for complaint in of_change(f"{entries}.{name}", change, known, dict.fromkeys(fixed, named))
        ]
        if complaints:
            raise PydanticCustomError("changes", "wrong changes", {"complaints": complaints})
        return self


MODEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")  # a folder, and part of a command
GRID_NAME = re.compile(r"(L0|L[1-9]\d*H[1-9]\d*(D[1-9]\d*)?)S(0|[1-9]\d*)")  # of a model of the grid
NAMED = ("n_layers", "n_heads", "d_head")  # settings that the name of a model states, besides its seed


def changeable(entries: str) -> dict[str, set[str]]:
    """Return, by section, the settings that an entry of ``entries`` may change. ``entries`` is sweep.by_layers,
    sweep.overrides, sweep.controls or calibrate.synthetic_models."""
    settings = {"model": {*ModelConfig.model_fields}, "train": {*TrainConfig.model_fields}}
    if entries == "calibrate.synthetic_models":
        settings["corpus"] = {*SyntheticCorpus.model_fields}
        return {section: keys - UNREAD.get(section, {}).keys() for section, keys in settings.items()}
    if entries != "sweep.controls":
        settings["model"] -= {*NAMED}
    return settings


SECTIONS = (
    *("corpus", "tokenizer", "model", "train", "extract", "calibrate", "sweep", "tracking", "seed"),
    *("cells", "synthetic_models"),  # composed from the sections above
)

C = TypeVar("C", bound=Frozen)


def load(kind: type[C], values: Any, where: str) -> C:
    """Return ``values`` as a configuration of type ``kind``.

    Raises ConfigError, which lists all problems. A condition on several settings is checked only if all settings of
    their sections are valid. ``where`` is the name of ``values`` in the messages.
    """
    complaints = [f"{where}.{path}: has no value yet (???); set it in conf/" for path in missing(values)]
    try:
        config = kind.model_validate(values)
        if not complaints:
            return config
    except ValidationError as error:
        found = error.errors()
        wrong = {e["loc"][:-1] for e in found}  # a list with wrong items is also called too short
        found = [e for e in found if e["input"] != "???" and not (e["type"] == "too_short" and e["loc"] in wrong)]
        complaints += [complaint for e in found for complaint in of_error(e, kind, where)]
    raise ConfigError(complaints)
