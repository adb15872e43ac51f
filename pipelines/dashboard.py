"""`make dashboard`: save a workspace and a report of all runs to a Weights & Biases (W&B) account."""

import wandb

from pathsum.config import SweepConfig, TrackingConfig, load
from pathsum.report.story import contents
from pipelines.paths import params, section, stage


def default_entity() -> str:
    """Return the default entity of the W&B account. Raises ValueError if there is no account."""
    try:
        return str(wandb.Api().default_entity)
    except wandb.Error as error:
        raise ValueError(f"expected a W&B account, got: {error} Without one: dvc exp show, dvc plots show") from error


if __name__ == "__main__":
    with stage(threads=0):
        from pathsum.report.dashboard import report, workspace

        tracking = load(TrackingConfig, section(params(), "tracking"), "tracking")
        n_layers = max(load(SweepConfig, section(params(), "sweep"), "sweep").n_layers)
        entity = tracking.entity or default_entity()
        for make in (workspace, report):
            print(make(entity, tracking.project, n_layers, contents()).save().url)
