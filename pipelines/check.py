"""Stage `check`: refuse a configuration that cannot be run, and a params.yaml that differs from conf/."""

import os
import re
import sys
import tempfile
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from pathsum.claims.preregistration import Preregistration, require_as_frozen
from pathsum.claims.registry import stated
from pathsum.config import (
    HELD_OUT,
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
    TextConfig,
    TokenizerConfig,
    TrackingConfig,
    load,
    unknown,
)
from pathsum.core.storage import write_json
from pathsum.model.positions import scheme
from pathsum.text.corpus import load_corpus
from pathsum.text.synthetic import synthetic_corpus
from pipelines import grid
from pipelines.compose import compose
from pipelines.handwritten import read_preregistration, read_reference_run
from pipelines.paths import PARAMS, PREREGISTERED, PREREGISTRATION, REFERENCE_RUN, SYNTHETIC, params, read_yaml, stage

TEXT = r"[A-Za-z]\w{0,30}"  # name of a further text, which begins those of its models
CHECKED = Path("data/checked")
OF_A_TEXT: dict[str, type[Frozen]] = {"tokenizer": TokenizerConfig, "sweep": SweepConfig}
KINDS: dict[str, type[Frozen]] = {
    "extract": ExtractConfig,
    "tracking": TrackingConfig,
    "calibrate": CalibrateConfig,
}


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each value that differs between params.yaml (``ours``) and conf/, or that one lacks."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys(), key=str):
            yield from differences(ours.get(key, "(absent)"), theirs.get(key, "(absent)"), f"{path}.{key}".strip("."))
    elif ours != theirs:
        yield f"  {path}: params.yaml has {ours!r:.60}, conf/ has {theirs!r:.60}"


def check_fresh(values: dict[str, Any]) -> None:
    """Raise ValueError if params.yaml is not what conf/ composes to."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "params.yaml"
        compose(fresh, [])
        found = list(differences(values, read_yaml(fresh)))
    if found:
        more = [f"  … and {len(found) - 8} more"] if len(found) > 8 else []
        mend = "Run `make params` to compose it again, or `dvc exp run -S KEY=VALUE` for a one-off change."
        raise ValueError("\n".join([f"{PARAMS} is stale against conf/:", *found[:8], *more, mend]))


def check_valid(values: dict[str, Any], registered: Preregistration) -> None:
    """Raise ConfigError, with every error, if params.yaml cannot be run or uses tuning seeds of ``registered``."""
    named = [name for name in SECTIONS if name != "seed"]
    if absent := [name for name in named if not isinstance(values.get(name), dict)]:
        raise ConfigError(f"{name}: expected settings by name, got {values.get(name)!r}" for name in absent)
    complaints = unknown_sections(values)
    if registered.frozen and not (registered.protocol.tuning_seeds and registered.protocol.statements):
        complaints.append(f"{PREREGISTERED}: expected protocol.tuning_seeds and protocol.statements, got none")
    for name, kind in KINDS.items():
        complaints += _complaints(kind, values[name], name)
    changes = {name: change for name, change in values["texts"].items() if change is not None}
    for name, change in changes.items():
        complaints += _complaints(TextConfig, change, f"texts.{name}")
        if not re.fullmatch(TEXT, str(name)):
            complaints.append(f"texts: expected names of letters, digits and _, the first a letter, got {name!r}")
    complaints += _of_a_text(values, registered)
    if not complaints:
        complaints += _of_all(SyntheticModelConfig, grid.synthetic_models(values), "synthetic_models")
        for text in changes:  # what is wrong for the corpus is wrong for these, too
            complaints += [f"texts.{text}.{found}" for found in _of_a_text(grid.texts(values)[text], registered)]
    if complaints:
        raise ConfigError(dict.fromkeys(complaints))


def _of_a_text(values: dict[str, Any], registered: Preregistration) -> list[str]:
    """Return what is wrong with one text and the models that are trained on it."""
    base = {key: values.get(key) for key in ("seed", "model", "train")}  # each model differs from it in some settings
    found = [complaint for name in OF_A_TEXT for complaint in _complaints(OF_A_TEXT[name], values[name], name)]
    found += [complaint.lstrip(".: ") for complaint in _complaints(CellConfig, base, "")]
    if not found:
        if tuned := registered.tuned(values["sweep"]["seeds"]):
            found.append(
                f"sweep.seeds: expected seeds that were not tuned on, got {', '.join(map(str, tuned))}, which "
                f"{PREREGISTERED} lists under protocol.tuning_seeds; choose other seeds"
            )
        found += _of_the_models(values)
    try:
        corpus = load_corpus(values["corpus"])
        found += _unfit(corpus) if isinstance(corpus, SyntheticCorpus) else []
    except ConfigError as error:
        found += error.complaints
    return found


def unknown_sections(values: Collection[Any]) -> list[str]:
    """Return a complaint for each section that nothing reads, such as a misspelt one of a profile."""
    return [unknown(str(name), SECTIONS, "section") for name in sorted(set(values) - set(SECTIONS), key=str)]


def without_effect(values: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each change of a model that the grid does not have."""
    cells = grid.cells(values)
    layers = {str(cell["model"]["n_layers"]) for cell in cells.values()}
    for name in sorted(set(values["sweep"]["overrides"]) - set(cells)):
        yield f"sweep.overrides.{name}: the grid has no such model; only pipelines.train reads it"
    for key in sorted({str(key) for key in values["sweep"]["by_layers"]} - layers):
        yield f"sweep.by_layers.{key}: the grid has no model of {key} layers; only pipelines.train reads it"


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
        return [f"{where}.model.{error}"]
    return []


