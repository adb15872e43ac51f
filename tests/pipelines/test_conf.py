"""conf/ → params.yaml → models: every profile and corpus composes, and stale or wrong configurations are refused by
name."""

import datetime
import functools
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir

from pathsum.claims.preregistration import Preregistration, Protocol
from pathsum.config import (
    CalibrateConfig,
    CellConfig,
    ConfigError,
    ExtractConfig,
    SyntheticModelConfig,
    TokenizerConfig,
    TrackingConfig,
    load,
)
from pathsum.text.corpus import load_corpus
from pipelines import compose as composition
from pipelines import grid, train
from pipelines.check import check_valid, without_effect
from pipelines.compose import compose
from pipelines.paths import ROOT
from tests.commands import command
from tests.pipelines.configured import check, copy

PROFILES = sorted(p.stem for p in (ROOT / "conf" / "profile").glob("*.yaml"))


CORPORA = sorted(p.stem for p in (ROOT / "conf" / "corpus").glob("*.yaml"))


@functools.cache
def _text(_root: Path, overrides: tuple[str, ...]) -> str:
    """Compose and cache the configuration, because composition takes a second."""
    with tempfile.TemporaryDirectory() as folder:
        compose(Path(folder) / "params.yaml", list(overrides))
        return (Path(folder) / "params.yaml").read_text()


def composed(folder: Path, *overrides: str) -> dict[str, Any]:
    """Return the configuration that conf/ composes to, and write it to ``folder``."""
    ask = _text if composition.ROOT == ROOT else _text.__wrapped__  # a copy may change between two calls
    text = ask(composition.ROOT, overrides)
    (folder / "params.yaml").write_text(text)
    values: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return values


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_composes_into_valid_cells(tmp_path: Path, profile: str) -> None:
    given = ["corpus.paths=[a.txt]"] if profile == "prose" else []  # its text is the user's
    values = composed(tmp_path, f"profile={profile}", *given)
    for name, cell in grid.cells(values).items():
        config = load(CellConfig, cell, name)
        width = "" if config.model.d_head == values["model"]["d_head"] else f"D{config.model.d_head}"
        heads = f"H{config.model.n_heads}{width}" if config.model.n_layers else ""
        assert name in values["sweep"]["controls"] or name == f"L{config.model.n_layers}{heads}S{config.seed}"
    load_corpus(values["corpus"])
    load(TokenizerConfig, values["tokenizer"], "tokenizer")
    load(ExtractConfig, values["extract"], "extract")
    tracking = load(TrackingConfig, values["tracking"], "tracking")
    assert (tracking.corpus, tracking.profile) == (values["corpus"]["name"], profile)
    load(CalibrateConfig, values["calibrate"], "calibrate")
    for name, model in grid.synthetic_models(values).items():
        load(SyntheticModelConfig, model, f"synthetic_models.{name}")
    check_valid(values, Preregistration())


def test_the_papers_profile_is_the_papers_model(tmp_path: Path) -> None:
    values = composed(tmp_path, "profile=paper")
    model = grid.cells(values)["L2H12S0"]["model"]
    assert {k: model[k] for k in ("n_heads", "d_head", "d_model", "n_ctx", "positions", "norm")} == {
        "n_heads": 12, "d_head": 64, "d_model": 768, "n_ctx": 2048, "positions": "sinusoidal", "norm": "layer",
    }  # fmt: skip
    assert values["tokenizer"]["d_vocab"] == 50_000
    assert values["corpus"]["source"] == "hub"
    assert {c["train"]["device"] for c in grid.cells(values).values()} == {"cuda"}
    assert grid.cells(values)["L2H12S0"]["train"]["optimizer"] == "adamw"


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_corpus_composes_and_says_what_is_not_set(tmp_path: Path, corpus: str) -> None:
    values = composed(tmp_path, f"corpus={corpus}")["corpus"]
    if values.get("paths") == "???":
        with pytest.raises(ConfigError, match=r"corpus.paths: has no value yet \(\?\?\?\); set it in conf/"):
            load_corpus(values)
        values["paths"] = ["a.txt"]
    load_corpus(values)


FROZEN = Protocol(tuning_seeds=(100, 101), statements={"Seeds": "5, 6, 7."})
RECIPE = ("lr_embedding", "lr_unembedding", "warmup_steps")  # that the first recipe had otherwise


