"""Stage `check`: refuse a configuration that cannot be run, and a params.yaml that differs from conf/."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pathsum.bounds import CORPUS
from pathsum.claims.preregistration import Preregistration, require_as_frozen
from pathsum.claims.registry import stated
from pathsum.complaints import unknown
from pathsum.config import (
    HELD_OUT,
    MODEL_NAME,
    SECTIONS,
    TUNING,
    CalibrateConfig,
    CellConfig,
    ConfigError,
    ExtractConfig,
    Frozen,
    SweepConfig,
    SyntheticCorpus,
    SyntheticModelConfig,
    TokenizerConfig,
    TrackingConfig,
    load,
)
from pathsum.core.storage import write_json
from pathsum.corpora.corpus import load_corpus
from pathsum.corpora.synthetic import synthetic_corpus
from pathsum.model.positions import scheme
from pipelines.compose import compose
from pipelines.handwritten import read_preregistration
from pipelines.hydra_plugins import grid
from pipelines.paths import (
    CHECKED,
    CONFIG,
    PARAMS,
    PREREGISTERED,
    PREREGISTRATION,
    REFERENCE_RUN,
    params,
    read_yaml,
    stage,
)
from pipelines.reference_run import read_reference_run

SMALL = "small_embedding"  # beginning of the name of controls whose embedding is smaller than that of the grid
NAMED_CONTROLS: dict[str, dict[str, Any]] = {  # other controls that the report finds by name: what the name states
    "smeared": {"model.n_layers": 1, "model.smeared_keys": True},
    "smeared_two": {"model.n_layers": 2, "model.smeared_keys": True},
    "clamped_previous": {"model.n_layers": 2, "model.clamp": "previous_token"},
    "equal_position_rates": {"model.n_layers": 2},
    "old_recipe": {"model.n_layers": 2},
    "shuffled": {"train.shuffled": True},
    "untrained": {"train.tokens": 0},
}
SOME = "more than 0"
KINDS: dict[str, dict[str, Any]] = {  # kinds of synthetic models: what a kind of this name has of its own
    "bigrams": {"model.n_layers": 0, "corpus.bigram_spread": SOME},
    "skips": {"model.n_layers": 1, "corpus.n_skip_trigrams": SOME},
    "two_back": {"model.n_layers": 1, "corpus.two_back_spread": SOME},
    "smeared": {"model.n_layers": 1, "model.smeared_keys": True, "corpus.repeat_share": SOME},
    "copies": {"model.n_layers": 2, "corpus.repeat_share": SOME},
    "questions": {"model.n_layers": 2, "corpus.questions": True},
    "lookups": {"model.n_layers": 2, "corpus.n_answers": SOME},
    "untrained": {"model.n_layers": 2, "train.tokens": 0},
}
NAMED_KINDS = {name: {"train.tokens": SOME, "model.smeared_keys": False} | own for name, own in KINDS.items()}


def differences(ours: Any, theirs: Any, others: str = "conf/ has", path: str = "") -> Iterator[str]:
    """Yield a line for each value that differs between params.yaml (``ours``) and ``theirs``, or that one lacks.

    ``others`` is the phrase before the value of ``theirs``, such as "conf/ has".
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys(), key=str):
            yield from differences(
                ours.get(key, "(absent)"), theirs.get(key, "(absent)"), others, f"{path}.{key}".strip(".")
            )
    elif ours != theirs and not (ours != ours and theirs != theirs):  # NaN differs from itself
        yield f"  {path}: params.yaml has {_short(ours)}, {others} {_short(theirs)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"


