"""conf/ → params.yaml → models: every profile and corpus composes, and stale or wrong configurations are refused by
name."""

from __future__ import annotations

import datetime
import functools
import json
import math
import re
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import OmegaConf

from pathsum.claims.preregistration import Preregistration
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
from pathsum.corpora.corpus import load_corpus, sources
from pathsum.model.positions import SCHEMES
from pipelines import compose as composition
from pipelines import train
from pipelines.check import check_composed, check_valid, differences, without_effect
from pipelines.compose import compose, composing
from pipelines.paths import ROOT, params, read_yaml
from tests.commands import command
from tests.pipelines.configured import check, check_as_command, copy

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
    for name, cell in values["cells"].items():
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
    for name, model in values["synthetic_models"].items():
        load(SyntheticModelConfig, model, f"synthetic_models.{name}")
    check_valid(values, Preregistration())


def test_prose_asks_for_text_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"corpus.paths: has no value yet \(\?\?\?\)"):
        load_corpus(composed(tmp_path, "profile=prose")["corpus"])


def test_tracking_is_turned_off_in_the_defaults_and_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert composed(tmp_path, "tracking=none")["tracking"]["mode"] == "off"
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    config = tmp_path / "conf" / "config.yaml"
    written = config.read_text()
    assert "  - tracking: wandb" in written
    config.write_text(written.replace("  - tracking: wandb", "  - tracking: none"))
    assert load(TrackingConfig, composed(tmp_path)["tracking"], "tracking").mode == "off"
    config.write_text(written.replace("  - tracking: wandb", "  - tracking: off"))
    with pytest.raises(ValueError, match="YAML reads a bare off, on, yes or no .* for example `tracking: none`"):
        composed(tmp_path)


def test_the_papers_profile_is_the_papers_model(tmp_path: Path) -> None:
    values = composed(tmp_path, "profile=paper")
    model = values["cells"]["L2H12S0"]["model"]
    assert {k: model[k] for k in ("n_heads", "d_head", "d_model", "n_ctx", "positions", "norm")} == {
        "n_heads": 12, "d_head": 64, "d_model": 768, "n_ctx": 2048, "positions": "sinusoidal", "norm": "layer",
    }  # fmt: skip
    assert values["tokenizer"]["d_vocab"] == 50_000
    assert values["corpus"]["source"] == "hub"
    assert {c["train"]["device"] for c in values["cells"].values()} == {"cuda"}
    assert values["cells"]["L2H12S0"]["train"]["optimizer"] == "adamw"


def test_the_gpus_profile_has_five_seeds_of_one_to_sixteen_heads(tmp_path: Path) -> None:
    cells = composed(tmp_path, "profile=gpu")["cells"]
    grid = {(c["model"]["n_heads"], c["seed"]) for name, c in cells.items() if name.startswith("L2")}
    assert grid == {(heads, seed) for heads in (1, 2, 4, 8, 16) for seed in range(5)}


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_corpus_composes_and_says_what_is_not_set(tmp_path: Path, corpus: str) -> None:
    values = composed(tmp_path, f"corpus={corpus}")["corpus"]
    if values.get("paths") == "???":
        with pytest.raises(ConfigError, match=r"corpus.paths: has no value yet \(\?\?\?\); set it in conf/"):
            load_corpus(values)
        values["paths"] = ["a.txt"]
    load_corpus(values)


def test_the_default_grid_covers_layers_heads_and_seeds(tmp_path: Path) -> None:
    cells = composed(tmp_path)["cells"]
    assert {c["model"]["n_layers"] for c in cells.values()} == {0, 1, 2}
    assert len({c["model"]["n_heads"] for c in cells.values() if c["model"]["n_layers"]}) >= 2
    assert len({c["seed"] for c in cells.values()}) >= 2
    assert sum(c["model"]["n_layers"] == 0 for c in cells.values()) == len({c["seed"] for c in cells.values()})


RECIPE = ("lr_embedding", "lr_unembedding", "warmup_steps")  # that the first recipe had otherwise


def test_the_controls_differ_from_a_cell_of_the_grid_in_what_they_are_for(tmp_path: Path) -> None:
    """Smeared keys also differ in the learning rate of the smearing."""
    cells = composed(tmp_path)["cells"]
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
    before = composed(tmp_path, f"profile={profile}")["cells"]
    after = composed(tmp_path, f"profile={profile}", "+sweep.controls.mine.model.n_layers=1")["cells"]
    assert [name for name in before if not name.startswith("L")] == controls
    assert {name: after[name] for name in before} == before
    assert [name for name in after if name not in before] == ["mine"]


def test_each_synthetic_model_is_complete_and_combines_shared_and_own_settings(tmp_path: Path) -> None:
    """Settings of one kind of corpus override those of all kinds, and these override those of the grid."""
    values = composed(tmp_path)
    shared, differing = values["calibrate"], values["calibrate"]["synthetic_models"]
    assert list(values["synthetic_models"]) == list(differing)
    for name, model in values["synthetic_models"].items():
        assert set(model) == {"corpus", "model", "train"} >= set(differing[name])
        for part, settings in model.items():
            cells = {} if part == "corpus" else values[part]
            assert settings == {**cells, **shared[part], **differing[name].get(part, {})}
    rules = {"n_skip_trigrams", "questions", "n_answers", "repeat_share", "two_back_spread"}
    assert all(any(model["corpus"][key] for model in values["synthetic_models"].values()) for key in rules)


def test_a_setting_of_all_synthetic_models_changes_all_and_that_of_one_it_alone(tmp_path: Path) -> None:
    before = composed(tmp_path)["synthetic_models"]
    one = composed(tmp_path, "calibrate.synthetic_models.copies.corpus.repeat_share=0.3")["synthetic_models"]
    assert [name for name in before if before[name] != one[name]] == ["copies"]
    assert one["copies"]["corpus"]["repeat_share"] == 0.3
    every = composed(tmp_path, "calibrate.corpus.n_words=53")["synthetic_models"]
    own = [name for name in before if before[name] == every[name]]
    assert (
        own
        == [name for name, model in before.items() if model["corpus"]["n_words"] in (47, 97)]
        == ["bigrams", "skips"]
    )
    assert {model["corpus"]["n_words"] for name, model in every.items() if name not in own} == {53}


def test_a_misspelt_key_of_a_synthetic_model_is_named(tmp_path: Path) -> None:
    copy(tmp_path)
    compose(tmp_path / "params.yaml", ["++calibrate.synthetic_models.copies.corpus.repeat_shar=0.3"])
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert found.returncode == 1
    assert "synthetic_models.copies.corpus.repeat_shar: no such setting; did you mean repeat_share?" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("cells={}", "  cells.L0S5: params.yaml has '(absent)', the other sections give {"),
        ("synthetic_models={}", "  synthetic_models.bigrams: params.yaml has '(absent)', the other sections give {"),
    ],
)
def test_models_that_the_other_sections_do_not_give_are_refused(tmp_path: Path, override: str, said: str) -> None:
    """Otherwise no model could be trained, or another one under the name of a model of the grid."""
    copy(tmp_path)
    compose(tmp_path / "params.yaml", [override])
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert found.returncode == 1
    assert said in found.stderr


