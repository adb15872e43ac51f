"""Compute all records of a trained model from its checkpoints and held-out tokens."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import pathsum.extraction
from pathsum.behavior import induction
from pathsum.behavior.icl_positions import icl_loss_drop, icl_positions
from pathsum.behavior.loss_drops import loss_drops
from pathsum.behavior.repeats import guessing_nats, second_copy_top1
from pathsum.circuits import bigram
from pathsum.config import CellConfig, ExtractConfig
from pathsum.core.threads import in_threads
from pathsum.extraction.framework import SMOOTHING
from pathsum.extraction.inputs import EvalData, Load, TrainedModel, trace_trained
from pathsum.model.checkpoint import weights_hash
from pathsum.model.transformer import Transformer
from pathsum.records import registry
from pathsum.records.evaluation import Evaluation
from pathsum.records.heads import HeadRow
from pathsum.records.registry import intervals
from pathsum.records.results import Cell
from pathsum.records.roles import HeadRoles
from pathsum.records.summary import CellSummary
from pathsum.statistics.bootstrap import mean_intervals
from pathsum.training.evaluate import token_losses

MODEL = {"n_layers", "n_heads", "d_model", "d_head", "n_ctx", "positions", "norm", "smeared_keys"}
TRAIN = {"batch", "shuffled", "repeat_weight", "repeat_tokens"}
_SEED = 2021
Part = Callable[[TrainedModel, EvalData, ExtractConfig], dict[str, list[Any]]]


@functools.cache
def parts() -> tuple[Part, ...]:
    """Return the function ``tables`` of every module of ``pathsum.extraction`` that has one."""
    names = (module.name for module in pkgutil.iter_modules(pathsum.extraction.__path__, "pathsum.extraction."))
    modules = (importlib.import_module(name) for name in names)
    return tuple(module.tables for module in modules if hasattr(module, "tables"))


def extract(
    name: str,
    cell: CellConfig,
    log: list[Evaluation],
    checkpoints: Sequence[Load],
    data: EvalData,
    config: ExtractConfig,
    precise: Transformer | None = None,
) -> Cell:
    """Return all records of the model with these ``checkpoints``, one for each evaluation of the ``log``.

    ``precise`` is the last checkpoint before it was rounded to float32, if it was. Raises ValueError if held-out
    windows are from a single document."""
    trained = trace_trained(checkpoints[-1](), cell, log, data, config, checkpoints, precise)
    tables: dict[str, list[Any]] = {}
    for part, made in zip(parts(), in_threads(lambda part: part(trained, data, config), parts()), strict=True):
        assert made.keys() <= registry.tables().keys() - tables.keys(), f"{part.__module__}: unknown or repeated table"
        tables |= made
    return Cell(summary=summarise(name, trained, data, tables), log=log, tables=tables)


def summarise(name: str, trained: TrainedModel, data: EvalData, tables: Mapping[str, list[Any]]) -> CellSummary:
    cell, log, model = trained.cell, trained.log, trained.model
    heads: list[HeadRow] = tables["heads"]
    direct = bigram.direct_path(trained.weights, model.b_U)
    fit = bigram.compare_with_corpus(direct, data.bigram_counts, SMOOTHING, torch.Generator().manual_seed(_SEED))
    repeated = (trained.repeated.logits, trained.repeated_tokens, trained.block)
    repeats = induction.repeat_losses(*repeated)
    change = trained.onset
    scores, roles = {(h.layer, h.head): h for h in heads}, HeadRoles.of(log)
    return CellSummary(
        cell=name,
        **cell.model.model_dump(include=MODEL),
        **cell.train.model_dump(include=TRAIN),
        d_vocab=len(data.words),
        seed=cell.seed,
        tokens_seen=log[-1].tokens_seen,
        weights_hash=weights_hash(model),
        **held_out_intervals(model, data),
        icl_late_token=(icl_positions(cell.model.n_ctx) or (None, None))[1],
        repeat_first_loss_nats=repeats.first_nats,
        repeat_second_loss_nats=repeats.second_nats,
        repeat_guessing_nats=guessing_nats(data.unigram),
        repeat_top1=second_copy_top1(*repeated),
        prefix_matching=scores[roles.induction].prefix_matching if roles.induction else None,
        previous_token=scores[roles.previous].previous_token if roles.previous else None,
        copying_heads=sum(h.copies for h in heads) if heads else None,
        exactness=max(
            *(max(e.max_relative_error, e.scores_max_relative_error or 0) for e in tables["exactness"]),
            *(row.exactness for row in (*tables["content"], *tables["content_scores"])),
        ),
        onset_tokens=change.tokens_seen if change else None,
        onset_low=change.low if change else None,
        onset_high=change.high if change else None,
        bigram_correlation=fit.correlation,
        unigram_correlation=fit.unigram,
        beyond_unigram_low=fit.excess_low,
        beyond_unigram_high=fit.excess_high,
        bigram_partial_correlation=fit.partial,
        direct_path_kl_nats=fit.kl_nats,
    )


def held_out_intervals(model: Transformer, data: EvalData) -> dict[str, Any]:
    """Return losses on the verdict windows, each with its 95 % bootstrap interval over documents, in nats per token."""
    losses = token_losses(model, data.held_out)
    values = {"val_loss": losses.mean(1), "in_context_loss_drop": loss_drops(losses)}
    if icl_positions(losses.shape[1]) is not None:
        values["icl_loss_drop"] = torch.tensor([icl_loss_drop(row) for row in losses.tolist()], dtype=torch.float64)
    if data.bigram_losses is not None:
        values["bigram_excess"] = values["val_loss"] - data.bigram_losses.mean(1)
    generator = torch.Generator().manual_seed(_SEED)
    found = mean_intervals(torch.stack([*values.values()]), data.documents, generator)
    return intervals(**{f"{name}_nats": interval for name, interval in zip(values, found, strict=True)})
