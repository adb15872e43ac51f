"""The configuration of each model of the grid and of each kind of synthetic corpus, from the axes in params.yaml."""

from typing import Any

from pathsum.config import GRID_NAME, CalibrateConfig, CellConfig, ConfigError, SweepConfig, load

Settings = dict[Any, Any]


def cell_name(n_layers: int, n_heads: int, seed: int, d_head: int | None = None) -> str:
    """Return the name of a model: L2H4S0 for 2 layers, 4 heads and seed 0, or L0S0 without layers."""
    width = f"D{d_head}" if d_head is not None else ""
    return f"L{n_layers}H{n_heads}{width}S{seed}" if n_layers else f"L0S{seed}"


def cell(settings: Settings, n_layers: int, n_heads: int, seed: int, d_head: int | None = None) -> Settings:
    """Return the configuration of one model, with its changes in ``sweep.by_layers`` and ``sweep.overrides``."""
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


def _merged(base: Any, *changes: Any) -> Any:
    """Return ``base`` with ``changes``: settings by name are merged and all else is replaced, as OmegaConf does."""
    for change in changes:
        if isinstance(base, dict) and isinstance(change, dict):
            base = base | {key: _merged(base.get(key), value) for key, value in change.items()}
        else:
            base = change
    return base


def texts(settings: Settings) -> dict[str, Settings]:
    """Return the settings for each text by name: the corpus, named "", and each of ``texts``, which has no controls."""
    alone = settings | {"corpus": {}, "sweep": settings["sweep"] | {"controls": {}, "overrides": {}}, "texts": {}}
    others = {name: change for name, change in settings.get("texts", {}).items() if change is not None}
    return {"": settings} | {name: _merged(alone, change) for name, change in others.items()}


def every(settings: Settings) -> Settings:
    """Return the configuration of every model on every text by name: ``{docstrings-L2H4S0: …, …}``."""
    return {
        full_name(text, name): {"text": text, **cell}
        for text, chosen in texts(settings).items()
        for name, cell in cells(chosen).items()
    }


def full_name(text: str, name: str) -> str:
    """Return the name of the model ``name`` on a text."""
    return f"{text}-{name}" if text else name


def cells(settings: Settings) -> Settings:
    """Return the configuration of every model on one text by name: ``{L2H4S0: {seed, model, train}, …}``."""
    axes, usual = load(SweepConfig, settings["sweep"], "sweep"), settings["model"]["d_head"]
    width = axes.n_heads[0] * usual  # number of columns in all, which other widths of heads keep
    if wrong := [d_head for d_head in axes.d_head if width % d_head]:
        expected = f"expected divisors of sweep.n_heads[0] · model.d_head = {width}"
        raise ConfigError([f"sweep.d_head: {expected}, got {wrong[0]}"])
    others = [(width // d_head, d_head) for d_head in axes.d_head if d_head != usual]
    shapes: list[tuple[int, int, int | None]] = [
        (n_layers, n, None) for n_layers in axes.n_layers for n in (axes.n_heads if n_layers else [0])
    ]
    shapes += [(n_layers, *other) for n_layers in axes.n_layers if n_layers for other in others]
    found = {
        cell_name(n_layers, n_heads, seed, d_head): cell(settings, n_layers, n_heads, seed, d_head)
        for n_layers, n_heads, d_head in shapes
        for seed in axes.seeds
    }
    for name, change in axes.controls.items():
        depth = change.get("model", {}).get("n_layers")
        if depth is None:
            raise ConfigError([f"sweep.controls.{name}: expected its model.n_layers, such as 2, got none"])
        found[name] = _merged(_plain(settings, depth, axes.n_heads[0], axes.seeds[0]), change)
    for name in axes.overrides:
        if not GRID_NAME.fullmatch(name):
            models = ", ".join(model for model in found if model not in axes.controls)
            raise ConfigError([f"sweep.overrides: expected the name of a model, got {name}; the grid has {models}"])
    return found


def models(settings: Settings) -> dict[str, CellConfig]:
    """Return ``every`` model in the order in which they are made."""
    made = {name: load(CellConfig, values, f"cells.{name}") for name, values in every(settings).items()}
    names = sorted(made, key=lambda name: [-made[name].model.n_layers, -made[name].model.n_heads])
    by_depth = {made[name].model.n_layers: name for name in names if made[name].train.tokens}
    first = [by_depth[depth] for depth in (2, 1) if depth in by_depth]
    return {name: made[name] for name in dict.fromkeys([*first, *names])}


def synthetic_models(settings: Settings) -> Settings:
    """Return the configuration of every kind of synthetic corpus by name: ``{copies: {corpus, model, train}, …}``."""
    chosen = settings["calibrate"]
    load(CalibrateConfig, chosen, "calibrate")
    base = {"corpus": {}, "model": settings["model"], "train": settings["train"]}
    shared = {key: chosen[key] for key in ("corpus", "model", "train")}
    return {name: _merged(base, shared, change) for name, change in chosen["synthetic_models"].items()}
