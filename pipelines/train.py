"""Ad-hoc training and sweeps, on any Hydra launcher, over the tokens that `dvc repro` made:

python -m pipelines.train model.n_layers=1 seed=3
python -m pipelines.train --multirun model.n_layers=0,1,2 model.n_heads=2,4,8
python -m pipelines.train --multirun hydra/launcher=joblib hydra.launcher.n_jobs=2 model.n_layers=1,2
"""

from __future__ import annotations

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

import pipelines.hydra_plugins.grid  # noqa: F401 (registers the resolver)
from pathsum.config import CellConfig, TrackingConfig, load
from pipelines.paths import stage
from pipelines.train_cell import run_cell


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> None:
    with stage():
        values = {part: OmegaConf.to_container(config[part], resolve=True) for part in ("model", "train")}
        cell = load(CellConfig, {"seed": config.seed, **values}, "config")
        tracking = load(TrackingConfig, OmegaConf.to_container(config.tracking, resolve=True), "tracking")  # type: ignore[arg-type]
        name = f"L{cell.model.n_layers}H{cell.model.n_heads}S{cell.seed}" if cell.model.n_layers else f"L0S{cell.seed}"
        run = run_cell(name, cell, tracking, wait=HydraConfig.get().mode == RunMode.MULTIRUN)
        print(f"{name}: {run}")


if __name__ == "__main__":
    main()