def _unfit(config: SyntheticCorpus, held_out: int = 0) -> list[str]:
    """Return which settings of a synthetic corpus cannot be satisfied together, and why."""
    few = f"corpus.max_documents: expected more than the {held_out} held-out ones, got {config.max_documents}"
    found = [few] if config.max_documents <= held_out else []
    try:
        synthetic_corpus(config)
    except ValueError as error:
        found += [line.removeprefix("  - ") for line in str(error).splitlines()[1:]]
    return found


def _of_the_models(values: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the models of one text."""
    try:
        cells = grid.cells(values)
    except ConfigError as error:
        yield from error.complaints
        return
    yield from _of_all(CellConfig, cells, "cells")
    for name, cell in cells.items():
        if cell["model"].get("n_ctx") != values["model"]["n_ctx"]:
            yield f"cells.{name}.model.n_ctx: expected model.n_ctx, on which the bigram baseline is measured"


def _of_all(kind: type[Frozen], sections: dict[str, Any], where: str) -> Iterator[str]:
    """Yield what is wrong with the models of a section, each complaint once."""
    found: dict[str, list[str]] = {}
    for name, section in sections.items():
        for complaint in _complaints(kind, section, ""):
            found.setdefault(complaint, []).append(name)
    for complaint, names in found.items():
        several = f"all {len(names)} models" if len(names) == len(sections) else ", ".join(names)
        yield f"{where}.{names[0]}{complaint}" if len(names) == 1 else f"{where}.*{complaint} (in {several})"


if __name__ == "__main__":
    with stage(threads=0, arguments=False):
        values = params()
        if "DVC_EXP_NAME" not in os.environ:  # an experiment's params.yaml differs from conf/ on purpose
            check_fresh(values)
        registered = read_preregistration(PREREGISTERED)
        check_valid(values, registered)
        require_as_frozen(registered, stated())
        read_reference_run(REFERENCE_RUN)  # which the report needs
        for line in chain.from_iterable(map(without_effect, grid.texts(values).values())):
            print(line, file=sys.stderr)
        if registered.frozen is None:
            print(f"{PREREGISTERED}: no claim is frozen, and the report says so", file=sys.stderr)
        write_json(PREREGISTRATION, registered.model_dump(mode="json"))
        chosen = {name: values["calibrate"][name] for name in ("seeds", "rotations")}
        write_json(SYNTHETIC, {**chosen, "models": grid.synthetic_models(values)})
        CHECKED.write_text("checked\n")
