"""The patterns of every checkpoint, and tables of the weights by token."""

import struct
from typing import Any

import pytest
import torch

from pathsum.extraction import explorers
from pathsum.records.tokens import JOINER
from tests.extraction.small import evidence, learnt, taken_apart
from tests.training.small import D_VOCAB, MODEL

EPS32 = torch.finfo(torch.float32).eps


def tokens_of(row: Any) -> list[int]:
    return [list(evidence().words).index(word) for word in row.tokens.split(JOINER)]


def test_every_head_has_its_pattern_at_each_checkpoint_within_half_a_255th_and_value_weighted_at_the_last() -> None:
    trained, found = learnt(), taken_apart().tables
    assert len(found["patterns"]) == (len(trained.log) + 1) * 2 * 4
    assert {r.tokens_seen for r in found["patterns"] if r.weighted} == {trained.log[-1].tokens_seen}
    steps = zip(trained.log, trained.checkpoints, strict=True)
    models = {at.tokens_seen: load() for at, load in steps}
    rows = [r for r in found["patterns"] if not r.weighted]
    assert {r.tokens_seen for r in rows} == set(models)
    for row in rows:
        tokens = torch.tensor([tokens_of(found["passages"][row.passage])])
        pattern = models[row.tokens_seen].trace(tokens).patterns[row.layer][0, row.head]
        past = torch.ones_like(pattern, dtype=torch.bool).tril()
        stored = torch.frombuffer(bytearray(row.attention), dtype=torch.uint8).float() / 255
        torch.testing.assert_close(stored, pattern[past], rtol=0, atol=0.5 / 255 + EPS32)


def test_the_passages_are_a_block_twice_and_a_held_out_window() -> None:
    copies, again = (tokens_of(p) for p in taken_apart().tables["passages"])
    assert again in evidence().windows[:, : len(again)].tolist()
    assert again[0] == copies[0] == 0
    assert len(copies) == min(explorers.LENGTH, MODEL.n_ctx)
    block = len(copies) // 2
    assert copies[1 + block :] == copies[1 : len(copies) - block]


def test_the_tables_over_tokens_are_those_of_the_dense_circuits() -> None:
    data, w = evidence(), learnt(norm="rms").weights
    centred = w.W_U - w.W_U.mean(0)
    rows = {(r.table, r.layer, r.head): r for r in explorers.token_tables(learnt(norm="rms"), data)}
    assert len(rows) == 2 * 4 + 2
    for (name, layer, h), row in rows.items():
        assert tokens_of(row) == list(range(D_VOCAB))
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


def test_of_a_large_vocabulary_the_frequent_tokens_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorers, "TOKENS", 7)
    unigram = evidence().unigram
    kept = tokens_of(explorers.token_tables(learnt(n_layers=0), evidence())[0])
    assert len(kept) == 7
    assert unigram[kept].min() >= unigram[[t for t in range(D_VOCAB) if t not in kept]].max()
