"""OmegaConf resolvers that expand conf/ into complete configurations: ``grid`` into one per model, and
``synthetic_models`` into one per kind of synthetic corpus.

`make params`, `dvc exp run`, the check stage and pipelines.train load this module before they compose conf/. A cell is
the configuration of one model.
"""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from pathsum.config import GRID_NAME, CalibrateConfig, SweepConfig, load

Settings = dict[Any, Any]


def cell_name(n_layers: int, n_heads: int, seed: int, d_head: int | None = None) -> str:
    """Return the name of a model: L2H4S0 for 2 layers, 4 heads and seed 0, or L0S0 without layers.

    ``d_head`` is part of the name only if it is given (L2H8D16S0). None stands for the default.
    """
    width = f"D{d_head}" if d_head is not None else ""
    return f"L{n_layers}H{n_heads}{width}S{seed}" if n_layers else f"L0S{seed}"


def cell(settings: Settings, n_layers: int, n_heads: int, seed: int, d_head: int | None = None) -> Settings:
    """Return the complete configuration of one model (seed, model, train) by the sections ``model``, ``train`` and
    ``sweep`` of ``settings``, with the changes to it in ``sweep.by_layers`` and ``sweep.overrides``."""
    overrides = settings["sweep"]["overrides"].get(cell_name(n_layers, n_heads, seed, d_head), {})
    width = {} if d_head is None else {"model": {"d_head": d_head}}
    return _merged(_plain(settings, n_layers, n_heads, seed), width, overrides)


def _plain(settings: Settings, n_layers: int, n_heads: int, seed: int) -> Settings:
    """Return the configuration of one model with ``sweep.by_layers``, but without ``sweep.overrides``."""
    base = {"seed": seed, "model": settings["model"], "train": settings["train"]}
    shape = {"model": {"n_layers": n_layers, "n_heads": n_heads}}
    # an override on the command line, ++sweep.by_layers.2.train.tokens=…, makes a key "2" next to the 2 of a file
    changes = [change for layers, change in settings["sweep"]["by_layers"].items() if str(layers) == str(n_layers)]
    return _merged(base, shape, *changes)


def _other_widths(model: DictConfig, sweep: SweepConfig) -> list[tuple[int, int]]:
    """Return (n_heads, d_head) for each width in ``sweep.d_head`` other than ``model.d_head``.

    n_heads is chosen so that n_heads · d_head equals ``sweep.n_heads[0]`` · ``model.d_head``. Raises ValueError if no
    such number exists, or if ``model.d_head`` is not a whole number.
    """
    if sweep.d_head and not isinstance(model.d_head, int):
        raise ValueError(f"model.d_head: expected a whole number, got {model.d_head!r}")
    width, found = sweep.n_heads[0] * model.d_head, []
    for d_head in sweep.d_head:
        if width % d_head:
            raise ValueError(
                f"sweep.d_head: expected divisors of sweep.n_heads[0] · model.d_head = {width}, got {d_head}"
            )
        if d_head != model.d_head:
            found.append((width // d_head, d_head))
    return found


def as_dict(config: DictConfig) -> Settings:
    """Return ``config`` as dictionaries and lists, with interpolations as text. They are merged in microseconds,
    OmegaConf's own kind of them in milliseconds."""
    settings = OmegaConf.to_container(config)
    assert isinstance(settings, dict)
    return settings


def _merged(base: Any, *changes: Any) -> Any:
    """Return ``base`` with ``changes``: settings by name are merged and all else is replaced, as OmegaConf does. A list
    can also be replaced by settings; ``load`` refuses that later."""
    for change in changes:
        if isinstance(base, dict) and isinstance(change, dict):
            base = base | {key: _merged(base.get(key), value) for key, value in change.items()}
        else:
            base = change
    return base


def grid(model: DictConfig, train: DictConfig, sweep: DictConfig) -> DictConfig:
    """Return the configuration of every model by name: ``{L2H4S0: {seed, model, train}, …}``.

    First come the models for each number of layers, number of heads and seed, then those with other head widths
    (L2H8D16S0), then the controls. Names in ``sweep.overrides`` must have the form of a model's name, but need not be
    in the grid. Raises ValueError for wrong names, widths or controls.
    """
    settings = {"model": as_dict(model), "train": as_dict(train), "sweep": as_dict(sweep)}
    axes = load(SweepConfig, settings["sweep"], "sweep")
    cells = {
        cell_name(n_layers, n_heads, seed): cell(settings, n_layers, n_heads, seed)
        for n_layers in axes.n_layers
        for n_heads in (axes.n_heads if n_layers else [0])
        for seed in axes.seeds
    }
    for n_layers in filter(None, axes.n_layers):
        for n_heads, d_head in _other_widths(model, axes):
            for seed in axes.seeds:
                name = cell_name(n_layers, n_heads, seed, d_head)
                cells[name] = cell(settings, n_layers, n_heads, seed, d_head)
    for name in axes.controls:
        n_layers = OmegaConf.select(sweep.controls[name], "model.n_layers")
        if n_layers is None:
            raise ValueError(f"sweep.controls.{name}: expected its model.n_layers, such as 2, got none")
        plain = _plain(settings, n_layers, axes.n_heads[0], axes.seeds[0])
        cells[name] = _merged(plain, settings["sweep"]["controls"][name])
    for name in axes.overrides:
        if not GRID_NAME.fullmatch(name):
            if name in axes.controls:
                raise ValueError(f"sweep.overrides: {name} is a control; change it under sweep.controls.{name}")
            models = ", ".join(cell for cell in cells if cell not in axes.controls)
            raise ValueError(f"sweep.overrides: expected the name of a model, got {name}; the grid has {models}")
    return OmegaConf.create(cells)


def synthetic_models(model: DictConfig, train: DictConfig, calibrate: DictConfig) -> DictConfig:
    """Return the configuration of every kind of synthetic corpus by name: ``{copies: {corpus, model, train}, …}``."""
    chosen = as_dict(calibrate)
    load(CalibrateConfig, chosen, "calibrate")
    base = {"corpus": {}, "model": as_dict(model), "train": as_dict(train)}
    shared = {key: chosen[key] for key in ("corpus", "model", "train")}
    return OmegaConf.create(
        {name: _merged(base, shared, change) for name, change in chosen["synthetic_models"].items()}
    )


OmegaConf.register_new_resolver("synthetic_models", synthetic_models, replace=True)
OmegaConf.register_new_resolver("grid", grid, replace=True)
