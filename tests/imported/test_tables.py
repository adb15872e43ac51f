"""The records of an imported model: the paths of its tokens, positions and biases add up to the model."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from pathsum.config import ExtractConfig
from pathsum.imported import extra_paths, extraction
from pathsum.imported.extraction import exactness_check, extract_tables, pieces_of
from pathsum.imported.transformer_lens import from_transformer_lens
from pathsum.model.opened import Opened
from pathsum.model.transformer import Transformer
from pathsum.records import registry
from pathsum.text.windows import Windows, documents_of
from tests.imported.models import D_VOCAB, N_CTX, POSITIONS, some_tokens, written
from tests.training.small import MODEL

HOW = ExtractConfig(
    held_out_windows=101,
    windows_per_document=101,
    windows=7,
    repeated_windows=5,
    exactness_windows=2,
    top_k=3,
    rotations=49,
)
WORDS = [f"w{i}" for i in range(D_VOCAB)]


def model(seed: int, norm: str | None, positions: dict[str, Any], n_layers: int = 2) -> Opened:
    return from_transformer_lens(*written(seed, n_layers, normalization_type=norm, **positions))


def text(count: int = 500) -> np.ndarray:
    return 1 + np.random.default_rng(0).integers(0, D_VOCAB - 1, count)


@pytest.mark.parametrize("n_layers", [0, 1, 3])
@pytest.mark.parametrize("norm", ["LN", "RMS", None])
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_paths_of_tokens_positions_and_biases_are_the_model(
    n_layers: int, norm: str | None, positions: dict[str, Any]
) -> None:
    found = exactness_check(model(1, norm, positions, n_layers), some_tokens())
    assert found is not None
    assert found < 1e-12


def test_a_source_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without position vectors or without the constant of a layer, the sum clearly differs from the
    logits."""
    whole = model(2, "LN", POSITIONS[1])
    assert [e.layer for e in whole.extras()] == [0, 1, 2]
    summed = extra_paths.extra_paths
    for left_out in range(3):
        monkeypatch.setattr(
            extra_paths, "extra_paths", lambda extra, *rest, n=left_out: summed(extra, *rest) * (extra.layer != n)
        )
        found = exactness_check(whole, some_tokens())
        assert found is not None
        assert found > 1e-3


def test_this_project_s_own_models_have_an_exactness_check_too_and_too_many_paths_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Transformer(MODEL, D_VOCAB, torch.Generator().manual_seed(3)).eval().requires_grad_(False)
    assert (exactness_check(own, some_tokens()) or 1) < 1e-12
    monkeypatch.setattr(extraction, "MOST_PATHS", 15)
    assert exactness_check(model(4, None, POSITIONS[0]), some_tokens()) is None
    assert exactness_check(model(4, None, POSITIONS[0], n_layers=1), some_tokens()) is not None


@pytest.mark.parametrize("n_layers", [0, 2])
def test_the_tables_have_a_row_for_every_head_and_are_the_same_twice(n_layers: int) -> None:
    found = model(5, "LN", POSITIONS[0], n_layers)
    summary, tables = extract_tables(found, "mine", text(), WORDS, HOW, context=256)
    assert (summary.context, summary.traced_windows, summary.n_layers) == (N_CTX, HOW.windows, n_layers)
    assert all(isinstance(row, registry.tables()[name]) for name, rows in tables.items() for row in rows)
    assert [(h.layer, h.head) for h in tables["heads"]] == [(layer, h) for layer in range(n_layers) for h in range(3)]
    assert (summary.prefix_matching is None) is (n_layers == 0)
    assert summary.exactness is not None
    assert summary.exactness < 1e-12
    assert extract_tables(found, "mine", text(), WORDS, HOW, context=256) == (summary, tables)


@pytest.mark.parametrize("ids", [list(range(D_VOCAB)), [0, *range(4, 11), *range(19, 19 + D_VOCAB - 8)]])
def test_ids_that_the_tokenizer_lacks_count_in_losses_only(ids: list[int]) -> None:
    """Padding at the end, and holes, with random weights: the tables are those of the model without them."""
    state, config = written(8, normalization_type="LN", **POSITIONS[1])
    size, g = 70, torch.Generator().manual_seed(0)
    padded = dict(state)
    for name, dim in (("embed.W_E", 0), ("unembed.W_U", 1), ("unembed.b_U", 0)):
        shape = list(state[name].shape)
        shape[dim] = size
        padded[name] = torch.randn(shape, generator=g, dtype=torch.float64).index_copy(
            dim, torch.tensor(ids), state[name]
        )
    words = [f"[{i}]" for i in range(size)]
    for i, word in zip(ids, WORDS, strict=True):
        words[i] = word
    small, large = from_transformer_lens(state, config), from_transformer_lens(padded, config)
    tokens = np.array(ids)[text()]
    summary, tables = extract_tables(large, "mine", tokens, words, HOW, 256, ids)
    expected, right = extract_tables(small, "mine", text(), WORDS, HOW, 256)
    assert tables == right
    assert (summary.d_vocab, summary.tokenizer_ids, expected.tokenizer_ids) == (size, D_VOCAB, D_VOCAB)
    assert (summary.bigram_correlation, summary.copying_heads) == (expected.bigram_correlation, expected.copying_heads)
    windows = Windows(tokens, N_CTX)
    batch = windows.batch(torch.arange(len(windows)))
    loss = -large.trace(batch[:, :-1]).logits.log_softmax(-1).gather(-1, batch[:, 1:, None]).mean()
    assert summary.loss_nats == pytest.approx(loss.item(), abs=1e-5)
    assert summary.loss_nats > expected.loss_nats + 0.1
    counted = extract_tables(large, "mine", tokens, words, HOW, 256)[1]["heads"]  # negative control
    wrong = [abs(a.copying_positivity - b.copying_positivity) for a, b in zip(counted, right["heads"], strict=True)]
    assert max(wrong) > 0.05