def test_the_controls_differ_from_a_cell_of_the_grid_in_what_they_are_for(tmp_path: Path) -> None:
    """Smeared keys also differ in the learning rate of the smearing."""
    cells = grid.cells(composed(tmp_path))
    of = {
        "small_embedding": ("L2H4S5", ["model.embedding_std", *(f"train.{k}" for k in RECIPE)]),
        "smeared": ("L1H4S5", ["model.smeared_keys", "train.lr_positions"]),
        "smeared_two": ("L2H4S5", ["model.smeared_keys"]),
        "clamped_previous": ("L2H4S5", ["model.clamp"]),
        "equal_position_rates": ("L2H4S5", ["train.lr_later_positions"]),
        "old_recipe": ("L2H4S5", [f"train.{k}" for k in ("batch", "lr_later_positions", "lr_positions", "tokens")]),
        "shuffled": ("L2H4S5", ["train.shuffled"]),
        "untrained": ("L2H4S5", ["train.tokens"]),
    }
    for control, (cell, differing) in of.items():
        places = [f"{part}.{k}" for part in ("model", "train") for k, v in cells[cell][part].items()
                  if cells[control][part][k] != v]  # fmt: skip
        assert sorted(places) == sorted(differing), control


@pytest.mark.parametrize(("profile", "controls"), [("smoke", ["smeared", "untrained"]), ("sinusoidal", [])])
def test_a_control_is_added_to_those_that_a_profile_keeps(tmp_path: Path, profile: str, controls: list[str]) -> None:
    before = grid.cells(composed(tmp_path, f"profile={profile}"))
    after = grid.cells(composed(tmp_path, f"profile={profile}", "+sweep.controls.mine.model.n_layers=1"))
    assert [name for name in before if not name.startswith("L")] == controls
    assert {name: after[name] for name in before} == before
    assert [name for name in after if name not in before] == ["mine"]


def test_each_synthetic_model_is_complete_and_combines_shared_and_own_settings(tmp_path: Path) -> None:
    """Settings of one kind of corpus override those of all kinds, and these override those of the grid."""
    values = composed(tmp_path)
    shared, differing = values["calibrate"], values["calibrate"]["synthetic_models"]
    assert list(grid.synthetic_models(values)) == list(differing)
    for name, model in grid.synthetic_models(values).items():
        assert set(model) == {"corpus", "model", "train"} >= set(differing[name])
        for part, settings in model.items():
            cells = {} if part == "corpus" else values[part]
            assert settings == {**cells, **shared[part], **differing[name].get(part, {})}
    rules = {"n_skip_trigrams", "questions", "n_answers", "repeat_share", "two_back_spread"}
    assert all(any(model["corpus"][key] for model in grid.synthetic_models(values).values()) for key in rules)


def test_a_single_cell_can_be_overridden_and_a_wrong_name_is_refused(tmp_path: Path) -> None:
    before = grid.cells(composed(tmp_path))
    after = grid.cells(composed(tmp_path, "++sweep.overrides.L2H4S6.train.tokens=123"))
    assert [name for name in before if before[name] != after[name]] == ["L2H4S6"]
    assert after["L2H4S6"]["train"]["tokens"] == 123
    first = grid.cells(composed(tmp_path, "++sweep.overrides.L2H4S5.train.tokens=123"))
    assert [name for name in before if before[name] != first[name]] == ["L2H4S5"]  # not the controls beside it
    with pytest.raises(Exception, match=r"sweep.overrides: expected the name of a model, got L2H4; the grid has L0S5"):
        grid.cells(composed(tmp_path, "++sweep.overrides.L2H4.train.tokens=1"))
    with pytest.raises(Exception, match=r"sweep.overrides: expected the name of a model, got L2H4S03; "):
        grid.cells(composed(tmp_path, "++sweep.overrides.L2H4S03.train.tokens=1"))


def test_heads_of_other_widths_keep_the_total_width_and_have_names_of_their_own(tmp_path: Path) -> None:
    before, after = grid.cells(composed(tmp_path)), grid.cells(composed(tmp_path, "sweep=widths"))
    assert {name: after[name] for name in before} == before  # which are not trained again
    new = {name: cell["model"] for name, cell in after.items() if name not in before}
    assert {m["n_heads"] * m["d_head"] for m in new.values()} == {4 * 32}
    assert set(new) == {f"L{n}H{h}S{s}" for n in (1, 2) for h in ("8D16", "2D64") for s in (5, 6, 7)}
    changed = grid.cells(composed(tmp_path, "sweep=widths", "++sweep.overrides.L2H8D16S6.train.tokens=123"))
    assert [name for name in after if after[name] != changed[name]] == ["L2H8D16S6"]
    assert grid.cells(composed(tmp_path, "sweep.d_head=[32]")) == before
    with pytest.raises(Exception, match=r"sweep.d_head: expected divisors of .* = 128, got 48"):
        grid.cells(composed(tmp_path, "sweep.d_head=[48]"))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("+trian={batch: 4}", "trian: no such section; did you mean train?"),
        ("+sweep.by_layer=1", "sweep.by_layer: no such setting; did you mean by_layers?"),
    ],
)
def test_a_misspelt_section_of_a_profile_is_refused_by_training(
    monkeypatch: pytest.MonkeyPatch, typed: str, said: str
) -> None:
    monkeypatch.chdir(ROOT)
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = hydra_compose("config", [typed])  # as a profile of the user's own would add it
    with pytest.raises(ConfigError, match=re.escape(said)):
        train.run(config, [])


