"""Weights & Biases as a mirror of what the suite has already written down. Nothing reads it back.

The x-axis is tokens seen, never W&B's own step, so that a resumed run goes on where it was. ``WANDB_MODE`` in the
environment wins over the configured mode, except over ``off``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pathsum.config import TrackingConfig
from pathsum.probes.evaluation import Evaluation


def metrics(found: Evaluation) -> dict[str, float | int]:
    """One evaluation as W&B scalars: losses, and the best head of each layer for every head score."""
    flat: dict[str, float | int] = {
        "tokens": found.tokens_seen,
        "val_loss_nats": found.val_loss_nats,
        "in_context_loss_drop_nats": found.in_context_loss_drop_nats,
        "repeat_first_loss_nats": found.repeat_first_loss_nats,
        "repeat_second_loss_nats": found.repeat_second_loss_nats,
    }
    for score in ("prefix_matching", "previous_token", "copying"):
        for layer, heads in enumerate(getattr(found, score)):
            flat[f"layer{layer}/best_{score}"] = max(heads)
    return flat


@contextmanager
def mirror(
    config: TrackingConfig, name: str, identity: str, job: str, about: Mapping[str, Any], folder: Path
) -> Iterator[Mirror]:
    """A W&B run called ``name``, with a stable id, while the block lasts; a silent one when tracking is off."""
    if config.mode == "off":
        yield Mirror(None)
        return
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")
    import wandb

    mode = os.environ.get("WANDB_MODE", config.mode)
    folder.mkdir(parents=True, exist_ok=True)
    run = wandb.init(
        mode=mode,  # type: ignore[arg-type]
        project=config.project,
        entity=config.entity or None,
        group=config.group,
        name=name,
        id=identity,
        resume="allow" if mode == "online" else None,
        job_type=job,
        config=dict(about),
        dir=str(folder),
        settings=wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True, disable_git=True),
    )
    run.define_metric("tokens")
    run.define_metric("*", step_metric="tokens")
    try:
        yield Mirror(run)
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish()


class Mirror:
    """What a stage may say to W&B; says nothing when there is no run."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, found: Evaluation) -> None:
        if self._run is not None:
            self._run.log(metrics(found))

    def table(self, name: str, frame: Any) -> None:
        """A pandas table as W&B media."""
        if self._run is not None:
            import wandb

            known = frame.astype(object).where(frame.notna(), None)  # W&B knows None, not pandas' NA
            self._run.log({name: wandb.Table(dataframe=known, allow_mixed_types=True)})

    def image(self, name: str, path: Path, caption: str) -> None:
        if self._run is not None:
            import wandb

            self._run.log({name: wandb.Image(str(path), caption=caption)})

    def page(self, name: str, path: Path) -> None:
        """An HTML page as it is."""
        if self._run is not None:
            import wandb

            self._run.log({name: wandb.Html(path.read_text(encoding="utf-8"), inject=False)})

    def checkpoint(self, name: str, path: Path) -> None:
        """The final weights as an artifact, online only: offline they would be copied for nothing."""
        if self._run is not None and not self._run.offline:
            self._run.log_artifact(str(path), name=name, type="model")
