"""Log to Weights & Biases (W&B): copies of results that are also on disk. No stage reads from W&B.

The x-axis is tokens seen and not W&B's step, so that a resumed run continues its curves. The environment variable
``WANDB_MODE`` overrides every configured mode except ``off``.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pathsum.config import TrackingConfig
from pathsum.probes.evaluation import Evaluation

SETTINGS = ("MODE", "ENTITY", "PROJECT", "BASE_URL")  # environment variables WANDB_… that decide where a run is logged
MODES = ("online", "offline", "shared", "disabled", "dryrun", "run")  # of W&B


def metrics(evaluation: Evaluation) -> dict[str, float | int]:
    """Return an evaluation as scalars for W&B, by name: tokens seen, losses (nats per token), and the largest value of
    each head score in each layer."""
    flat: dict[str, float | int] = {
        "tokens": evaluation.tokens_seen,
        "val_loss_nats": evaluation.val_loss_nats,
        "in_context_loss_drop_nats": evaluation.in_context_loss_drop_nats,
        "repeat_first_loss_nats": evaluation.repeat_first_loss_nats,
        "repeat_second_loss_nats": evaluation.repeat_second_loss_nats,
    }
    for score in ("prefix_matching", "previous_token", "copying"):
        for layer, heads in enumerate(getattr(evaluation, score)):
            flat[f"layer{layer}/best_{score}"] = max(heads)
    return flat


@contextmanager
def mirror(
    config: TrackingConfig, name: str, identity: str, job: str, about: Mapping[str, Any], folder: Path
) -> Iterator[Mirror]:
    """Open a W&B run during the block, and yield the ``Mirror`` that logs to it.

    ``name`` is the name that W&B shows, ``identity`` the id of the run, ``job`` its type, ``about`` its configuration,
    and ``folder`` the place of local files. In mode ``online``, an earlier run with the same id is continued. In mode
    ``off`` there is no run, and the mirror does nothing. An exception in the block marks the run as failed. Raises
    ValueError if W&B cannot open the run, or if WANDB_MODE is not one of MODES.
    """
    if config.mode == "off":
        yield Mirror(None)
        return
    with _log_without_tracebacks():
        run = _opened(config, name, identity, job, about, folder)
        try:
            yield Mirror(run)
        except BaseException:
            run.finish(exit_code=1)
            raise
        run.finish()


def mirror_tables(
    config: TrackingConfig,
    name: str,
    identity: str,
    job: str,
    about: Mapping[str, Any],
    folder: Path,
    files: Iterable[Path],
    tables: Callable[[], Mapping[str, Any]],
) -> None:
    """Call ``tables``, and log the pandas tables that it returns by name to a W&B run, as "tables/<name>".

    Arguments up to ``folder`` are those of ``mirror``. Nothing is done in mode ``off``, or if the run was logged before
    with the same tracking settings and the same ``files``, from which the tables are made. A file in
    ``folder``/mirrored records this. Raises ValueError as ``mirror`` does.
    """
    if config.mode == "off":
        return
    digest = hashlib.sha256(repr((config, [os.environ.get(f"WANDB_{name}") for name in SETTINGS])).encode())
    for path in sorted(files):
        digest.update(path.name.encode() + path.read_bytes())
    content, logged = digest.hexdigest().encode(), folder / "mirrored" / identity
    if logged.is_file() and logged.read_bytes() == content:
        return
    with mirror(config, name, identity, job, about, folder) as wandb:
        for table, rows in tables().items():
            wandb.table(f"tables/{table}", rows)
    logged.parent.mkdir(exist_ok=True)
    logged.write_bytes(content)


@contextmanager
def _log_without_tracebacks() -> Iterator[None]:
    """During the block, drop log lines that cannot be written, without a traceback. W&B keeps a log of its own, which
    may not fit on the disk. Writing results to a full disk still raises an error."""
    before, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        yield
    finally:
        logging.raiseExceptions = before


def _opened(config: TrackingConfig, name: str, identity: str, job: str, about: Mapping[str, Any], folder: Path) -> Any:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")
    if not os.environ.get("HOME") and not os.environ.get("XDG_CACHE_HOME"):  # W&B would complain about its cache
        os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir(), f"pathsum-{os.getuid()}"))
    import wandb
    from wandb.sdk.wandb_run import Run

    # The inputs of W&B Launch: none are given here, and looking for them imports 1.0 s of processor time.
    Run._detect_and_apply_job_inputs = lambda self: None  # type: ignore[method-assign]
    mode = os.environ.get("WANDB_MODE", config.mode)
    if mode not in MODES:
        raise ValueError(f"WANDB_MODE: expected one of {', '.join(MODES)}, got {mode!r}; set one of them or none")
    folder.mkdir(parents=True, exist_ok=True)
    try:
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
            settings=wandb.Settings(
                console="off", x_disable_stats=True, x_disable_meta=True, x_save_requirements=False, disable_git=True
            ),
        )
    except wandb.Error as error:
        advice = "Run `wandb login`, or set WANDB_MODE=offline" if mode == "online" else "Correct or unset WANDB_…"
        raise ValueError(f"Weights & Biases, mode {mode}: {str(error).strip()} {advice}") from error
    run.define_metric("tokens")
    run.define_metric("*", step_metric="tokens")
    return run


class Mirror:
    """The W&B run to which a stage logs. Without a run, the methods do nothing."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, evaluation: Evaluation) -> None:
        """Log one evaluation of training."""
        if self._run is not None:
            self._run.log(metrics(evaluation))

    def table(self, name: str, frame: Any) -> None:
        """Log a pandas table as ``name``. Missing values become None."""
        if self._run is not None:
            import wandb

            known = frame.astype(object).where(frame.notna(), None)  # W&B accepts None, but not the NA of pandas
            rows = known.to_numpy().tolist()
            table = wandb.Table(columns=list(known.columns), data=rows[:1], allow_mixed_types=True)
            table.data.extend(rows[1:])  # bypasses W&B's type check of each field, which takes half the report's time
            self._run.log({name: table})

    def image(self, name: str, path: Path, caption: str) -> None:
        """Log the image file at ``path`` as ``name``, with a caption."""
        if self._run is not None:
            import wandb

            self._run.log({name: wandb.Image(str(path), caption=caption)})

    def page(self, name: str, path: Path) -> None:
        """Log the HTML page at ``path`` as ``name``."""
        if self._run is not None:
            import wandb

            self._run.log({name: wandb.Html(path.read_text(encoding="utf-8"), inject=False)})

    def checkpoint(self, name: str, path: Path) -> None:
        """Log the weights at ``path`` as the artifact ``name``. Do nothing in an offline run, which would
        only copy the file."""
        if self._run is not None and not self._run.offline:
            self._run.log_artifact(str(path), name=name, type="model")