def test_a_shorter_context_and_a_small_memory_show_less(monkeypatch: pytest.MonkeyPatch) -> None:
    found = model(6, None, POSITIONS[0])
    assert extract_tables(found, "mine", text(), WORDS, HOW, context=8)[0].context == 8
    monkeypatch.setattr(extraction, "MOST_NUMBERS", 5 * N_CTX * (D_VOCAB + 2 * 3 * (N_CTX + 13)))
    assert extract_tables(found, "mine", text(), WORDS, HOW, context=256)[0].traced_windows == 5


def documents(*sizes: int) -> np.ndarray:
    """Return a text of documents with these numbers of tokens, the first of which is BOS."""
    return np.concatenate([np.concatenate([[0], text(size - 1)]) for size in sizes])


def test_the_loss_is_that_of_all_windows_whatever_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    found, config = model(5, "LN", POSITIONS[0]), HOW.model_copy(update={"windows_per_document": 2})
    tokens = documents(23 * N_CTX)
    windows = Windows(tokens, N_CTX).batch(torch.arange(23))
    right = cross_entropy(found.trace(windows[:, :-1]).logits.flatten(0, 1), windows[:, 1:].flatten()).item()
    summary = extract_tables(found, "mine", tokens, WORDS, config, context=256)[0]
    assert (summary.loss_nats, summary.windows) == (pytest.approx(right, rel=1e-6), 23)
    monkeypatch.setattr(extraction, "MOST_NUMBERS", 4 * extraction._numbers(found.weights(), N_CTX))  # four at a time
    again = extract_tables(found, "mine", tokens, WORDS, config, context=256)[0]
    assert (again.loss_nats, again.windows) == (pytest.approx(right, rel=1e-6), 23)
    monkeypatch.setattr(extraction, "LOSS_CHUNKS", 2)
    assert extract_tables(found, "mine", tokens, WORDS, config, context=256)[0].windows == 8


@pytest.mark.parametrize(
    ("sizes", "found", "pieces"),
    [
        ([300 * N_CTX], 1, 150),  # a piece of two windows each
        ([101 * N_CTX] * 3, 3, 153),  # no piece of two documents
        ([300 * N_CTX, *[4] * 30], 11, 160),  # a book among notes, three to a window
        ([300 * N_CTX, *[N_CTX] * 23], 24, 173),  # a book among notes of a window each
        ([30 * N_CTX], 1, 30),
        ([5 * N_CTX], 1, 5),
        ([N_CTX] * 40, 40, 0),  # documents of a window each are not cut
        ([4 * N_CTX] * 51, 51, 0),  # enough documents
    ],
)
def test_few_documents_are_cut_into_pieces(sizes: list[int], found: int, pieces: int) -> None:
    config, tokens = HOW.model_copy(update={"windows_per_document": 2}), documents(*sizes)
    parts = pieces_of(tokens, N_CTX, config)
    whole = documents_of(tokens, N_CTX)
    assert (len(whole.unique()), len(parts.unique())) == (found, pieces or found)
    assert (parts.diff() >= 0).all()
    assert not pieces or parts.bincount().max() <= 2
    assert all(len(whole[parts == piece].unique()) == 1 for piece in parts.unique())
    data = extraction.eval_data(tokens, WORDS, config, N_CTX)
    assert len(data.documents.unique()) > 1  # some choose, and some judge
    assert len(data.held_out) == min(len(whole), HOW.held_out_windows) // 2
    summary = extract_tables(model(7, None, POSITIONS[0], 0), "mine", tokens, WORDS, config, context=256)[0]
    assert (summary.documents, summary.pieces) == (found, pieces)


def test_a_text_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match=r"TEXT: expected more than 11 tokens, those of one window, got 5"):
        extract_tables(model(7, None, POSITIONS[0]), "mine", text(5), WORDS, HOW, context=256)