def check_fresh(values: dict[str, Any]) -> None:
    """Raise ValueError if params.yaml is not what conf/ composes to. Composes conf/ once."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "params.yaml"
        compose(fresh, [])
        found = list(differences(values, read_yaml(fresh)))
    if found:
        shown = found[:8] + ([f"  … and {len(found) - 8} more"] if len(found) > 8 else [])
        raise ValueError(
            "\n".join([f"{PARAMS} is stale against conf/:", *shown])
            + "\nRun `make params` to compose it again, or `dvc exp run -S KEY=VALUE` for a one-off change."
        )


def check_valid(values: dict[str, Any], registered: Preregistration) -> None:
    """Raise ConfigError, with every error, if params.yaml cannot be run or uses tuning seeds of ``registered``."""
    if absent := _absent_sections(values):
        raise ConfigError(absent)
    complaints = unknown_sections(values)
    kinds: list[tuple[type[Frozen], Any, str]] = [
        (TokenizerConfig, values["tokenizer"], "tokenizer"),
        (SweepConfig, values["sweep"], "sweep"),
        (ExtractConfig, values["extract"], "extract"),
        (TrackingConfig, values["tracking"], "tracking"),
        (CalibrateConfig, values["calibrate"], "calibrate"),
    ]
    for kind, section, where in kinds:
        complaints += _complaints(kind, section, where)
    base = {key: values[key] for key in ("seed", "model", "train")}  # each model differs from it in some settings
    wrong = _complaints(CellConfig, base, "")
    complaints += [complaint.lstrip(".: ") for complaint in wrong]
    if not wrong:
        complaints += _sweep_complaints(values, registered) + _of_all(CellConfig, values["cells"], "cells")
    complaints += _of_all(SyntheticModelConfig, values["synthetic_models"], "synthetic_models", wrong)
    said = {("cells", name) for name in values["sweep"].get("controls") or ()}  # SweepConfig refuses wrong names
    complaints += [
        f"calibrate.synthetic_models.{name}.{key}: expected {needed}, as a kind of this name has, got {given!r}; "
        "change it, or give the kind another name"
        for name, kind in values["synthetic_models"].items()
        if isinstance(kind, dict)
        for key, needed, given in _contradictions(kind, NAMED_KINDS.get(name, {}))
    ]
    complaints += [
        f"{where}.{name}: expected a name of at most 64 letters, digits and _ that begins with a letter; rename it"
        for section, where in (("cells", "cells"), ("synthetic_models", "calibrate.synthetic_models"))
        for name in values[section]
        if not MODEL_NAME.fullmatch(str(name)) and (section, name) not in said
    ]
    if registered.frozen and not (registered.protocol.tuning_seeds and registered.protocol.statements):
        complaints.append(f"{PREREGISTERED}: expected protocol.tuning_seeds and protocol.statements, got none")
    try:
        corpus = load_corpus(values["corpus"])
        if isinstance(corpus, SyntheticCorpus):
            complaints += _unfit(corpus)
            if not (share := CORPUS["validation_share"]).holds(corpus.validation_share):
                complaints.append(f"corpus.validation_share: expected {share}, got {corpus.validation_share}")
    except ConfigError as error:
        complaints += error.complaints
    if complaints:
        raise ConfigError(dict.fromkeys(complaints))


def unknown_sections(values: Collection[Any]) -> list[str]:
    """Return a complaint for each section that nothing reads, such as a misspelt one of a profile."""
    return [unknown(str(name), SECTIONS, "section") for name in sorted(set(values) - set(SECTIONS), key=str)]


def check_composed(values: dict[str, Any]) -> None:
    """Raise ValueError if the models of params.yaml are not those that its other sections compose to."""
    model, train, sweep, calibrate = (
        OmegaConf.create(values[name]) for name in ("model", "train", "sweep", "calibrate")
    )
    composed = {
        "cells": grid.grid(model, train, sweep),
        "synthetic_models": grid.synthetic_models(model, train, calibrate),
    }
    for name, made in composed.items():
        theirs = {name: OmegaConf.to_container(made, resolve=True)}
        if found := list(differences({name: values[name]}, theirs, "the other sections give")):
            raise ValueError(
                "\n".join([f"{name}: composed from other sections, but given otherwise:", *found[:8]])
                + "\nChange model, train, sweep.overrides, sweep.controls or calibrate instead."
            )


def _absent_sections(values: dict[str, Any]) -> list[str]:
    """Return a complaint for each section that params.yaml lacks, or that does not hold settings by name."""
    return [
        f"{name}: expected {'a number' if name == 'seed' else 'settings by name'}, got "
        f"{values.get(name, 'nothing')!r}; correct it in conf/ and run `make params`"
        for name in SECTIONS
        if name not in values or (name != "seed" and not isinstance(values[name], dict))
    ]


def _sweep_complaints(values: dict[str, Any], registered: Preregistration) -> list[str]:
    """Return complaints about seeds that were tuned on, about controls that are left out but do not exist, about models
    with another n_ctx than the bigram baseline, and about controls whose names contradict their settings."""
    seeds, n_ctx = values["sweep"].get("seeds"), values["model"].get("n_ctx")
    tuned = registered.tuned(seed for seed in seeds if isinstance(seed, int)) if isinstance(seeds, list) else []
    complaints = []
    controls = values["sweep"].get("controls")
    left_out = {str(name) for name, change in controls.items() if change is None} if isinstance(controls, dict) else ()
    if left_out and (wrong := sorted(left_out - (known := _controls()))):
        complaints += [f"sweep.controls.{unknown(name, known, 'control to leave out')}" for name in wrong]
    if tuned:
        complaints.append(
            f"sweep.seeds: expected seeds that were not tuned on, got {', '.join(map(str, tuned))}, which "
            f"{PREREGISTERED} lists under protocol.tuning_seeds; choose other seeds (python -m pipelines.train accepts "
            "any seed, because it gives no verdict)"
        )
    for name, cell in values["cells"].items():
        model = cell.get("model") if isinstance(cell, dict) else None
        if isinstance(model, dict) and model.get("n_ctx", n_ctx) != n_ctx:
            complaints.append(
                f"cells.{name}.model.n_ctx: expected model.n_ctx = {n_ctx}, because the bigram baseline is measured on "
                f"windows of this length, got {model['n_ctx']}; change model.n_ctx for all cells"
            )
        if isinstance(model, dict) and isinstance(cell.get("train"), dict):
            found = [
                (f"{key} = {needed}", given)
                for key, needed, given in _contradictions(cell, NAMED_CONTROLS.get(name, {}))
            ]
            std, usual = model.get("embedding_std"), values["model"]["embedding_std"]
            if name.startswith(SMALL) and isinstance(std, float | int) and std >= usual:
                found.append((f"model.embedding_std < {usual}", std))
            complaints += [
                f"sweep.controls.{name}: expected {needed}, because the report says so of this name, got {given!r}; "
                "change it, or give the control another name"
                for needed, given in found
            ]
    return complaints


def _contradictions(config: dict[str, Any], needed_by_name: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the key, the expected and the given value of each setting of ``config`` that is not as needed."""
    for key, needed in needed_by_name.items():
        section, name = key.split(".")
        given = config[section].get(name) if isinstance(config.get(section), dict) else needed  # refused elsewhere
        if not (given > 0 if needed is SOME and isinstance(given, int | float) else given == needed):
            yield key, needed, given