def test_a_model_whose_seed_its_name_belies_is_refused(tmp_path: Path) -> None:
    compose(tmp_path / "params.yaml", ["sweep.seeds=[5]", "+sweep.overrides.L2H4S5.train.tokens=9000000"])
    values = read_yaml(tmp_path / "params.yaml")
    check_composed(values)
    values["cells"]["L2H4S5"]["seed"] = 100
    with pytest.raises(ValueError, match=r"cells.L2H4S5.seed: params.yaml has 100, the other sections give 5"):
        check_composed(values)


def test_a_misspelt_position_scheme_is_refused_before_any_work(tmp_path: Path) -> None:
    copy(tmp_path)
    compose(
        tmp_path / "params.yaml",
        ["+sweep.overrides.L2H4S5.model.positions=relativ", "+calibrate.synthetic_models.copies.model.positions=rotry"],
    )
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert found.returncode == 1
    schemes = f"expected one of {', '.join(SCHEMES)}"
    assert f"cells.L2H4S5.model.positions: {schemes}, got 'relativ'; did you mean relative?" in found.stderr
    assert "synthetic_models.copies: synthetic models are trained together: expected model.pos" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_synthetic_corpus_whose_documents_fill_no_window_is_refused_by_name(tmp_path: Path) -> None:
    copy(tmp_path)
    compose(
        tmp_path / "params.yaml",
        ["calibrate.synthetic_models.two_back.model.n_heads=2", "+calibrate.synthetic_models.copies.model.n_ctx=32"],
    )
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert (
        "synthetic_models.copies: a document must fill a window: expected words_per_document = n_ctx = 32"
        in found.stderr
    )
    assert (
        "synthetic_models.two_back: a one-layer model needs one head, whose role is then known; got 2" in found.stderr
    )
    assert "synthetic_models.bigrams" not in found.stderr


def test_a_single_cell_can_be_overridden_and_a_wrong_name_is_refused(tmp_path: Path) -> None:
    before = composed(tmp_path)["cells"]
    after = composed(tmp_path, "++sweep.overrides.L2H4S6.train.tokens=123")["cells"]
    assert [name for name in before if before[name] != after[name]] == ["L2H4S6"]
    assert after["L2H4S6"]["train"]["tokens"] == 123
    first = composed(tmp_path, "++sweep.overrides.L2H4S5.train.tokens=123")["cells"]
    assert [name for name in before if before[name] != first[name]] == ["L2H4S5"]  # not the controls beside it
    with pytest.raises(Exception, match=r"sweep.overrides: expected the name of a model, got L2H4; the grid has L0S5"):
        composed(tmp_path, "++sweep.overrides.L2H4.train.tokens=1")
    with pytest.raises(Exception, match=r"sweep.overrides: expected the name of a model, got L2H4S03; "):
        composed(tmp_path, "++sweep.overrides.L2H4S03.train.tokens=1")
    with pytest.raises(Exception, match=r"sweep.overrides: shuffled is a control; change it under sweep.controls.shuf"):
        composed(tmp_path, "++sweep.overrides.shuffled.train.tokens=1")


def test_a_grid_without_seeds_is_named(tmp_path: Path) -> None:
    for seeds in ("[]", "0"):
        with pytest.raises(ValueError, match=r"sweep.seeds: expected a list of at least one seed"):
            compose(tmp_path / "params.yaml", [f"sweep.seeds={seeds}"])


