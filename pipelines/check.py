"""Stage `check`: refuse a params.yaml that differs from conf/, and a configuration that cannot be run."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathsum.claims.preregistration import Preregistration, read_preregistration
from pathsum.config import (
    SECTIONS,
    CalibrateConfig,
    CellConfig,
    ConfigError,
    ExtractConfig,
    Frozen,
    SweepConfig,
    SyntheticModelConfig,
    TokenizerConfig,
    TrackingConfig,
    load,
    load_corpus,
)
from pathsum.core.storage import write_json
from pathsum.model.positions import scheme
from pipelines.compose import compose
from pipelines.paths import CHECKED, CONFIG, PARAMS, PREREGISTERED, PREREGISTRATION, params, read_yaml, stage


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each value that differs between params.yaml (``ours``) and conf/ (``theirs``)."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key, "(absent)"), theirs.get(key, "(absent)"), f"{path}.{key}".strip("."))
    elif ours != theirs:
        yield f"  {path}: params.yaml has {_short(ours)}, conf/ has {_short(theirs)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"


def check_fresh(values: dict[str, Any]) -> None:
    """Raise ConfigError if params.yaml differs from the composition of conf/."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "params.yaml"
        compose(fresh, [])
        found = list(differences(values, read_yaml(fresh)))
    if found:
        shown = found[:8] + ([f"  … and {len(found) - 8} more"] if len(found) > 8 else [])
        raise ConfigError(
            "\n".join([f"{PARAMS} is stale against conf/:", *shown])
            + "\nRun `make params` to compose it again, or `dvc exp run -S KEY=VALUE` for a one-off change."
        )


def check_valid(values: dict[str, Any], registered: Preregistration) -> None:
    """Raise ConfigError if any section of params.yaml cannot be run. The message lists every error found."""
    complaints = []
    if tuned := registered.tuned(values["sweep"]["seeds"]):
        complaints.append(
            f"  - sweep.seeds: expected seeds that were not tuned on, got {', '.join(map(str, tuned))}, which "
            f"{PREREGISTERED} lists under protocol.tuning_seeds; choose other seeds (python -m pipelines.train accepts "
            "any seed, because it gives no verdict)"
        )
    for name in values.keys() - set(SECTIONS):
        near = difflib.get_close_matches(name, SECTIONS, n=1)
        complaints.append(
            f"  - {name}: no such section; {f'did you mean {near[0]}?' if near else 'known: ' + ', '.join(SECTIONS)}"
        )
    for name, cell in values["cells"].items():
        if cell["model"]["n_ctx"] != values["model"]["n_ctx"]:
            complaints.append(
                f"  - cells.{name}.model.n_ctx: expected model.n_ctx = {values['model']['n_ctx']}, because the bigram "
                f"baseline is measured on windows of this length, got {cell['model']['n_ctx']}; change model.n_ctx for "
                "all cells"
            )
    kinds: list[tuple[type[Frozen], Any, str]] = [
        (TokenizerConfig, values["tokenizer"], "tokenizer"),
        (SweepConfig, values["sweep"], "sweep"),
        (ExtractConfig, values["extract"], "extract"),
        (TrackingConfig, values["tracking"], "tracking"),
        (CalibrateConfig, values["calibrate"], "calibrate"),
        *((CellConfig, cell, f"cells.{name}") for name, cell in values["cells"].items()),
        *(
            (SyntheticModelConfig, model, f"synthetic_models.{name}")
            for name, model in values["synthetic_models"].items()
        ),
    ]
    for kind, section, where in kinds:
        try:
            config = load(kind, section, where)
            if isinstance(config, CellConfig | SyntheticModelConfig):
                scheme(config.model)
        except ConfigError as error:
            complaints += str(error).splitlines()[1:]
        except ValueError as error:
            complaints.append(f"  - {where}.model.{error}")
    try:
        load_corpus(values["corpus"])
    except ConfigError as error:
        complaints += str(error).splitlines()[1:]
    if complaints:
        raise ConfigError("\n".join(["The configuration cannot be run:", *complaints]))


def write_sections(values: dict[str, Any]) -> None:
    """Write the sections of params.yaml that many stages depend on: one file per model, and one for extraction."""
    write_json(CONFIG / "extract.json", values["extract"])
    for name, cell in values["cells"].items():
        write_json(CONFIG / "cells" / f"{name}.json", cell)


if __name__ == "__main__":
    with stage(threads=0):
        values = params()
        if "DVC_EXP_NAME" not in os.environ:  # an experiment's params.yaml differs from conf/ on purpose
            check_fresh(values)
        registered = read_preregistration(PREREGISTERED)
        check_valid(values, registered)
        write_sections(values)
        write_json(PREREGISTRATION, registered.model_dump(mode="json"))
        CHECKED.write_text("checked\n")