def _controls() -> set[str]:
    """Return the names of the controls that the files in conf/sweep/ and conf/profile/ define."""
    files = [read_yaml(path) for folder in ("sweep", "profile") for path in Path("conf", folder).glob("[!.]*.yaml")]
    sections = [file.get("sweep", file) for file in files if isinstance(file, dict)]
    found = [section.get("controls") for section in sections if isinstance(section, dict)]
    return {str(name) for each in found if isinstance(each, dict) for name in each if each[name] is not None}


def without_effect(values: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each setting that changes no model of the grid, for each that makes models of the grid like a
    control, and one if a warm-up lasts all of training."""
    sweep, model = values["sweep"], values["model"]
    for name in set(sweep["overrides"]) - set(values["cells"]):
        reader = "no command" if "D" in name else "only pipelines.train"
        yield f"sweep.overrides.{name}: the grid has no such model; {reader} reads it"
    layers = {str(cell["model"]["n_layers"]) for cell in values["cells"].values()}
    for key in sorted({str(key) for key in sweep["by_layers"]} - layers):
        yield f"sweep.by_layers.{key}: the grid has no model of {key} layers; only pipelines.train reads it"
    for key, given, axis, used in (
        ("model.n_layers", model["n_layers"], "n_layers", max(sweep["n_layers"])),
        ("model.n_heads", model["n_heads"], "n_heads", sweep["n_heads"][0]),
        ("seed", values["seed"], "seeds", sweep["seeds"][0]),
    ):
        if given != used:
            yield f"{key} = {given}: only pipelines.train reads it; the grid has sweep.{axis} = {sweep[axis]}"
    if not any(sweep["n_layers"]):
        for key, usual in (("n_heads", 1), ("d_head", 0)):  # the number of values that a grid has at least
            if len(sweep[key]) > usual:
                yield f"sweep.{key} = {sweep[key]}: models without layers have no heads, so it adds no models"
    elif model["d_head"] in sweep["d_head"]:
        yield f"sweep.d_head = {sweep['d_head']}: {model['d_head']} is model.d_head and adds no models"
    if short := [name for name, cell in values["cells"].items() if ends_in_warmup(cell)]:
        yield LONG_WARMUP.format(_some(short))
    yield from _unread(values)
    grid_cells = {name: cell for name, cell in values["cells"].items() if name not in sweep["controls"]}
    for key, changed in OF_CONTROLS.items():
        section, setting = key.split(".")
        if found := [name for name, cell in grid_cells.items() if changed(cell[section].get(setting))]:
            yield f"{key}: changed as in a control, but claims are judged on models of the grid ({_some(found)})"
    ours = list(grid_cells.values())
    for section in ("model", "train"):
        for key, given in values[section].items():
            if (section, key) not in (("model", "n_layers"), ("model", "n_heads")) and all(
                cell[section][key] != given for cell in ours
            ):
                yield f"{section}.{key} = {given}: no model of the grid has it; sweep.by_layers or overrides change it"


OF_CONTROLS: dict[str, Callable[[Any], bool]] = {  # settings of controls: whether a value is not that of the grid
    "train.tokens": lambda tokens: not tokens,
    "train.shuffled": bool,
    "model.smeared_keys": bool,
    "model.clamp": lambda clamp: clamp not in (None, "none"),
}
OF_ATTENTION = (
    *("model.d_head", "model.positions", "model.clamp", "model.smeared_keys", "train.lr_attention"),
    *("train.lr_positions", "train.lr_later_positions", "train.decay_attention", "train.optimizer"),
    *("train.momentum",),
)
OF_TRAINING = (
    *("train.batch", "train.optimizer", "train.momentum", "train.betas", "train.lr_attention", "train.lr_embedding"),
    *("train.lr_unembedding", "train.lr_positions", "train.lr_later_positions", "train.decay_attention"),
    *("train.decay_embedding",),
    *("train.warmup_steps", "train.decay_share", "train.shuffled"),
)
READERS: tuple[tuple[Collection[str], Callable[[dict[str, Any]], bool], str], ...] = (
    # settings, whether a model reads them, and what is said of the others
    (OF_ATTENTION, lambda cell: cell["model"]["n_layers"] > 0, "models without layers do not read it"),
    (OF_TRAINING, lambda cell: cell["train"]["tokens"] > 0, "untrained models do not read it"),
    (
        ("train.momentum",),
        lambda cell: cell["train"]["optimizer"] == "muon",
        "only models that are trained with Muon read it",
    ),
    (
        ("train.lr_positions", "train.lr_later_positions"),
        lambda cell: cell["model"]["positions"] == "relative" or cell["model"]["smeared_keys"],
        "only models with relative positions or smeared keys read it",
    ),
    (
        ("train.lr_later_positions",),
        lambda cell: cell["model"]["n_layers"] > 1,
        "only models of several layers read it",
    ),
    (
        ("train.repeat_tokens",),
        lambda cell: cell["train"]["repeat_weight"] > 1,
        "only models with train.repeat_weight above 1 read it",
    ),
)
USUAL: dict[str, dict[str, Any]] = {  # what conf/ gives, or None: of any other value, a line if no model reads it
    "train": {"momentum": None, "lr_positions": 0.6, "lr_later_positions": 0.01, "repeat_tokens": 0},
    "tracking": {"project": "pathsum", "group": "default", "entity": ""},
}


def _unread(values: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each setting that no model for which it is given reads, and for those of W&B if it is off."""
    sweep, cells, kinds = values["sweep"], values["cells"], values["synthetic_models"]
    given = [(f"sweep.by_layers.{n}.", changes, _of_layers(cells, str(n))) for n, changes in sweep["by_layers"].items()]
    changed = {f"sweep.{part}": (sweep[part], cells) for part in ("overrides", "controls")}
    changed["calibrate.synthetic_models"] = values["calibrate"]["synthetic_models"], kinds
    for part, (changes_of, models) in changed.items():
        given += [
            (f"{part}.{name}.", changes, [models[name]]) for name, changes in changes_of.items() if name in models
        ]
    for where, changes, models_there in given:
        for key, why in dict(_without_reader(changes, models_there)).items():
            yield f"{where}{key}: {why}"
    for name, usual in USUAL["train"].items():
        value = values["train"][name]
        models_of_base = [cell for cell in (*cells.values(), *kinds.values()) if cell["train"][name] == value]
        if value != usual:
            for key, why in _without_reader({"train": {name: value}}, models_of_base):
                yield f"{key} = {value}: {why}"
    if values["tracking"]["mode"] == "off":
        for name, usual in USUAL["tracking"].items():
            if (value := values["tracking"][name]) != usual:
                yield f"tracking.{name} = {value}: W&B is off; tracking=wandb turns it on"


def _of_layers(cells: dict[str, Any], n_layers: str) -> list[dict[str, Any]]:
    return [cell for cell in cells.values() if str(cell["model"]["n_layers"]) == n_layers]


def _without_reader(changes: dict[str, Any], models: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield each setting of ``changes`` that none of ``models`` reads, and why; nothing if there are no models."""
    for keys, reads, why in READERS:
        if models and not any(map(reads, models)):
            for section, name in (key.split(".") for key in keys):
                if name in (changes.get(section) or {}):
                    yield f"{section}.{name}", why


LONG_WARMUP = (
    "train.warmup_steps: expected fewer steps than training has, because learning rates reach their values after the "
    "warm-up ({})"
)


def ends_in_warmup(cell: dict[str, Any]) -> bool:
    """Return whether a model is trained, but only for the steps of its warm-up or fewer."""
    steps = math.ceil(cell["train"]["tokens"] / (cell["train"]["batch"] * cell["model"]["n_ctx"]))
    return 0 < steps <= int(cell["train"]["warmup_steps"])


def _complaints(kind: type[Frozen], section: Any, where: str) -> list[str]:
    """Return what is wrong with one section."""
    try:
        config = load(kind, section, where)
        if isinstance(config, CellConfig | SyntheticModelConfig):
            scheme(config.model)
        if isinstance(config, SyntheticModelConfig):
            return [f"{where}.{complaint}" for complaint in _unfit(config.corpus, HELD_OUT + TUNING)]
    except ConfigError as error:
        return error.complaints
    except ValueError as error:
        where_else = "; clamp a model that has both, under sweep.controls" if str(error).startswith("clamp") else ""
        return [f"{where}.model.{error}{where_else}"]
    return []


def _unfit(config: SyntheticCorpus, held_out: int = 0) -> list[str]:
    """Return which settings of a synthetic corpus cannot be satisfied together, and why. ``held_out`` is the number of
    documents on which models are not trained."""
    few = f"corpus.max_documents: expected more than the {held_out} held-out ones, got {config.max_documents}"
    found = [few] if config.max_documents <= held_out else []
    try:
        synthetic_corpus(config)
    except ValueError as error:
        found += [line.removeprefix("  - ") for line in str(error).splitlines()[1:]]
    return found


def _of_all(kind: type[Frozen], sections: dict[str, Any], where: str, said: Collection[str] = ()) -> list[str]:
    """Return what is wrong with the models of a section, each complaint once. Those ``said`` before are left out."""
    found: dict[str, list[str]] = {}
    for name, section in sections.items():
        for complaint in _complaints(kind, section, ""):
            if complaint not in said:
                found.setdefault(complaint, []).append(name)
    return [
        f"{where}.{names[0]}{complaint}"
        if len(names) == 1
        else f"{where}.*{complaint} ({f'in all {len(names)} models' if len(names) == len(sections) else _some(names)})"
        for complaint, names in found.items()
    ]


def _some(names: Sequence[str]) -> str:
    return f"in {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def write_sections(values: dict[str, Any]) -> None:
    """Write the sections of params.yaml on which many stages depend: a file per model, and a file for extraction."""
    write_json(CONFIG / "extract.json", values["extract"])
    for name, cell in values["cells"].items():
        write_json(CONFIG / "cells" / f"{name}.json", cell)


if __name__ == "__main__":
    with stage(threads=0, arguments=False):
        values = params()
        one_off = "DVC_EXP_NAME" in os.environ  # an experiment's params.yaml differs from conf/ on purpose
        if not one_off:
            check_fresh(values)
        registered = read_preregistration(PREREGISTERED)
        check_valid(values, registered)
        require_as_frozen(registered, stated())
        check_composed(values)
        read_reference_run(REFERENCE_RUN)  # which the report needs
        for line in without_effect(values):
            print(line, file=sys.stderr)
        if registered.frozen is None:
            print(f"{PREREGISTERED}: no claim is frozen, and the report says so", file=sys.stderr)
        write_sections(values)
        write_json(PREREGISTRATION, registered.model_dump(mode="json"))
        CHECKED.write_text("checked\n")