def test_heads_of_other_widths_keep_the_total_width_and_have_names_of_their_own(tmp_path: Path) -> None:
    before, after = composed(tmp_path)["cells"], composed(tmp_path, "sweep=widths")["cells"]
    assert {name: after[name] for name in before} == before  # which are not trained again
    new = {name: cell["model"] for name, cell in after.items() if name not in before}
    assert {m["n_heads"] * m["d_head"] for m in new.values()} == {4 * 32}
    assert set(new) == {f"L{n}H{h}S{s}" for n in (1, 2) for h in ("8D16", "2D64") for s in (5, 6, 7)}
    changed = composed(tmp_path, "sweep=widths", "++sweep.overrides.L2H8D16S6.train.tokens=123")["cells"]
    assert [name for name in after if after[name] != changed[name]] == ["L2H8D16S6"]
    assert composed(tmp_path, "sweep.d_head=[32]")["cells"] == before
    with pytest.raises(Exception, match=r"sweep.d_head: expected divisors of .* = 128, got 48"):
        composed(tmp_path, "sweep.d_head=[48]")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("train/muon.yaml", "3", r"muon.yaml: expected settings by name, got something else"),
        (
            "train/muon.yaml",
            "a: " + "[" * 3000,
            r"muon.yaml: expected settings, got brackets .* nested too deeply",
        ),
        ("train/muon.yaml", "batch: " + "9" * 5000, r"muon.yaml: expected settings by name, got something else"),
        ("config.yaml", "- a", r"config.yaml: expected settings by name, got a list"),
        ("config.yaml", "", r"config.yaml: expected the list `defaults`, got none"),
        (
            "config.yaml",
            "default:\n- train: muon\n",
            r"config.yaml: expected the list `defaults`, got none",
        ),
    ],
)
def test_a_file_of_conf_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: str, said: str
) -> None:
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    shutil.copytree(ROOT / "pipelines", tmp_path / "pipelines")
    (tmp_path / "conf" / file).write_text(content)
    monkeypatch.setattr("pipelines.compose.ROOT", tmp_path)
    with pytest.raises(ValueError, match=said):
        compose(tmp_path / "params.yaml", [])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("train=null", "expected KEY=VALUE, with the name of a file in conf/KEY/ for a whole section"),
        ("sweep.controls={}", "settings are merged, so {} changes nothing"),
        ("++sweep.controls= { }", "settings are merged, so {} changes nothing"),
        ("++sweep.controls={smeared: {model: { }}}", "settings are merged, so {} changes nothing"),
        ("++hydra.job.chdir=true", "only pipelines.train reads Hydra's own settings"),
        ("++cells.L2H4S5.seed=9", "cells.L2H4S5.seed: is composed from other settings; change model, train"),
        ("cells.L2H4S5.seed=9", "cells.L2H4S5.seed: is composed from other settings; change model, train"),
    ],
)
def test_an_override_of_what_is_composed_is_refused(tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compose(tmp_path / "params.yaml", [override])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model.n_layer=2"], "model.n_layer: no such setting; did you mean n_layers?"),
        (["train=null"], "expected KEY=VALUE, with the name of a file"),
        (
            ["--multirun", "hydra/launcher=joblib", "hydra.launcher.n_jobs=x"],
            "'x' of type 'str' could not be",
        ),
        (["hydra.launcher.njobs=2"], "hydra.launcher.njobs: Hydra has no such setting"),
        (["--multirun", "seed=range(5,1)"], "seed=range(5,1): expected at least one value, got none"),
        (["--multirun", "model=glob(none*)"], "model=glob(none*): expected at least one value, got none"),
        (["~model.n_layers"], "~model.n_layers: expected one setting and its value, such as train.tokens=500000"),
        (["train={tokens:6000}"], "train={tokens:6000}: expected the name of one file in conf/train/"),
        (["train=[1]"], "train=[1]: expected the name of one file in conf/train/, got a list or settings; single"),
        (["sweep.seeds=[7]"], "sweep.seeds=[7]: expected a setting that training one model reads (seed, model., "),
        (["+x=1"], "+x=1: expected a setting that training one model reads"),
        (["+hydrax.foo=1"], "+hydrax.foo=1: expected a setting that training one model reads"),
        (["++sweep.overrides.L2H4S9.train.tokens=5"], "tokens=5: expected a setting that training one model reads"),
        (["sweep=widths"], "sweep=widths: expected a setting that training one model reads"),
        (["--multirun", "hydra/launcher=joblib", "hydra.launcher.n_jobs=0"], "n_jobs=0 (JOBS): expected a number of"),
        (["hydra/launcher=joblib"], "hydra/launcher=joblib: only sweeps read it; expected --multirun as well"),
        (["--multirun", "hydra.run.dir=x"], "hydra.run.dir=x: sweeps do not read it; expected hydra.sweep.dir"),
        (
            ["++hydra.mode='MULTIRUN'", "hydra/launcher=joblib", "hydra.launcher.n_jobs=0"],
            "n_jobs=0 (JOBS): expected a",
        ),
        (["hydra.sweep.dir=x"], "hydra.sweep.dir=x: only sweeps read it; expected --multirun as well"),
        (["--multirun", "hydra.sweeper.params={seed:1}"], "expected the values of a sweep as KEY=1,2"),
        (["hydra.job.chdir=true"], "hydra.job.chdir=true: expected false, because paths are relative to the root"),
        (["hydra.run.dir=/dev/null/x"], "/dev/null/x: Not a directory; give a path"),
        (
            ["--multirun", "model.n_layers=0,1"],
            "model.n_layers=0: failed; data/tokens/train.bin: expected a",
        ),
    ],
)
def test_a_mistake_in_an_override_of_training_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    done = command(tmp_path, "pipelines.train", *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "numbers",
    [
        {},
        {"RANK": "x", "WORLD_SIZE": "2"},
        {"RANK": "5", "WORLD_SIZE": "2"},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "65536"},
        {"RANK": "0", "WORLD_SIZE": "99999999999", "MASTER_ADDR": "localhost", "MASTER_PORT": "65535"},
        {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "65535", "LOCAL_RANK": "1"},
    ],
)
def test_numbers_that_torchrun_does_not_set_are_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: dict[str, str]
) -> None:
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", **numbers}.items():
        monkeypatch.setenv(name, value)
    said = command(tmp_path, "pipelines.train").stderr
    assert f"expected the numbers that torchrun sets, got RANK={numbers.get('RANK', '')} WORLD_SIZE=" in said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("+trian={batch: 4}", "trian: no such section; did you mean train?"),
        ("+sweep.by_layer=1", "sweep.by_layer: no such setting; did you mean by_layers?"),
    ],
)
def test_a_misspelt_section_of_a_profile_is_refused_by_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, said: str
) -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = hydra_compose("config", [typed])  # as a profile of the user's own would add it
    for name in ("set_threads", "require_same_tokens", "wait_for_tokens", "run_cell"):
        monkeypatch.setattr(train, name, lambda *_: Path("runs"))
    with pytest.raises(SystemExit):
        train.run(config, [], sweep=False)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("warmup", "told"), [(19, False), (20, True)])
def test_training_that_ends_in_its_warm_up_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], warmup: int, told: bool
) -> None:
    typed = [f"train.tokens={20 * 4 * 256}", f"train.warmup_steps={warmup}"]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = hydra_compose("config", typed)
    for name in ("set_threads", "require_same_tokens", "wait_for_tokens", "run_cell"):
        monkeypatch.setattr(train, name, lambda *_: Path("runs"))
    train.run(config, typed, sweep=False)
    said = capsys.readouterr()
    assert said.out == f"L2H4S5 {' '.join(typed)}: runs\n"
    assert ("train.warmup_steps: expected fewer steps than training has" in said.err) == told


def test_an_override_of_a_model_that_the_grid_lacks_is_told(tmp_path: Path) -> None:
    copy(tmp_path)
    compose(tmp_path / "params.yaml", ["+sweep.overrides.L2H4S9.train.tokens=9000000"])
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert found.returncode == 0
    assert "sweep.overrides.L2H4S9: the grid has no such model; only pipelines.train reads it" in found.stderr
    lines = list(without_effect(composed(tmp_path, "+sweep.overrides.L2H8D16S2.train.tokens=9000000")))
    assert lines == ["sweep.overrides.L2H8D16S2: the grid has no such model; no command reads it"]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model.n_layers=1", "model.n_layers = 1: only pipelines.train reads it; the grid has sweep.n_layers = [0, 1"),
        ("model.n_heads=8", "model.n_heads = 8: only pipelines.train reads it; the grid has sweep.n_heads = [4, 2"),
        ("seed=99", "seed = 99: only pipelines.train reads it; the grid has sweep.seeds = [5, 6, 7]"),
        ("sweep.n_layers=[0]", "model.n_layers = 2: only pipelines.train reads it"),
        ("sweep.n_layers=[0]", "train.tokens = 2000000: no model of the grid has it; sweep.by_layers or overrides"),
        ("sweep.d_head=[32]", "sweep.d_head = [32]: 32 is model.d_head and adds no models"),
        (
            "++sweep.by_layers.0.train.lr_attention=0.5",
            "sweep.by_layers.0.train.lr_attention: models without",
        ),
        ("++sweep.overrides.L0S5.model.smeared_keys=true", "sweep.overrides.L0S5.model.smeared_keys: models without"),
        ("sweep.n_layers=[0]", "sweep.n_heads = [4, 2, 8]: models without layers have no heads, so it adds no models"),
        ("train.warmup_steps=1500", "train.warmup_steps: expected fewer steps than training has, because learning"),
        ("+sweep.by_layers.3.train.tokens=1", "sweep.by_layers.3: the grid has no model of 3 layers"),
    ],
)
def test_a_setting_that_changes_no_model_of_the_grid_is_told(tmp_path: Path, override: str, said: str) -> None:
    assert not list(without_effect(composed(tmp_path)))
    lines = list(without_effect(composed(tmp_path, override)))
    assert [line.startswith(said) for line in lines].count(True) == 1, lines


