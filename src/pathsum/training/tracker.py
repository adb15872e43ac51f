"""Log to Weights & Biases (W&B): copies of results that are also on disk. No stage reads from W&B.

The x-axis is tokens seen and not W&B's step, so that a resumed run continues its curves. The environment variable
``WANDB_MODE`` overrides every configured mode except ``off``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathsum.config import GRID_NAME, CellConfig, ModelConfig, TrackingConfig, load
from pathsum.records.evaluation import Evaluation
from pathsum.statistics.phase_change import onset

SETTINGS = ("MODE", "ENTITY", "PROJECT", "BASE_URL")  # environment variables WANDB_… that decide where a run is logged
LOSSES = ("val_loss_nats", "in_context_loss_drop_nats", "repeat_first_loss_nats", "repeat_second_loss_nats")
SCORES = ("prefix_matching", "previous_token", "copying")  # of heads, in evaluations
POINTS = 200  # on each curve of training


@dataclass(frozen=True)
class Run:
    """What tells a W&B run from others. W&B shows ``name`` with the corpus and the profile."""

    name: str
    id: str  # of the run; one with the same id is continued (online) or replaced (offline)
    job: str  # train, circuits or report
    config: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[str] = ()


def run_id(*parts: str) -> str:
    """Join ``parts`` to an id that W&B accepts. Only the last part, a hash, is never shortened."""
    return "-".join([re.sub(r"[^\w.=,+-]+", "_", "-".join(parts[:-1]))[:80], parts[-1]])


def tags(name: str, model: ModelConfig) -> tuple[str, ...]:
    """Return the tags of a model: numbers of layers and heads, and whether it is a control."""
    layers = f"{model.n_layers} layer{'' if model.n_layers == 1 else 's'}"
    heads = (f"{model.n_heads} heads",) if model.n_layers else ()
    return (layers, *heads, *(() if GRID_NAME.fullmatch(name.rpartition("-")[2]) else ("control",)))


def metrics(evaluation: Evaluation) -> dict[str, float | int]:
    """Return an evaluation as scalars by name, with the largest value of each head score in each layer."""
    flat: dict[str, float | int] = {"tokens": evaluation.tokens_seen}
    flat |= {name: getattr(evaluation, name) for name in LOSSES}
    for score in SCORES:
        for layer, heads in enumerate(getattr(evaluation, score)):
            flat[f"layer{layer}/{score}"] = max(heads)
    return flat


def result(log: Sequence[Evaluation]) -> dict[str, float | int | None]:
    """Return what training reached by its ``log``: tokens seen, the last losses (nats per token), the largest head
    scores (None without heads) and the onset in tokens seen (docs/framework.md §6.3; None without one)."""
    last, best = log[-1], [max((s for layer in e.prefix_matching for s in layer), default=0.0) for e in log]
    change = onset([e.tokens_seen for e in log], best) if len(log) > 1 else None
    return {
        "tokens_seen": last.tokens_seen,
        "val_loss_nats": last.val_loss_nats,
        "in_context_loss_drop_nats": last.in_context_loss_drop_nats,
        "prefix_matching": best[-1] if last.prefix_matching else None,
        "previous_token": max((s for layer in last.previous_token for s in layer), default=None),
        "onset_tokens": change.tokens_seen if change else None,
    }


@contextmanager
def mirror(config: TrackingConfig, about: Run, folder: Path) -> Iterator[Mirror]:
    """Open the W&B run ``about`` during the block, and yield the ``Mirror`` that logs to it."""
    if _mode(config) == "off":
        yield Mirror(None)
        return
    run = _opened(config, about, folder)
    try:  # W&B's own context would print a traceback
        yield Mirror(run)
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish()
    for earlier in Path(folder, "wandb").glob(f"offline-run-????????_??????-{about.id}"):
        if run.offline and earlier.name != Path(run.settings.sync_dir).name:
            shutil.rmtree(earlier, ignore_errors=True)


def mirror_tables(
    config: TrackingConfig,
    about: Run,
    folder: Path,
    files: Iterable[Path],
    tables: Callable[[], Mapping[str, Any]],
    summary: Mapping[str, Any],
) -> None:
    """Log the pandas tables that ``tables`` returns by name, and ``summary``, to a W&B run, unless it has logged the
    same ``files`` before."""
    if _mode(config) == "off":
        return
    digest = hashlib.sha256(repr((config, [os.environ.get(f"WANDB_{name}") for name in SETTINGS], summary)).encode())
    for path in sorted(files):
        digest.update(path.name.encode() + path.read_bytes())
    content, logged = digest.hexdigest().encode(), folder / "wandb" / "mirrored" / about.id
    if logged.is_file() and logged.read_bytes() == content:
        return
    with mirror(config, about, folder) as wandb:
        for table, rows in tables().items():
            wandb.table(f"tables/{table}", rows)
        wandb.summary(summary)
    logged.parent.mkdir(parents=True, exist_ok=True)
    logged.write_bytes(content)


def _mode(config: TrackingConfig) -> str:
    """Return the mode of W&B: WANDB_MODE, unless it is unset or the configured one is off."""
    chosen = config.mode if config.mode == "off" else os.environ.get("WANDB_MODE", config.mode)
    return load(TrackingConfig, {**config.model_dump(), "mode": chosen}, "WANDB_MODE").mode


def _opened(config: TrackingConfig, about: Run, folder: Path) -> Any:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")
    import wandb

    mode = _mode(config)
    folder.mkdir(parents=True, exist_ok=True)
    origin = {key: value for key in ("corpus", "profile") if (value := getattr(config, key))}
    try:
        run = wandb.init(
            mode=mode,  # type: ignore[arg-type]
            project=config.project,
            entity=config.entity or None,
            group=config.group,
            name=" ".join([about.name, *origin.values()])[:128],
            id=about.id,
            resume="allow" if mode == "online" else None,
            job_type=about.job,
            config={**about.config, **origin},
            tags=[tag[:64] for tag in (*about.tags, *origin.values())],
            dir=str(folder),
            settings=wandb.Settings(
                console="off",
                x_disable_stats=True,
                x_disable_meta=True,
                x_save_requirements=False,
                disable_git=True,
                symlink=False,
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
        self._losses: list[float] = []
        self._point = 0  # number of the last point on the curves
        self._since: tuple[int, float] | None = None  # tokens and time from which the speed is measured

    def log(self, evaluation: Evaluation) -> None:
        """Log one evaluation of training."""
        if self._run is not None:
            self._run.log(metrics(evaluation))
            self._since = None

    def step(self, cell: CellConfig, tokens: int, loss_nats: float, share: float) -> None:
        """Take in one training step of ``cell``, after which ``tokens`` were seen."""
        if self._run is None:
            return
        now = time.monotonic()
        self._losses.append(loss_nats)
        if self._since is None:
            self._since = tokens, now
        point = tokens * POINTS // cell.train.tokens
        if point == self._point:
            return
        curves = {"tokens": tokens, "train_loss_nats": sum(self._losses) / len(self._losses)}
        for rate in ("lr_embedding", *(("lr_attention",) if cell.model.n_layers else ())):
            curves[rate] = share * getattr(cell.train, rate)
        seen, seconds = tokens - self._since[0], now - self._since[1]
        if seen > 0 and seconds > 0:
            curves["tokens_per_second"] = seen / seconds
        self._run.log(curves)
        self._losses, self._point, self._since = [], point, (tokens, now)

    def summary(self, values: Mapping[str, Any]) -> None:
        """Write ``values`` to the summary of the run."""
        if self._run is not None:
            self._run.summary.update(dict(values))

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
        """Log the weights at ``path`` as the artifact ``name``."""
        if self._run is not None and not self._run.offline:
            self._run.log_artifact(str(path), name=name, type="model")
