"""Every number of the configuration has a bound, and each bound refuses what lies beyond it."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from pathsum import config
from pathsum.bounds import BOUNDS, MOST_TOKENS_PER_STEP, Bound
from pathsum.claims.preregistration import Protocol
from pathsum.config import (
    CellConfig,
    ConfigError,
    ExtractConfig,
    Frozen,
    ModelConfig,
    SweepConfig,
    TrackingConfig,
    load,
)
from pathsum.corpora.corpus import load_corpus, sources
from pipelines.reference_run import ReferenceRun
from tests.extraction.small import HOW
from tests.training.small import CELL

LETTERS = "expected at most 64 letters, digits and _, of which the first is a letter"
RULES = [(kind, key, bound) for kind, keys in BOUNDS.items() for key, bound in keys.items()]
SWEEP: dict[str, Any] = {
    "n_layers": [0, 2], "n_heads": [4], "d_head": [], "seeds": [2, 3], "by_layers": {}, "overrides": {}, "controls": {},
}  # fmt: skip


def numeric(annotation: Any) -> bool:
    """Return whether a type is a number, a number or None, or a tuple of numbers."""
    inner = get_args(annotation)
    several = getattr(annotation, "__origin__", None) is tuple or type(None) in inner
    return annotation in (int, float) or (bool(inner) and several and inner[0] in (int, float))


def kinds() -> dict[str, type[BaseModel]]:
    known = vars(config) | {"Protocol": Protocol, "ReferenceRun": ReferenceRun}
    known |= {source.settings.__name__: source.settings for source in sources().values()}
    return {name: kind for name, kind in known.items() if isinstance(kind, type) and issubclass(kind, Frozen)}


def test_every_number_of_the_configuration_has_a_bound_and_no_bound_is_left_over() -> None:
    numbers = {
        (name, key)
        for name, kind in kinds().items()
        for key, field in kind.model_fields.items()
        if numeric(field.annotation) and key in kind.__annotations__  # else the bound is that of its base class
    }
    assert {(kind, key) for kind, key, _ in RULES} == numbers
    assert len(numbers) > 50


def complaint(kind: str, key: str, value: object) -> str:
    """Return what the configuration says about one value of one key, whatever else it lacks."""
    found = ""
    try:
        kinds()[kind].model_validate({key: value})
    except ValidationError as error:
        found = "; ".join(e["msg"] for e in error.errors() if e["loc"] == (key,))
    return found


@pytest.mark.parametrize(("kind", "key", "bound"), RULES, ids=[f"{kind}.{key}" for kind, key, _ in RULES])
def test_a_number_on_either_side_of_a_bound(kind: str, key: str, bound: Bound) -> None:
    annotation = kinds()[kind].model_fields[key].annotation
    several = annotation not in (int, float)
    is_whole = annotation is int or int in get_args(annotation)

    def said(number: object) -> str:
        return complaint(kind, key, [number, number] if several and key == "betas" else [number] if several else number)

    step = 1 if is_whole else max(abs(bound.most), 1) * 1e-6
    for inside in (bound.least, bound.most):
        assert "expected a number" not in said(inside), inside
    beyond = [bound.least - (1 if is_whole else 1e-9 + bound.least / 2), bound.most + step]
    for outside in [*beyond, math.nan, math.inf, -math.inf, True, "7", 10**23]:
        assert f"expected {bound}" in said(outside), outside


def test_a_list_where_a_number_belongs_and_the_other_way_round() -> None:
    with pytest.raises(ConfigError, match=r"sweep.n_heads: expected a list in brackets, got 4"):
        load(SweepConfig, {**SWEEP, "n_heads": 4}, "sweep")
    with pytest.raises(ConfigError, match=r"extract.top_k: .*expected .*, got \[4\]"):
        load(ExtractConfig, {**HOW.model_dump(), "top_k": [4]}, "extract")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_heads": []}, r"sweep.n_heads: expected a list of 1 or more, got \[\]"),
        ({"seeds": []}, r"sweep.seeds: expected a list of 1 or more, got \[\]"),
        ({"seeds": [0.5]}, r"sweep.seeds: expected a whole number, got \[0.5\]$"),
        ({"seeds": [0, 0]}, r"sweep.seeds: expected different numbers, .*, got \[0, 0\]"),
        ({"d_head": ["a"]}, r"sweep.d_head: expected a number from 1 to 4,096 dimensions, got \['a'\]"),
        ({"controls": {"mine": 3}}, r"sweep.controls.mine: expected settings by name, got 3"),
        ({"controls": {"../x": {}}}, rf"name of its folders: {LETTERS}, got '../x'"),
        ({"controls": {"x; ls": {}}}, rf"name of its folders: {LETTERS}, got 'x; ls'"),
        ({"controls": {"x" * 65: {}}}, rf"name of its folders: {LETTERS}, got 'xxx"),
        ({"controls": {"L2H2S7": {}}}, r"expected a name that no model of a grid can have, got 'L2H2S7'"),
        ({"controls": {"L02H2S7": {}}}, r"expected a name that no model of a grid can have, got 'L02H2S7'"),
        ({"controls": {"L02H02D032S07": {}}}, r"expected a name that no model of a grid can have, got 'L02H02D032S07'"),
        ({"controls": {"l0s0": {}}}, r"sweep.controls: expected a name that no model of a grid can have, got 'l0s0'"),
        ({"controls": {"mine": {}, "Mine": {}}}, r"expected names that differ by more than case"),
        ({"overrides": {"L2H4S0": {"seed": 7}}}, r"sweep.overrides.L2H4S0.seed: expected changes of model and train"),
        ({"overrides": {"L2H4S0": {"model": {"n_layers": 1}}}}, r"S0.model.n_layers: the name of a model states it"),
        ({"by_layers": {2: {"model": {"n_heads": 1}}}}, r"sweep.by_layers.2.model.n_heads: the name of a model states"),
        ({"by_layers": {"2": {"train": {"tokns": 5}}}}, r"2.train.tokns: no such setting; did you mean tokens"),
        ({"by_layers": {"two": {}}}, r"sweep.by_layers: expected numbers of layers, .* the key 'two'"),
        ({"by_layers": {2.0: {}}}, r"sweep.by_layers: expected numbers of layers, such as 2, as keys, got the key 2.0"),
        ({"by_layers": {True: {}}}, r"got the key True"),
        ({"by_layers": {-1: {}}}, r"got the key -1"),
        ({"controls": {"a": {"train": {"zzz": 5}}}}, r"sweep.controls.a.train.zzz: no such setting; known: autocast"),
        ({"controls": {"a": {"train": 5}}}, r"sweep.controls.a.train: expected settings by name, .* got 5"),
    ],
)  # fmt: skip
def test_a_grid_that_would_lie_or_do_nothing_is_refused(change: dict[str, Any], said: str) -> None:
    assert load(SweepConfig, SWEEP, "sweep").n_heads == (4,)
    with pytest.raises(ConfigError, match=said):
        load(SweepConfig, {**SWEEP, **change}, "sweep")


def test_a_step_that_no_machine_computes_is_refused() -> None:
    wide = {**CELL.model_dump(), "model": {**CELL.model.model_dump(), "n_ctx": 65_536}}
    wide["train"] |= {"batch": MOST_TOKENS_PER_STEP // 65_536, "tokens": MOST_TOKENS_PER_STEP}
    load(CellConfig, wide, "cell")
    wide["train"]["batch"] += 1
    with pytest.raises(ConfigError, match=r"cell: .* expected train.batch · model.n_ctx of at most 16,777,216 tokens"):
        load(CellConfig, wide, "cell")


def test_a_model_that_no_machine_holds_is_refused() -> None:
    sizes = {**CELL.model.model_dump(), "n_layers": 10, "n_heads": 1000, "d_head": 1000, "d_model": 250}
    load(ModelConfig, sizes, "model")
    with pytest.raises(
        ConfigError, match=r"d_head · d_model of at most 10,000,000,000 attention weights, got 10,040,00"
    ):
        load(ModelConfig, {**sizes, "d_model": 251}, "model")


@pytest.mark.parametrize(("name", "taken"), [("a/b", False), ("", False), ("x" * 129, False), ("my project_2.0", True)])
def test_a_name_on_wandb_has_no_slashes(name: str, taken: bool) -> None:
    values = {"mode": "offline", "project": name, "group": "default", "entity": ""}
    if taken:
        assert load(TrackingConfig, values, "tracking").project == name
    else:
        with pytest.raises(ConfigError, match=r"tracking.project: expected"):
            load(TrackingConfig, values, "tracking")


def test_a_training_shorter_than_a_step_is_refused() -> None:
    step = CELL.train.batch * CELL.model.n_ctx

    def complaint(tokens: int) -> str:
        try:
            load(CellConfig, {**CELL.model_dump(), "train": {**CELL.train.model_dump(), "tokens": tokens}}, "cell")
        except ConfigError as error:
            return str(error)
        return ""

    assert complaint(step) == complaint(0) == ""
    assert f"expected train.tokens of 0 or at least train.batch · model.n_ctx = {step:,}" in complaint(step - 1)


@pytest.mark.parametrize(
    ("betas", "said"),
    [
        ([0.9], r"cell.train.betas: expected a list of 2 values, got \[0.9\]"),
        ([0.9, 0.9, 0.9], r"cell.train.betas: expected a list of 2 at most, got \[0.9, 0.9, 0.9\]"),
    ],
)
def test_a_list_of_another_length_is_named(betas: list[float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(CellConfig, {**CELL.model_dump(), "train": {**CELL.train.model_dump(), "betas": betas}}, "cell")


def test_a_fraction_is_no_whole_number() -> None:
    with pytest.raises(ConfigError, match=r"extract.top_k: expected a whole number, got 2.5"):
        load(ExtractConfig, {**HOW.model_dump(), "top_k": 2.5}, "extract")


def test_a_distribution_is_read_once() -> None:
    corpus = {"source": "python", "name": "p", "validation_share": 0.1, "distributions": ["a", "a"], "max_documents": 3}
    with pytest.raises(ConfigError, match=r"corpus.distributions: expected different distributions"):
        load_corpus(corpus)
    for name in ("../../etc", "/etc", ".", "a b"):
        with pytest.raises(
            ConfigError, match=r"corpus.distributions: expected names of installed packages, such as torch"
        ):
            load_corpus({**corpus, "distributions": [name]})


@pytest.mark.parametrize("change", [{"windows": 102}, {"exactness_windows": 12}])
def test_windows_are_a_part_of_the_windows_that_they_are_taken_from(change: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="expected exactness_windows <= windows <= held_out_windows"):
        load(ExtractConfig, {**HOW.model_dump(), **change}, "extract")


@pytest.mark.parametrize("value", [1, "yes", "off", 0.0])
def test_true_and_false_are_spelt_out(value: object) -> None:
    values = {**CELL.model_dump(), "train": {**CELL.train.model_dump(), "shuffled": value}}
    with pytest.raises(ConfigError, match=r"cell.train.shuffled: expected true or false, got"):
        load(CellConfig, values, "cell")


def test_a_whole_number_is_written_as_one() -> None:
    with pytest.raises(ConfigError, match=r"extract.top_k: expected a whole number, got 4\.0"):
        load(ExtractConfig, {**HOW.model_dump(), "top_k": 4.0}, "extract")