WITH_MUON = "only models that are trained with Muon read it"
OF_LATER = "only models of several layers read it"
NO_RATES = "sweep.controls.equal_position_rates=null sweep.controls.old_recipe=null"  # which need relative positions
WITH_POSITIONS = "only models with relative positions or smeared keys read it"
WITH_WEIGHT = "only models with train.repeat_weight above 1 read it"


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ("train=adamw", []),  # calibration reads the momentum
        ("train=adamw calibrate.train.optimizer=adamw", [f"train.momentum = 0.95: {WITH_MUON}"]),
        ("train=adamw train.momentum=0.4 calibrate.train.optimizer=adamw", [f"train.momentum = 0.4: {WITH_MUON}"]),
        (
            "train=adamw ++sweep.by_layers.1.train.momentum=0.4",
            [f"sweep.by_layers.1.train.momentum: {WITH_MUON}"],
        ),
        (f"model.positions=rotary {NO_RATES} train.lr_positions=0.2", []),  # a control with smeared keys reads it
        (
            f"model.positions=rotary {NO_RATES} sweep.controls.smeared_two=null sweep.controls.clamped_previous=null "
            "train.lr_positions=0.2",
            [f"train.lr_positions = 0.2: {WITH_POSITIONS}"],
        ),
        (
            f"model.positions=none {NO_RATES} ++sweep.overrides.L1H4S5.train.lr_positions=0.1",
            [f"sweep.overrides.L1H4S5.train.lr_positions: {WITH_POSITIONS}"],
        ),
        (
            "++calibrate.synthetic_models.bigrams.train.lr_attention=0.9",
            ["calibrate.synthetic_models.bigrams.train.lr_attention: models without layers do not read it"],
        ),
        (
            "++calibrate.synthetic_models.untrained.train.batch=2",
            ["calibrate.synthetic_models.untrained.train.batch: untrained models do not read it"],
        ),
        ("train.repeat_tokens=40960", [f"train.repeat_tokens = 40960: {WITH_WEIGHT}"]),
        ("train.repeat_tokens=40960 train.repeat_weight=3", []),
        (
            "++sweep.overrides.L1H4S5.train.repeat_tokens=40960",
            [f"sweep.overrides.L1H4S5.train.repeat_tokens: {WITH_WEIGHT}"],
        ),
        (
            "++sweep.overrides.L1H4S5.train.lr_later_positions=0.1",
            [f"sweep.overrides.L1H4S5.train.lr_later_positions: {OF_LATER}"],
        ),
        (
            "tracking=none tracking.project=mine tracking.entity=me",
            [
                f"tracking.{given}: W&B is off; tracking=wandb turns it on"
                for given in ("project = mine", "entity = me")
            ],
        ),
        ("tracking=wandb tracking.project=mine", []),
    ],
)
def test_a_setting_of_something_that_is_off_is_told(tmp_path: Path, overrides: str, said: list[str]) -> None:
    assert list(without_effect(composed(tmp_path, *overrides.split()))) == said


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sweep.controls.smeared_two.model.smeared_keys=false", "smeared_two: expected model.smeared_keys = True"),
        ("sweep.controls.smeared_two.model.n_layers=1", "smeared_two: expected model.n_layers = 2"),
        ("sweep.controls.clamped_previous.model.n_layers=1", "clamped_previous: expected model.n_layers = 2"),
        ("sweep.controls.smeared.model.smeared_keys=false", "smeared: expected model.smeared_keys = True"),
        ("sweep.controls.shuffled.train.shuffled=false", "shuffled: expected train.shuffled = True"),
        ("sweep.controls.untrained.train.tokens=100000", "untrained: expected train.tokens = 0"),
        ("sweep.controls.clamped_previous.model.clamp=none", "clamped_previous: expected model.clamp = previous_token"),
        ("sweep.controls.small_embedding.model.embedding_std=1", "expected model.embedding_std < 1.0"),
        (
            "++sweep.controls.small_embedding_2={model: {n_layers: 2}}",
            "small_embedding_2: expected model.embedding_std",
        ),
    ],
)
def test_a_control_has_what_its_name_states(tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"{re.escape(said)}.*; change it, or give the control another name"):
        check_valid(composed(tmp_path, override), Preregistration())


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("bigrams.model.n_layers=1", "bigrams.model.n_layers: expected 0"),
        ("skips.corpus.n_skip_trigrams=0", "skips.corpus.n_skip_trigrams: expected more than 0"),
        ("two_back.corpus={two_back_spread: 0.0}", "two_back.corpus.two_back_spread: expected more than 0"),
        ("smeared.model.smeared_keys=false", "smeared.model.smeared_keys: expected True"),
        ("smeared.corpus.repeat_share=0", "smeared.corpus.repeat_share: expected more than 0"),
        ("copies.corpus.repeat_share=0.0", "copies.corpus.repeat_share: expected more than 0"),
        ("questions.corpus.questions=false", "questions.corpus.questions: expected True"),
        ("lookups.corpus.n_answers=0", "lookups.corpus.n_answers: expected more than 0"),
        ("untrained.train.tokens=100000", "untrained.train.tokens: expected 0"),
    ],
)
def test_a_kind_of_synthetic_models_has_what_its_name_states(tmp_path: Path, override: str, said: str) -> None:
    values = composed(tmp_path, f"++calibrate.synthetic_models.{override}")
    named = re.escape(f"calibrate.synthetic_models.{said}")
    with pytest.raises(ConfigError, match=f"{named}, as a kind of this name has, got .*; change it, or give the kind"):
        check_valid(values, Preregistration())


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "skips.corpus.n_skip_trigrams=100",
            "skips.corpus.n_skip_trigrams, questions, n_answers: expected rules of at",
        ),
        (
            "lookups.corpus.n_answers=1",
            "lookups.corpus.n_skip_trigrams, n_answers: expected 0 or more, and not exactly",
        ),
    ],
)
def test_rules_that_do_not_fit_a_synthetic_corpus_are_refused(tmp_path: Path, override: str, said: str) -> None:
    values = composed(tmp_path, f"calibrate.synthetic_models.{override}")
    with pytest.raises(ConfigError, match=re.escape(f"synthetic_models.{said}")):
        check_valid(values, Preregistration())


