"""Circuits over tokens, without the directions that a softmax ignores."""

import pytest
import torch

from pathsum.circuits.qk_ov import ov_circuit, qk_circuit, top_rows
from pathsum.core.lowrank import LowRank
from tests import handmade

D_VOCAB = 23
EXACT = {"rtol": 0, "atol": 1e-12}  # float64, sums of a few dozen terms of order 1


def unigram(seed: int = 0) -> torch.Tensor:
    return torch.rand(D_VOCAB, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def table(seed: int, rows: int, columns: int, rank: int = 5) -> LowRank:
    g = torch.Generator().manual_seed(seed)
    return LowRank(handmade.normal(g, rows, rank), handmade.normal(g, rank, columns))


def test_the_ov_circuit_is_centred_over_outputs_and_changes_no_probability() -> None:
    weights = handmade.random_weights(seed=1, n_layers=1)
    head = weights.layers[0][0]
    raw = weights.W_U @ head.W_O @ head.W_V @ weights.W_E
    circuit = ov_circuit(weights, head.W_OV).dense()
    torch.testing.assert_close(circuit.sum(0), torch.zeros(D_VOCAB, dtype=torch.float64), **EXACT)
    torch.testing.assert_close(circuit.softmax(0), raw.softmax(0), **EXACT)


def test_the_qk_circuit_is_centred_for_each_query_and_changes_no_pattern() -> None:
    weights = handmade.random_weights(seed=2, n_layers=1)
    head = weights.layers[0][0]
    raw = weights.W_E.mT @ head.W_Q.mT @ head.W_K @ weights.W_E / 5**0.5
    circuit = qk_circuit(weights, head.W_QK, unigram()).dense()
    torch.testing.assert_close(circuit @ unigram(), torch.zeros(D_VOCAB, dtype=torch.float64), **EXACT)
    torch.testing.assert_close(circuit.softmax(-1), raw.softmax(-1), **EXACT)
    torch.testing.assert_close(qk_circuit(weights, head.W_QK, 31 * unigram()).dense(), circuit, **EXACT)  # counts


def test_what_every_key_adds_to_a_query_s_scores_leaves_no_trace() -> None:
    """A constant added to all scores of a query changes nothing, so raw scores cannot be compared between queries."""
    shift = torch.arange(D_VOCAB, dtype=torch.float64)[:, None].expand(D_VOCAB, D_VOCAB)
    qk = handmade.normal(torch.Generator().manual_seed(3), D_VOCAB, D_VOCAB)
    plain, shifted = (handmade.skip_trigram_head(some, 0 * qk) for some in (qk, qk + shift))
    circuits = [qk_circuit(w, w.layers[0][0].W_QK, unigram()).dense() for w in (plain, shifted)]
    torch.testing.assert_close(*circuits, **EXACT)


@pytest.mark.parametrize("block", [1, 7, 256])
@pytest.mark.parametrize("k", [1, 3, 29])
def test_of_equal_entries_the_first_are_kept(block: int, k: int) -> None:
    """Compared with the dense table. Small integers tie often, and their products are exact."""
    g = torch.Generator().manual_seed(8)
    some = LowRank(*(torch.randint(-2, 3, shape, generator=g).double() for shape in ((29, 5), (5, 19))))
    columns = torch.tensor([3, 17, 3, 11, 0])
    values, rows = top_rows(some, columns, k, block)
    by_column = some.dense()[:, columns].mT.sort(descending=True, stable=True)
    assert rows.tolist() == by_column.indices[:, :k].tolist()
    assert values.tolist() == by_column.values[:, :k].tolist()


def test_the_top_rows_are_those_of_each_column() -> None:
    some, columns = table(7, 29, 19), torch.tensor([3, 17, 3, 11, 0])
    values, rows = top_rows(some, columns, k=5, block=2)
    torch.testing.assert_close(values, some.dense()[:, columns].sort(0, descending=True).values[:5].mT, **EXACT)
    torch.testing.assert_close(some.dense()[rows, columns[:, None]], values, **EXACT)
    assert not top_rows(LowRank(some.left.requires_grad_(), some.right), columns, 3)[0].requires_grad
    with pytest.raises(ValueError, match="expected 1 ≤ k ≤ 29 rows, got k = 31"):
        top_rows(some, columns, k=31)


def test_frequencies_that_are_none_are_refused() -> None:
    weights = handmade.random_weights(seed=0, n_layers=1)
    for broken in (torch.zeros(D_VOCAB), -torch.ones(D_VOCAB)):
        with pytest.raises(ValueError, match="expected token frequencies ≥ 0 with a positive sum"):
            qk_circuit(weights, weights.layers[0][0].W_QK, broken)
