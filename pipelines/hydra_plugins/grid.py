"""The OmegaConf resolver ``grid``: from the sweep's axes to one complete config a cell.

Loaded before composition by everything that composes: `make params`, `dvc exp run` and the check stage.
"""

from __future__ import annotations

import re
from typing import Any

from omegaconf import DictConfig, OmegaConf


def grid(model: DictConfig, train: DictConfig, sweep: DictConfig) -> DictConfig:
    """``{L2H4S0: {seed, model, train}, …}``. Zero layers have no head count: one cell a seed."""
    cells: dict[str, Any] = {}
    for n_layers in sweep.n_layers:
        for n_heads in [0] if n_layers == 0 else sweep.n_heads:
            for seed in sweep.seeds:
                name = f"L{n_layers}S{seed}" if n_layers == 0 else f"L{n_layers}H{n_heads}S{seed}"
                shape = {"model": {"n_layers": n_layers, "n_heads": n_heads}}
                changes = sweep.by_layers.get(n_layers, {})
                cells[name] = OmegaConf.merge({"seed": seed, "model": model, "train": train}, shape, changes)
    for name, changes in sweep.overrides.items():
        if not re.fullmatch(r"L0S\d+|L[1-9]\d*H\d+S\d+", name):
            raise ValueError(f"sweep.overrides: {name} is no cell's name; the grid has {', '.join(cells)}")
        if name in cells:  # another grid's cells are none of this one's business
            cells[name] = OmegaConf.merge(cells[name], changes)
    return OmegaConf.create(cells)


OmegaConf.register_new_resolver("grid", grid, replace=True)