def test_a_synthetic_corpus_has_more_documents_than_are_held_out(tmp_path: Path) -> None:
    check_valid(composed(tmp_path, "calibrate.corpus.max_documents=449"), Preregistration())
    with pytest.raises(ConfigError, match="corpus.max_documents: expected more than the 448 held-out ones, got 448"):
        check_valid(composed(tmp_path, "calibrate.corpus.max_documents=448"), Preregistration())


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("calibrate.seeds=[48,100,23]", "calibrate: expected seeds that are not in tuning_seeds, got 23, 100"),
        ("calibrate.model.norm=none", "synthetic models are trained together: expected model.norm=rms, got none"),
        ("calibrate.model.positions=none", "are trained together: expected model.positions=relative, got none"),
        ("calibrate.synthetic_models.copies.model.n_layers=3", "copies.model.n_layers: expected 2, as a kind"),
        ("++calibrate.synthetic_models.copies.train.tokens=0", "copies.train.tokens: expected more than 0, as a"),
        ("++calibrate.synthetic_models.copies.model.smeared_keys=true", "smeared_keys: expected False, as a kind"),
        ("tracking.project='a\tb'", "tracking.project: expected a name of printable characters"),
        ("tracking.group=' '", "tracking.group: expected a name of printable characters"),
    ],
)
def test_what_would_falsify_the_calibration_or_a_label_is_refused(tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_valid(composed(tmp_path, override), Preregistration())


@pytest.mark.parametrize("share", [0, 1])
def test_a_synthetic_corpus_leaves_documents_for_training_and_for_verdicts(tmp_path: Path, share: int) -> None:
    given = composed(tmp_path, "corpus=synthetic", f"corpus.validation_share={share}")
    with pytest.raises(ConfigError, match="corpus.validation_share: expected a number from 1e-06 to 0.999"):
        check_valid(given, Preregistration())


@pytest.mark.parametrize("key", ["train.shuffled=true", "model.smeared_keys=true", "train.tokens=0"])
def test_a_grid_of_controls_is_told(tmp_path: Path, key: str) -> None:
    told = list(without_effect(composed(tmp_path, f"++sweep.overrides.L2H4S5.{key}")))
    assert told == [
        f"{key.split('=')[0]}: changed as in a control, but claims are judged on models of the grid (in L2H4S5)"
    ]


def test_a_setting_with_a_default_may_be_absent(tmp_path: Path) -> None:
    values = composed(tmp_path)
    for config in (values, *values["cells"].values()):
        config["model"].pop("clamp", None)
    assert not list(without_effect(values))


def test_frozen_claims_have_a_protocol(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected protocol.tuning_seeds and protocol.statements, got none"):
        check_valid(composed(tmp_path), Preregistration(frozen=datetime.date(2025, 3, 7)))


def test_a_kind_of_synthetic_models_has_a_name_that_can_be_printed(tmp_path: Path) -> None:
    values = composed(tmp_path)
    values["synthetic_models"]["a/b"] = values["synthetic_models"]["copies"]
    with pytest.raises(ConfigError, match="calibrate.synthetic_models.a/b: expected a name of at most 64 letters"):
        check_valid(values, Preregistration())


def test_every_profile_trains_single_models_like_those_of_its_grid(tmp_path: Path) -> None:
    for profile in PROFILES:
        assert not list(without_effect(composed(tmp_path, f"profile={profile}", "corpus=python"))), profile


def test_a_single_model_is_the_same_if_the_changes_of_its_grid_are_interpolated() -> None:
    values = params(ROOT)
    config = OmegaConf.create({name: values[name] for name in ("seed", "model", "train", "sweep")})
    plain = train.ad_hoc(config, [])
    assert values["sweep"]["overrides"] == {}
    config.sweep.overrides = "${oc.create:{}}"
    assert train.ad_hoc(config, []) == plain


def test_only_a_control_that_exists_can_be_left_out(tmp_path: Path) -> None:
    without = composed(tmp_path, "sweep.controls.smeared=null")
    check_valid(without, Preregistration())
    assert "smeared" not in without["cells"]
    with pytest.raises(ConfigError, match="sweep.controls.smered: no such control to leave out; did you mean smeared"):
        check_valid(composed(tmp_path, "++sweep.controls.smered=null"), Preregistration())


def test_the_committed_params_are_fresh(tmp_path: Path) -> None:
    found = check(copy(tmp_path))
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "data" / "checked").read_text() == "checked\n"


def test_models_in_conf_that_do_not_follow_from_the_other_sections_are_refused(tmp_path: Path) -> None:
    path = copy(tmp_path) / "conf" / "config.yaml"
    values = yaml.safe_load((tmp_path / "params.yaml").read_text())
    values["cells"] = {"L0S5": values["cells"]["L0S5"]}
    given = f"cells: {json.dumps(values['cells'])}"
    path.write_text(path.read_text().replace("cells: ${grid:${model},${train},${sweep}}", given))
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    assert "cells: composed from other sections, but given otherwise" in check(tmp_path).stderr


def test_a_value_that_differs_from_itself_is_not_stale() -> None:
    assert not list(differences({"x": {"y": math.nan, "z": 1}}, {"x": {"y": math.nan, "z": 1}}))
    assert len(list(differences({"x": math.nan}, {"x": 1.0}))) == 1


def test_the_lock_of_an_editor_is_no_file_of_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    (tmp_path / "conf" / "profile" / ".#smoke.yaml").symlink_to("me@host.1:2")
    compose(tmp_path / "params.yaml", ["profile=smoke"])
    assert check(tmp_path, DVC_EXP_NAME="trial").returncode == 0


def test_a_missing_configuration_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    (tmp_path / "conf" / "config.yaml").unlink()
    with pytest.raises(ValueError, match="expected the file conf/config.yaml, found none; put it back"):
        compose(tmp_path / "params.yaml", [])


@pytest.mark.parametrize("option", ["--config-name=claims", "--config-path=/tmp", "-cn", "-cp"])
def test_another_primary_configuration_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option}: expected no such option"), composing([option]):
        pass


def test_a_comment_in_conf_changes_nothing(tmp_path: Path) -> None:
    copy(tmp_path)
    path = tmp_path / "conf" / "train" / "muon.yaml"
    path.write_text("# a remark\n" + path.read_text())
    assert check(tmp_path).returncode == 0


def test_a_stale_params_file_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    copy(tmp_path)
    path = tmp_path / "conf" / "extract" / "standard.yaml"
    path.write_text(path.read_text().replace("top_k: 20", "top_k: 21"))
    found = check_as_command(tmp_path)
    assert found.returncode == 1
    assert "params.yaml is stale against conf/:" in found.stderr
    assert "extract.top_k: params.yaml has 20, conf/ has 21" in found.stderr
    assert "Run `make params`" in found.stderr
    assert "Traceback" not in found.stderr
    assert check(tmp_path, DVC_EXP_NAME="trial").returncode == 0


