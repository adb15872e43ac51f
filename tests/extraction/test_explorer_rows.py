"""The patterns of every checkpoint, and tables of the weights by token."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from pathsum.config import CellConfig
from pathsum.core.storage import read_lines
from pathsum.extraction import token_tables, watch_it_learn
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records import registry
from pathsum.records.evaluation import Evaluation
from pathsum.records.tokens import JOINER
from tests.extraction.small import HOW, evidence
from tests.training.small import CELL, D_VOCAB, MODEL, trained

EPS32 = torch.finfo(torch.float32).eps


def taken(folder: Path, **model: object) -> tuple[TrainedModel, EvalData, list[Path]]:
    cell = CellConfig(**{**CELL.model_dump(), "model": {**MODEL.model_dump(), **model}})
    trained(folder, cell)
    log, checkpoints = read_lines(folder / "log.jsonl", Evaluation), sorted((folder / "checkpoints").iterdir())
    data = evidence()
    return (
        trace_trained(load_checkpoint(checkpoints[-1], "words"), cell, log, data, HOW, checkpoints),
        data,
        checkpoints,
    )


def explored(folder: Path, **model: object) -> tuple[TrainedModel, EvalData, dict[str, list[Any]]]:
    trained, data, _ = taken(folder, **model)
    found = watch_it_learn.tables(trained, data, HOW) | token_tables.tables(trained, data, HOW)
    assert set(found) == {"passages", "patterns", "token_tables"} <= set(registry.tables())
    assert all(isinstance(row, registry.tables()[name]) for name, rows in found.items() for row in rows)
    return trained, data, found


def tokens_of(row: Any, data: EvalData) -> list[int]:
    return [list(data.words).index(word) for word in row.tokens.split(JOINER)]


def test_each_pattern_is_that_of_its_checkpoint_within_half_a_255th(tmp_path: Path) -> None:
    trained, data, found = explored(tmp_path)
    models = {
        at.tokens_seen: load_checkpoint(path, "words")
        for at, path in zip(trained.log, trained.checkpoints, strict=True)
    }
    rows = [r for r in found["patterns"] if not r.weighted]
    assert {r.tokens_seen for r in rows} == set(models)
    for row in rows:
        tokens = torch.tensor([tokens_of(found["passages"][row.passage], data)])
        pattern = models[row.tokens_seen].trace(tokens).patterns[row.layer][0, row.head]
        past = torch.ones_like(pattern, dtype=torch.bool).tril()
        stored = torch.frombuffer(bytearray(row.attention), dtype=torch.uint8).float() / 255
        torch.testing.assert_close(stored, pattern[past], rtol=0, atol=0.5 / 255 + EPS32)


def test_every_head_has_a_pattern_per_checkpoint_and_is_value_weighted_at_the_last(tmp_path: Path) -> None:
    trained, _, found = explored(tmp_path)
    assert len(found["patterns"]) == (len(trained.log) + 1) * 2 * 4
    assert {r.tokens_seen for r in found["patterns"] if r.weighted} == {trained.log[-1].tokens_seen}


def test_the_passages_are_a_block_twice_and_a_held_out_window(tmp_path: Path) -> None:
    _, data, found = explored(tmp_path)
    copies, again = (tokens_of(p, data) for p in found["passages"])
    assert again in data.windows[:, : len(again)].tolist()
    assert again[0] == copies[0] == 0
    assert len(copies) == min(watch_it_learn.LENGTH, MODEL.n_ctx)
    block = len(copies) // 2
    assert copies[1 + block :] == copies[1 : len(copies) - block]


def test_the_tables_over_tokens_are_those_of_the_dense_circuits(tmp_path: Path) -> None:
    trained, data, found = explored(tmp_path, norm="rms")
    w = trained.weights
    centred = w.W_U - w.W_U.mean(0)
    rows = {(r.table, r.layer, r.head): r for r in found["token_tables"]}
    assert len(rows) == len(found["token_tables"]) == 2 * 4 + 2
    for (name, layer, h), row in rows.items():
        assert tokens_of(row, data) == list(range(D_VOCAB))
        if name == "corpus":
            counts = torch.as_tensor(data.bigram_counts[0:D_VOCAB]).double()
            dense = (counts / counts.sum(-1, keepdim=True).clamp(min=1)).mT
        elif name == "direct":
            dense = (w.W_U @ w.W_E).softmax(0)
        else:
            head = w.layers[layer][h]
            scores = w.W_E.mT @ head.W_QK.dense() @ w.W_E
            mean = scores @ (data.unigram / data.unigram.sum())
            dense = centred @ head.W_OV.dense() @ w.W_E if name == "OV" else scores - mean[:, None]
        values = torch.tensor([x for (x,) in struct.iter_unpack("<f", row.values)]).view(D_VOCAB, row.k)
        words = torch.tensor([list(data.words).index(t) for t in row.found.split(JOINER)]).view(D_VOCAB, row.k)
        scale = 1 + dense.abs().max().item()
        torch.testing.assert_close(values, dense.topk(row.k, dim=0).values.mT.float(), rtol=0, atol=1e-4 * scale)
        torch.testing.assert_close(values, dense.mT.gather(1, words).float(), rtol=0, atol=1e-4 * scale)


def test_of_a_large_vocabulary_the_frequent_tokens_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_tables, "TOKENS", 7)
    _, data, found = explored(tmp_path, n_layers=0)
    kept = tokens_of(found["token_tables"][0], data)
    assert len(kept) == 7
    assert data.unigram[kept].min() >= data.unigram[[t for t in range(D_VOCAB) if t not in kept]].max()
