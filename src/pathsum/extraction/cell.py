"""A trained cell, taken apart: its checkpoints and held-out tokens in, the records of every circuit out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pathsum.circuits import bigram, induction
from pathsum.circuits.in_context import in_context_loss_drop
from pathsum.circuits.phase_change import onset
from pathsum.config import CellConfig, ExtractConfig
from pathsum.evaluation import Evaluation
from pathsum.extraction import (
    atlas,
    attention_sinks,
    balance,
    behaviour,
    causal,
    content,
    explorer,
    formation,
    framework,
    joint_ablation,
    norm_scales,
    score_paths,
    softmax_competition,
    sufficiency,
    suffixes,
    token_tables,
    weights_side,
)
from pathsum.extraction.evidence import Evidence, Subject, examine
from pathsum.extraction.framework import SMOOTHING, certificate
from pathsum.model.checkpoint import load_checkpoint, weights_hash
from pathsum.records import CellSummary, HeadRow
from pathsum.results import Cell
from pathsum.training.evaluate import loss_by_position

Part = Callable[[Subject, Evidence, ExtractConfig], dict[str, list[Any]]]
PARTS: tuple[Part, ...] = (  # each makes some tables, by field of Cell
    framework.tables,
    weights_side.tables,
    behaviour.tables,
    causal.tables,
    score_paths.tables,
    suffixes.tables,
    sufficiency.tables,
    softmax_competition.tables,
    attention_sinks.tables,
    norm_scales.tables,
    content.tables,
    balance.tables,
    atlas.tables,
    token_tables.tables,
)


def extract(
    name: str, cell: CellConfig, log: list[Evaluation], checkpoints: Sequence[Path], seen: Evidence, how: ExtractConfig
) -> Cell:
    """Every record of the cell whose ``checkpoints`` (in order of training) and ``log`` are given, in float32, its
    identities in float64."""
    model = load_checkpoint(checkpoints[-1], seen.tokenizer_hash)
    subject = examine(model, cell, log, seen, how)
    tables: dict[str, list[Any]] = {
        "exactness": [certificate(path, at, seen, how) for path, at in zip(checkpoints, log, strict=True)],
        "token_losses": behaviour.token_loss_rows(checkpoints, log, seen),
        **formation.tables(checkpoints, subject, seen),
        **explorer.tables(checkpoints, subject, seen),
        **joint_ablation.tables(checkpoints, subject, seen),
    }
    for part in PARTS:
        tables |= part(subject, seen, how)
    return Cell(summary=summarise(name, subject, seen, tables), log=log, **tables)


def summarise(name: str, subject: Subject, seen: Evidence, tables: Mapping[str, list[Any]]) -> CellSummary:
    """The numbers that metrics.json and the claims take from a cell."""
    cell, log, model = subject.cell, subject.log, subject.model
    heads: list[HeadRow] = tables["heads"]
    fit = bigram.compare_with_corpus(bigram.direct_path(subject.weights), seen.bigram_counts, SMOOTHING)
    losses = loss_by_position(model, seen.held_out)
    repeats = induction.repeat_losses(subject.repeated.logits, subject.repeated_tokens, subject.block)
    matching = [max((s for layer in e.prefix_matching for s in layer), default=0.0) for e in log]
    change = onset([e.tokens_seen for e in log], matching) if len(log) > 1 else None
    first_layer = [h.previous_token for h in heads if h.layer == 0]
    return CellSummary(
        cell=name,
        n_layers=cell.model.n_layers,
        n_heads=cell.model.n_heads,
        d_model=cell.model.d_model,
        d_head=cell.model.d_head,
        n_ctx=cell.model.n_ctx,
        d_vocab=len(seen.words),
        seed=cell.seed,
        positions=cell.model.positions,
        norm=cell.model.norm,
        smeared_keys=cell.model.smeared_keys,
        shuffled=cell.train.shuffled,
        curriculum_tokens=cell.train.curriculum_tokens,
        curriculum_share=cell.train.curriculum_share,
        tokens_seen=log[-1].tokens_seen,
        weights_hash=weights_hash(model),
        val_loss_nats=losses.mean().item(),
        in_context_loss_drop_nats=in_context_loss_drop(losses),
        repeat_first_loss_nats=repeats.first_nats,
        repeat_second_loss_nats=repeats.second_nats,
        prefix_matching=max((h.prefix_matching for h in heads), default=None),
        previous_token=max(first_layer, default=None),
        copying_heads=sum(h.copies for h in heads) if heads else None,
        exactness=max(
            *(max(e.max_relative_error, e.scores_max_relative_error or 0) for e in tables["exactness"]),
            *(row.exactness for row in (*tables["content"], *tables["content_scores"])),
        ),
        onset_tokens=change.tokens_seen if change else None,
        onset_low=change.low if change else None,
        onset_high=change.high if change else None,
        bigram_correlation=fit.correlation,
        direct_path_kl_nats=fit.kl_nats,
    )