def test_a_change_of_a_model_that_the_grid_lacks_is_told_and_no_profile_has_one(tmp_path: Path) -> None:
    changes = ("+sweep.overrides.L2H4S9.train.tokens=9000000", "+sweep.by_layers.3.train.tokens=1")
    found = [line.split(":")[0] for line in without_effect(composed(tmp_path, *changes))]
    assert found == ["sweep.overrides.L2H4S9", "sweep.by_layers.3"]
    for profile in PROFILES:
        assert not list(without_effect(composed(tmp_path, f"profile={profile}", "corpus=python"))), profile


def test_the_committed_params_are_fresh(tmp_path: Path) -> None:
    found = check(copy(tmp_path))
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "data" / "checked").read_text() == "checked\n"


def test_a_stale_params_file_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    copy(tmp_path)
    path = tmp_path / "conf" / "extract" / "standard.yaml"
    path.write_text(path.read_text().replace("top_k: 20", "top_k: 21"))
    found = check(tmp_path)
    assert found.returncode == 1
    assert "params.yaml is stale against conf/:" in found.stderr
    assert "extract.top_k: params.yaml has 20, conf/ has 21" in found.stderr
    assert "Run `make params`" in found.stderr
    assert "Traceback" not in found.stderr
    assert check(tmp_path, DVC_EXP_NAME="trial").returncode == 0


def test_each_further_text_has_models_of_its_own_and_no_controls(tmp_path: Path) -> None:
    values = composed(tmp_path, "texts.docstrings.train.tokens=123456")
    main, every = grid.cells(values), grid.every(values)
    others = {name: cell for name, cell in every.items() if name not in main}
    assert [name for name in every if name not in others] == list(main)
    assert len(others) == 9
    assert {(name.split("-")[0], cell["text"]) for name, cell in others.items()} == {("docstrings", "docstrings")}
    assert others["docstrings-L2H4S11"]["model"] == main["L2H4S5"]["model"]
    assert others["docstrings-L2H4S11"]["train"] == main["L2H4S5"]["train"] | {"tokens": 123456}
    assert grid.texts(values)["docstrings"]["corpus"] == values["texts"]["docstrings"]["corpus"]  # replaced as a whole
    assert list(grid.every(composed(tmp_path, "texts.docstrings=null"))) == list(main)
    assert list(grid.every(composed(tmp_path, "texts=none"))) == list(main)


def test_an_override_by_number_of_layers_reaches_its_models(tmp_path: Path) -> None:
    """A command line cannot spell the whole number 0 as a key, so its "0" is read as well."""
    before = grid.cells(composed(tmp_path))
    after = grid.cells(composed(tmp_path, "++sweep.by_layers.0.train.tokens=123"))
    assert [name for name in before if before[name] != after[name]] == ["L0S5", "L0S6", "L0S7"]
    assert after["L0S6"]["train"]["lr_unembedding"] == before["L0S6"]["train"]["lr_unembedding"]


def test_a_mistake_in_all_models_is_named_once(tmp_path: Path) -> None:
    values = composed(tmp_path)
    values["sweep"]["by_layers"] = {layers: {"train": {"batch": 10**12}} for layers in (0, 1, 2)}
    values["sweep"]["controls"]["old_recipe"] = {"model": {"n_layers": 1}}  # has a batch of its own
    with pytest.raises(ConfigError) as caught:
        check_valid(values, Preregistration())
    assert caught.value.complaints == [
        "cells.*.train.batch: expected at most 65,536, got 1000000000000 (windows per step) (in all 29 models)"
    ]


