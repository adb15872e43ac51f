"""The data of the explorers: the model's patterns, predictions as sums of paths, and tables of the weights."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from pathsum.config import CellConfig
from pathsum.core.storage import read_lines
from pathsum.extraction import explorer, token_tables
from pathsum.extraction.inputs import EvalData, TrainedModel, trace_trained
from pathsum.model.checkpoint import load_checkpoint
from pathsum.probes.evaluation import Evaluation
from pathsum.records import registry
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
    found = explorer.tables(trained, data, HOW) | token_tables.tables(trained, data, HOW)
    assert set(found) == {"passages", "patterns", "splits", "token_tables"} <= set(registry.tables())
    assert all(isinstance(row, registry.tables()[name]) for name, rows in found.items() for row in rows)
    return trained, data, found


def tokens_of(row: Any, data: EvalData) -> list[int]:
    return [list(data.words).index(word) for word in row.tokens.split(JOINER)]


@pytest.mark.parametrize(("norm", "n_layers"), [("none", 0), ("rms", 1), ("layer", 2)])
def test_the_parts_of_a_prediction_add_up_to_the_models_logit(tmp_path: Path, norm: str, n_layers: int) -> None:
    """Exact in float64. In float32 up to the rounding of d_model products in each layer and in the scores."""
    trained, data, found = explored(tmp_path, norm=norm, n_layers=n_layers)
    assert len(found["splits"]) > 0
    for number, passage in enumerate(found["passages"]):
        tokens = torch.tensor([tokens_of(passage, data)])
        logits = trained.model(tokens[:, :-1])[0]
        centred = logits - logits.mean(-1, keepdim=True)
        tolerance = 2 * EPS32 * (1 + n_layers) ** 2 * MODEL.d_model * max(1.0, logits.abs().max().item())
        rows = [r for r in found["splits"] if r.passage == number]
        assert [(r.position, r.target) for r in rows] == [(i, t) for i in range(len(logits)) for t in ("next", "guess")]
        for r in rows:
            assert len(r.paths.split(" ")) == len(r.parts) == (1 + MODEL.n_heads) ** n_layers
            assert sum(r.parts) == pytest.approx(r.logit, abs=1e-10)
            token = list(data.words).index(r.token)
            assert r.logit == pytest.approx(centred[r.position, token].item(), abs=tolerance)
            assert r.log_prob_nats == pytest.approx(logits[r.position].log_softmax(-1)[token].item(), abs=tolerance)
            assert (token == tokens[0, r.position + 1]) or r.target == "guess"


def test_a_pattern_reads_back_as_the_models_within_half_a_255th(tmp_path: Path) -> None:
    trained, data, found = explored(tmp_path)
    last = trained.log[-1].tokens_seen
    for row in (r for r in found["patterns"] if r.tokens_seen == last and not r.weighted):
        tokens = torch.tensor([tokens_of(found["passages"][row.passage], data)])
        pattern = trained.model.trace(tokens[:, :-1]).patterns[row.layer][0, row.head]
        past = torch.ones_like(pattern, dtype=torch.bool).tril()
        stored = torch.frombuffer(bytearray(row.attention), dtype=torch.uint8).float() / 255
        torch.testing.assert_close(stored, pattern[past], rtol=0, atol=0.5 / 255 + EPS32)


def test_the_patterns_are_of_a_few_checkpoints_and_value_weighted_at_the_last(tmp_path: Path) -> None:
    trained, _, found = explored(tmp_path)
    data = sorted({r.tokens_seen for r in found["patterns"]})
    assert len(data) == min(explorer.CHECKPOINTS, len(trained.log))
    assert (data[0], data[-1]) == (trained.log[0].tokens_seen, trained.log[-1].tokens_seen)
    assert {r.tokens_seen for r in found["patterns"] if r.weighted} == {data[-1]}
    assert len(found["patterns"]) == (len(data) + 1) * 3 * 4


def test_the_passages_begin_with_bos_and_the_last_is_a_block_twice(tmp_path: Path) -> None:
    _, data, found = explored(tmp_path)
    text, again, copies = (tokens_of(p, data) for p in found["passages"])
    assert text == data.windows[0].tolist()
    assert again in data.windows[1:].tolist()
    assert text[0] == again[0] == copies[0] == 0
    block = (len(copies) - 1) // 2
    assert copies[1 : 1 + block] == copies[1 + block :]


@pytest.mark.parametrize(
    ("count", "places"), [(0, []), (1, [0]), (6, [0, 1, 2, 3, 4, 5]), (26, [0, 5, 10, 15, 20, 25])]
)
def test_checkpoints_are_evenly_spaced(count: int, places: list[int]) -> None:
    assert explorer.evenly(count, 6) == places


def test_too_many_paths_are_not_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "MOST_PATHS", 8)
    assert explored(tmp_path)[2]["splits"] == []


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