def test_a_misspelt_key_in_conf_is_refused_before_any_work(tmp_path: Path) -> None:
    copy(tmp_path)
    path = tmp_path / "params.yaml"
    path.write_text(path.read_text().replace("  d_vocab:", "  d_vocabb:"))
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert found.returncode == 1
    assert "tokenizer.d_vocabb: no such setting; did you mean d_vocab?" in found.stderr
    assert "tokenizer.d_vocab: is required and was not given" in found.stderr
    path.write_text(
        path.read_text().replace("  n_heads:\n", "  n_head:\n").replace("tracking:", "trackings:\n  a: 1\ntracking:")
    )
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert "sweep.n_head: no such setting; did you mean n_heads?" in found.stderr
    assert "trackings: no such section; did you mean tracking?" in found.stderr


def test_a_cell_with_another_context_than_the_baselines_is_refused(tmp_path: Path) -> None:
    copy(tmp_path)
    compose(tmp_path / "params.yaml", ["++sweep.overrides.L2H4S6.model.n_ctx=128"])
    found = check(tmp_path, DVC_EXP_NAME="trial")
    assert "cells.L2H4S6.model.n_ctx: expected model.n_ctx = 256" in found.stderr
    assert "got 128; change model.n_ctx for all cells" in found.stderr


def test_a_setting_of_another_file_than_the_chosen_one_is_named(tmp_path: Path) -> None:
    said = (
        "corpus.distributions: expected a setting of the file of conf/corpus/ that is chosen here, got one of another"
    )
    with pytest.raises(ValueError, match=re.escape(said)):
        compose(tmp_path / "params.yaml", ["corpus=text", "corpus.distributions=[sympy]"])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model.n_hedas=4", "model.n_hedas: no such setting; did you mean n_heads?"),
        ("modl.n_heads=4", "modl: no such setting; did you mean model?"),
        ("profil=paper", "profil: no such setting; did you mean profile?"),
        ("n_heads", "n_heads: expected KEY=VALUE"),
        ("model/n_heads=4", "model/n_heads: no such folder in conf/; single settings have dots: model.n_heads=…"),
        ("model.n_heads.x=4", "model.n_heads.x: model.n_heads is a single value, without settings of its own"),
        ("sweep.by_layers.2.train.tokens=5", "no such setting; known: 0 (++sweep.by_layers.2.train.tokens=… adds one)"),
        ("sweep.overrides={L2H4S5: {seed: 1}}", "sweep.overrides: empty, or no such setting; ++sweep.overrides=… adds"),
        ("sweep.overrides=[]", "sweep.overrides: expected settings by name, got a list"),
        ("sweep.n_layers={1: 2}", "sweep.n_layers: expected a list in brackets, such as [1, 2], got settings by name"),
        ("sweep.controls={null: {model: {n_layers: 1}}}", "sweep.controls: expected names as keys, got null"),
        (
            "sweep.by_layers={2: ???}",
            "sweep.by_layers={2: ???}: expected values in braces, got ???; write each of them",
        ),
        (
            "sweep.controls={a: {model: {d_head: 1, d_head: 2}}}",
            "model: {d_head: 1, d_head: 2}}}: expected different keys in braces, got d_head more than once",
        ),
        ("++sweep.by_layers={1: {seed: 1}, 1.0: {seed: 2}}", "expected different keys in braces, got 1.0 more than"),
        ("sweep.controls=[{a: 1, a: 2}]", "expected different keys in braces, got a more than once"),
        ("sweep.by_layers={2: [1]}", "expected one setting of it at a time; write ++sweep.by_layers.KEY="),
        ("sweep.by_layers.2=5", "sweep.by_layers.2: no such setting; known: 0 (++sweep.by_layers.2=… adds one)"),
        ("tokens=40960", "tokens: no such setting; did you mean train.tokens?"),
        ("corpus.paths=[docs]", "; other kinds of corpora have other settings, chosen by corpus=NAME"),
        ("~train", "~train: nothing that every run reads can be removed; expected KEY=VALUE"),
        ("=[1]", "=…: expected KEY=VALUE, with letters"),
        ("sweep=[widths,grid]", "sweep=[widths,grid]: expected the name of one file in conf/sweep/, got a list"),
        ("extract={a: 1}", "extract={a: 1}: expected the name of one file in conf/extract/, got a list or settings"),
        ("sweep.seeds=[2.0]", "sweep.seeds: expected a whole number, got [2.0]"),
        ("model.n_heads=[4", "special characters of VALUE in quotation marks, and brackets and quotes closed"),
        ("++sweep.by_layers.02.train.tokens=5", "expected a number of layers without sign or leading zeros"),
        ("++sweep.by_layers.-1.train.tokens=5", "sweep.by_layers.2.train.tokens=9000000, got '-1'"),
        ("=", "=…: expected KEY=VALUE, with letters"),
        ("sweep=grd", "conf/sweep/grd.yaml: named by `defaults` or an override, but not there; grd: no such file; did"),
        ("sweep.controls.shuffeld=null", "no such setting; did you mean shuffled? (++sweep.controls.shuffeld=… adds"),
        ("sweep.n_heads=4", "  - sweep.n_heads: expected a list in brackets, got 4"),
        (
            "++sweep.by_layers.2.train.tokns=5",
            "sweep.by_layers.2.train.tokns: no such setting; did you mean tokens?",
        ),
        ("sweep.seeds=range(3)", "which only `python -m pipelines.train --multirun` reads; write a list as [0, 1, 2]"),
        ("model.n_heads=2,4", "which only `python -m pipelines.train --multirun` reads; write a list as [0, 1, 2]"),
        ("calibrate.corpus=3", "  - calibrate.corpus: expected settings by name, got 3"),
    ],
)
def test_an_override_that_does_not_compose_is_named_with_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str, said: str
) -> None:
    """The message has no internals of the libraries, such as their search path."""
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        compose(tmp_path / "params.yaml", [override])
    assert not any(
        internal in str(caught.value)
        for internal in ("Exception", "viable", "full_key", "search path", "raised while", "See http")
    )


@pytest.mark.parametrize(
    "override",
    [
        "calibrate.synthetic_models.skips.corpus.repeat_share=0.1",
        "calibrate.synthetic_models.skips.train.warmup_steps=20",
        "sweep.by_layers.1.train.tokens=5000000",
        "sweep.controls.shuffled.train.tokens=5000000",
    ],
)
def test_what_the_message_says_can_be_added_can_be(tmp_path: Path, override: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"(++{override.partition('=')[0]}=… adds one)")):
        compose(tmp_path / "params.yaml", [override])
    compose(tmp_path / "params.yaml", [f"++{override}"])