@pytest.mark.parametrize(
    ("override", "said"),
    [  # refused when conf/ is composed
        ("model.n_hedas=4", "model.n_hedas: no such setting; did you mean n_heads?"),
        ("modl.n_heads=4", "modl: no such setting; did you mean model?"),
        ("tokens=40960", "tokens: no such setting; did you mean train.tokens?"),
        ("corpus.paths=[docs]", "corpus.paths: no such setting; known: distributions, max_documents, name"),
        ("sweep=grd", "grd: no such file in conf/sweep/; did you mean grid?"),
        ("train.optimizer", "missing EQUAL at '<EOF>'"),
        ("model.n_heads=2,4", "a sweep, for pipelines.train --multirun; write a list in brackets"),
        ("cells.L2H4S5.seed=3", "cells: no such setting"),
    ],
)
def test_an_override_that_does_not_compose_is_named_with_what_helps(tmp_path: Path, override: str, said: str) -> None:
    (tmp_path / "params.yaml").write_text("as: before")
    with pytest.raises(ValueError, match=re.escape(said)):
        compose(tmp_path / "params.yaml", [override])
    assert (tmp_path / "params.yaml").read_text() == "as: before"


@pytest.mark.parametrize(
    ("overrides", "said"),
    [  # refused by the check stage
        (["++sweep.by_layers.2.train.tokns=5"], "sweep.by_layers.2: train.tokns: no such setting; did you mean tokens"),
        (["sweep.d_head=[48]"], "sweep.d_head: expected divisors of sweep.n_heads[0] · model.d_head = 128, got 48"),
        (
            ["sweep.seeds=[100,5]"],
            "sweep.seeds: expected seeds that were not tuned on, got 100, which conf/",
        ),
        (
            ["+sweep.overrides.L2H4S5.model.positions=relativ"],
            "relativ: no such scheme; did you mean relative?",
        ),
        (["model.clamp=previous_token"], "cells.*.model.clamp: "),
        (["++sweep.overrides.L2H4S6.model.n_ctx=128"], "cells.L2H4S6.model.n_ctx: expected model.n_ctx, on which the"),
        (
            ["+calibrate.synthetic_models.copies.model.n_ctx=32"],
            "copies: expected words_per_document = n_ctx = 32, got 64",
        ),
        (
            ["calibrate.synthetic_models.skips.corpus.n_skip_trigrams=100"],
            "skips.corpus.n_words: expected 300..2000, got 97",
        ),
        (["calibrate.corpus.max_documents=448"], "expected more than the 448 held-out ones, got 448"),
        (["+trackings={a: 1}"], "trackings: no such section; did you mean tracking?"),
        (["texts.docstrings.sweep.seeds=[100]"], "texts.docstrings.sweep.seeds: expected seeds that were not tuned on"),
        (["+texts.docstrings.trian={a: 1}"], "texts.docstrings.trian: no such setting; did you mean train?"),
        (["texts.docstrings.corpus.source=x"], "texts.docstrings.corpus.source: x: no such source; known: docstrings"),
        (["+texts.a-b.corpus={source: text}"], "texts: expected names of letters, digits and _, the first a letter"),
    ],
)
def test_a_configuration_that_cannot_be_run_is_refused_by_name(tmp_path: Path, overrides: list[str], said: str) -> None:
    registered = Preregistration(frozen=datetime.date(2025, 3, 7), protocol=FROZEN)
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_valid(composed(tmp_path, *overrides), registered)


def test_a_section_that_is_absent_or_no_section_is_named(tmp_path: Path) -> None:
    values = composed(tmp_path)
    values["sweep"] = 3
    del values["tracking"]
    with pytest.raises(ConfigError) as caught:
        check_valid(values, Preregistration())
    assert [complaint.split(",")[0] for complaint in caught.value.complaints] == [
        "sweep: expected settings by name",
        "tracking: expected settings by name",
    ]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("train/muon.yaml", "batch: [1", 'conf/train/muon.yaml", line 1'),
        ("train/muon.yaml", "batch: 1\nbatch: 2", "found duplicate key batch"),
        ("config.yaml", "", "conf/config.yaml: expected the list `defaults`, got none"),
    ],
)
def test_a_file_of_conf_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: str, said: str
) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    (tmp_path / "conf" / file).write_text(content)
    with pytest.raises(ValueError, match=re.escape(said)):
        compose(tmp_path / "params.yaml", [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model.n_layer=2"], "model.n_layer: no such setting; did you mean n_layers?"),
        (["sweep.seeds=[7]"], "sweep.seeds=[7]: expected a setting that training one model reads (seed, model., "),
        (["hydra/launcher=joblib"], "hydra/launcher=joblib: only sweeps read it; expected --multirun as well"),
        (["--multirun", "model.n_layers=0,1"], "model.n_layers=0: failed; expected the file data/tokens/train.json"),
    ],
)
def test_a_mistake_in_an_override_of_training_is_a_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    done = command(tmp_path, "pipelines.train", *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_frozen_claims_have_a_protocol(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected protocol.tuning_seeds and protocol.statements, got none"):
        check_valid(composed(tmp_path), Preregistration(frozen=datetime.date(2025, 3, 7)))