@pytest.mark.parametrize(
    "override",
    [
        "calibrate.synthetic_models.skips.corpus.zipff=1",
        "calibrate.synthetic_models.skips.corpus.distributions=[a]",
        "calibrate.synthetic_models.skips.rotations=7",
        "calibrate.synthetic_models.skips.train.device=cuda",
        "sweep.by_layers.0.model.n_heads=2",
        "sweep.by_layers.0.train.tokenz=5000000",
        "sweep.by_layers.1.tokenizer.d_vocab=500",
        "sweep.by_layers.two.train.tokens=5000000",
        "sweep.controls.new.seeds=[1]",
        "sweep.controls.smeared.model.smeard_keys=true",
        "sweep.d_heads=[8]",
    ],
)
def test_a_key_that_would_be_refused_is_not_offered(tmp_path: Path, override: str) -> None:
    with pytest.raises(
        ValueError, match=r"no such setting; (did you mean|known: )|expected a number of layers"
    ) as caught:
        compose(tmp_path / "params.yaml", [override])
    assert "adds one" not in str(caught.value)


@pytest.mark.parametrize("times", [2, 10])
def test_aliases_that_repeat_each_other_end_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    lines = ["a: &a 1"] + [f"{y}: &{y} [{', '.join([f'*{x}'] * times)}]" for x, y in pairwise("abcdefg")]
    (tmp_path / "conf" / "model" / "other.yaml").write_text("\n".join(lines))
    if times == 2:
        compose(tmp_path / "params.yaml", [])
    else:
        with pytest.raises(ValueError, match=r"conf/model/other.yaml: expected at most 2,000 .*, got 1,234,5.. with"):
            compose(tmp_path / "params.yaml", [])


@pytest.mark.parametrize("value", ["caf\udce9", '"caf\udce9"', "[a,'\udce9']", "{a: '\ud83d'}"])
def test_an_override_that_is_no_utf_8_is_refused(tmp_path: Path, value: str) -> None:
    """Hydra would read it in quotation marks, and the file that it writes could not be read again."""
    said = f"{f'tracking.group={value}'!a}: expected UTF-8, got other bytes"
    with pytest.raises(ValueError, match=re.escape(said)):
        compose(tmp_path / "params.yaml", [f"tracking.group={value}"])
    compose(tmp_path / "params.yaml", ["tracking.group='café 😀'"])
    assert read_yaml(tmp_path / "params.yaml")["tracking"]["group"] == "café 😀"


@pytest.mark.parametrize("escape", [r"\ud83d", r"\uDCE9", r"\uD83D\uDE00"])
def test_half_a_character_in_conf_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, escape: str) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    (tmp_path / "conf" / "tracking" / "mine.yaml").write_text(f'mode: off\ngroup: "a{escape}"\n')
    with pytest.raises(ValueError, match=r"conf/tracking/mine\.yaml, line 2: expected characters, got half of one"):
        composed(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: [1", "; correct the file"),
        (b"a: [1", 'conf/train/muon.yaml", line'),
        (b"# \xff", "muon.yaml: expected UTF-8, got"),
    ],
)
def test_a_file_of_conf_that_is_no_yaml_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    path = tmp_path / "conf" / "train" / "muon.yaml"
    path.write_bytes(path.read_bytes() + content)
    with pytest.raises(ValueError, match="conf/ cannot be composed: ") as caught:
        compose(tmp_path / "params.yaml", [])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("config.yaml", "- profile: laptop", "- profile: smoke\n  - override hydra/launcher: basic", ""),
        ("config.yaml", "defaults:\n", "defaults:\n  - profile: smoke\n", "expected `profile` after `_self_`"),
        ("config.yaml", "defaults:\n", "defaults:\n  - /profile: smoke\n", "expected `profile` after `_self_`"),
        ("config.yaml", "defaults:\n", "defaults:\n  - profile/smoke\n", "expected `profile` after `_self_`"),
        ("config.yaml", "defaults:\n", "defaults:\n  - profile@_global_: smoke\n", "expected `profile` after `_self_`"),
        ("config.yaml", "- profile: laptop", "- profile: smoke\n  - _self_", "expected `profile` after `_self_`"),
        (
            "config.yaml",
            "  - corpus: python",
            "  - _self_\n  - corpus: python",
            "expected `_self_` after `tracking` in",
        ),
        ("config.yaml", "- profile: laptop", "- optional profile: smok", "expected `profile: NAME`, got `optional"),
        ("train/muon.yaml", "warmup_steps: 30", "warmup_steps: 030", "got 030, which YAML reads as 24"),
        ("train/muon.yaml", "warmup_steps: 30", "warmup_steps: 0b11", "got 0b11, which YAML reads as 3"),
        ("train/muon.yaml", "warmup_steps: 30", "warmup_steps: 0x1F", "got 0x1F, which YAML reads as 31"),
        ("train/muon.yaml", "warmup_steps: 30", "warmup_steps: 1:30", "got 1:30, which YAML reads as 90"),
        ("train/muon.yaml", "warmup_steps: 30", "warmup_steps: 1_000", ""),
        ("config.yaml", "- profile: laptop", "- profile:", "expected `profile: NAME`, got no name; name one file"),
        (
            "config.yaml",
            "- profile: laptop",
            "- profile: [smoke, laptop]",
            "`profile: NAME`, got a list; name one file",
        ),
        ("config.yaml", "seed: $", "tokenizer:\n  d_vocab: ???\nseed: $", "expected a value, got ???, which keeps the"),
        ("profile/smoke.yaml", "  windows: 8", "  windows: ???", "expected a value, got ???, which keeps the value of"),
        ("profile/laptop.yaml", "# @package _global_", "\n#  @package _global_ ", ""),
        ("profile/smoke.yaml", "# @package", "# See the README.\n# @package", "`# @package _global_`, got '# See the"),
        ("train/adamw.yaml", "optimizer: adamw", "optimizer: ???", "expected a value, got ???, which keeps the value"),
        ("train/adamw.yaml", "  - muon", "  - optional muonn", "expected `muonn: NAME`, got `optional muonn`, which"),
        ("corpus/text.yaml", "paths: ???", "paths:  ???", ""),
        ("profile/laptop.yaml", "_global_\n", "_global_\nsweep: {controls: {}}\n", "expected settings, got {}, which"),
        (
            "config.yaml",
            "seed: $",
            "sweep: {controls: {}}\nseed: $",
            "expected settings, got {}, which keeps the settings",
        ),
        ("train/adamw.yaml", "  - muon\n  - _self_", "  - _self_\n  - muon", "expected `_self_` after `muon` in"),
        (
            "train/adamw.yaml",
            *("defaults:\n  - muon\n  - _self_", "<<: &other\n  defaults: [_self_, muon]"),
            "expected `_self_` after `muon` in",
        ),
        (
            "train/adamw.yaml",
            *("defaults:\n  - muon\n  - _self_", "<<: [{defaults: [_self_, muon]}, {}]"),
            "expected `_self_` after `muon` in",
        ),
        ("train/adamw.yaml", "  - _self_\n", "", ""),
        ("profile/paper.yaml", "defaults:\n", "defaults:\n  - _self_\n", ""),
        ("profile/laptop.yaml", "# The", "defaults: [override /train: adamw]\n# The", ""),
        (
            "profile/laptop.yaml",
            "# The",
            "defaults: [override /trian: adamw]\n# The",
            "got `override trian`; correct it",
        ),
        (
            "profile/laptop.yaml",
            "# The",
            "defaults: [override train: adamw]\n# The",
            "expected `override /FOLDER: NAME`",
        ),
        ("profile/smoke.yaml", "# @package _global_\n", "", "expected the first line `# @package _global_`, got '# E"),
        ("profile/smoke.yaml", "# @package", "\ufeff# @package", "`# @package _global_`, got '\\ufeff# @package"),
        ("sweep/grid.yaml", "seeds: [5, 6, 7]", "x: {2: 3, 2: 4}", "expected different keys, got 2 more than once"),
        ("sweep/grid.yaml", "seeds: [5, 6, 7]", "x: {2: 3, '2': 4}", "expected different keys, got 2 more than once"),
        ("sweep/grid.yaml", "seeds: [5, 6, 7]", "x: {2: 3, 2.0: 4}", "expected different keys, got 2 more than once"),
        ("sweep/grid.yaml", "seeds: [5, 6, 7]", "x: {2: 3, +2: 4}", "expected different keys, got 2 more than once"),
        ("sweep/grid.yaml", "overrides: {}", "overrides: {L2H2S5: &a {train: {batch: 8}}, L2H4S5: *a}", ""),
        ("sweep/grid.yaml", "seeds: [5, 6, 7]", "seeds: [2, 010]", "got 010, which YAML reads as 8; write it in"),
    ],
)
def test_a_setting_that_is_read_in_another_way_than_it_looks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, said: str
) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    path = tmp_path / "conf" / file
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))
    if not said:
        compose(tmp_path / "params.yaml", [])
        return
    with pytest.raises(ValueError, match=f"conf/{file}: .*{re.escape(said)}"):
        compose(tmp_path / "params.yaml", [])


def test_an_override_by_number_of_layers_reaches_its_models(tmp_path: Path) -> None:
    """A command line cannot spell the whole number 0 as a key, so its "0" is read as well."""
    before = composed(tmp_path)["cells"]
    after = composed(tmp_path, "++sweep.by_layers.0.train.tokens=123")["cells"]
    assert [name for name in before if before[name] != after[name]] == ["L0S5", "L0S6", "L0S7"]
    assert after["L0S6"]["train"]["lr_unembedding"] == before["L0S6"]["train"]["lr_unembedding"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("cells", 3, "cells: expected settings by name, got 3; correct it in conf/ and run `make params`"),
        ("cells.L2H4S5", 3, "cells.L2H4S5: expected settings by name"),
        ("cells.x; ls", {}, "cells.x; ls: expected a name of at most 64 letters, digits and _ that begins"),
        ("synthetic_models", None, "synthetic_models: expected settings by name, got None"),
        ("sweep.seeds", 3, "sweep.seeds: expected a list in brackets, got 3"),
        ("seed", 10**23, f"seed: expected a number from 0 to 72,057,594,037,927,935, got {10**23}"),
        ("corpus.name", "a\tb", "corpus.name: expected a name of printable characters, not only spaces, got 'a\\tb'"),
        ("corpus.source", "pythn", f"corpus.source: expected one of {', '.join(sources())}, got 'pythn'; did you"),
        ("cells.L2H4S5.train.betas", [2.0, 3.0], "L2H4S5.train.betas: expected a number from 0 to 0.99999, got [2.0,"),
        ("cells.L1H4S5.train.lr_attention", float("inf"), "L1H4S5.train.lr_attention: expected a number from 1e-09 to"),
    ],
)
def test_every_section_is_checked_whatever_it_holds(tmp_path: Path, place: str, value: object, said: str) -> None:
    values = copied = composed(tmp_path)
    *above, key = place.split(".")
    for name in above:
        copied = copied[name]
    copied[key] = value
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_valid(values, Preregistration())


def test_a_mistake_in_all_models_is_named_once(tmp_path: Path) -> None:
    values = composed(tmp_path)
    for cell in values["cells"].values():
        cell["train"]["batch"] = 1e12
    with pytest.raises(ConfigError) as caught:
        check_valid(values, Preregistration())
    assert caught.value.complaints == [
        "cells.*.train.batch: expected a number from 1 to 65,536 windows, got 1000000000000.0 (in all 29 models)"
    ]


def test_a_mistake_in_some_models_or_in_what_they_inherit_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        check_valid(composed(tmp_path, "model.clamp=previous_token"), Preregistration())
    cells, calibrated = caught.value.complaints
    said = "got 0 layers and relative positions; clamp a model that has both, under sweep.controls"
    assert cells.startswith("cells.*.model.clamp: ")
    assert cells.endswith(f"{said} (in L0S5, L0S6, L0S7)")
    assert calibrated.startswith("synthetic_models.bigrams.model.clamp: ")
    assert calibrated.endswith(said)
    with pytest.raises(ConfigError) as caught:
        check_valid(composed(tmp_path, "train.betas=[0.9]"), Preregistration())
    assert caught.value.complaints == ["train.betas: expected a list of 2 values, got [0.9]"]
    with pytest.raises(ConfigError) as caught:
        check_valid(composed(tmp_path, "train.betas=[]"), Preregistration())
    assert caught.value.complaints == ["train.betas: expected a list of 2 values, got []"]


def test_a_refused_configuration_leaves_params_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    (tmp_path / "params.yaml").write_text("as: before")
    (tmp_path / "conf" / "config.yaml").write_text("")
    with pytest.raises(ValueError, match="config.yaml: expected the list `defaults`"):
        compose(tmp_path / "params.yaml", [])
    assert (tmp_path / "params.yaml").read_text() == "as: before"


def test_a_folder_of_conf_that_defaults_misspell_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    path = tmp_path / "conf" / "config.yaml"
    path.write_text(path.read_text().replace("- train: ", "- trian: "))
    said = (
        "conf/trian/muon.yaml: named by `defaults` or an override, but not there; trian: no such folder; did you mean"
    )
    with pytest.raises(ValueError, match=re.escape(f"{said} train?")):
        compose(tmp_path / "params.yaml", [])


def test_a_link_to_nowhere_in_the_place_of_a_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.compose.ROOT", copy(tmp_path))
    path = tmp_path / "conf" / "train" / "muon.yaml"
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(ValueError, match="conf/train/muon.yaml: expected a file, got a folder or a link to nowhere;"):
        compose(tmp_path / "params.yaml", [])


def test_an_assertion_of_hydra_is_a_sentence_and_one_of_training_is_not() -> None:
    said = r"conf/ cannot be composed with hydra\.sweeper\.params\.x=1: "
    with pytest.raises(ValueError, match=said), composing(["hydra.sweeper.params.x=1"]):
        OmegaConf.update(None, "x", 1)  # type: ignore[arg-type]
    with pytest.raises(AssertionError), composing([]):
        raise AssertionError
