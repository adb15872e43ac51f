"""The tables of single heads' weights, for models of any depth."""

import copy
import math

import pytest
import torch

from pathsum.circuits.composition import composition
from pathsum.circuits.subspaces import overlaps
from pathsum.extraction.inputs import trace_trained
from pathsum.extraction.weights_side import tables, virtual_head_rows
from tests.extraction.small import HOW, evidence, learnt, taken_apart


@pytest.mark.parametrize(
    ("n_layers", "norm", "pairs"), [(0, "none", 0), (1, "rms", 0), (2, "rms", 4), (3, "layer", 12)]
)
def test_every_pair_of_layers_in_order_has_its_rows(n_layers: int, norm: str, pairs: int) -> None:
    found = tables(learnt(n_layers=n_layers, norm=norm), evidence(), HOW)
    assert len(found["virtual_heads"]) == pairs
    assert len(found["overlaps"]) == 3 * pairs
    assert len(found["deleting"]) == 2 * max(0, n_layers - 1)
    assert len(found["bandwidth"]) == (2 + 4 * n_layers if n_layers else 0)
    assert all(v.late_layer > v.early_layer and math.isfinite(v.cost_error_nats) for v in found["virtual_heads"])


def test_what_depends_on_the_weights_alone_is_computed_in_float64() -> None:
    """In float32, the sixth digit depends on the processor and on the number of threads."""
    found, weights = taken_apart().tables, learnt().weights.to(torch.float64)
    for v in found["virtual_heads"]:
        early, late = weights.layers[v.early_layer][v.early_head], weights.layers[v.late_layer][v.late_head]
        assert v.composition == pytest.approx(composition(early, late, "V"), rel=1e-12)
    assert [o.share for o in found["overlaps"]] == pytest.approx([o.share for o in overlaps(weights)], rel=1e-12)
    for d in found["directions"]:
        W_OV = weights.layers[d.layer][d.head].W_OV
        gains = torch.linalg.svdvals(W_OV.left @ W_OV.right).tolist()
        assert d.gain == pytest.approx(gains[d.rank - 1], rel=1e-11)


def test_a_virtual_head_through_a_silent_head_costs_nothing() -> None:
    """Negative control: the late head writes nothing."""
    model = copy.deepcopy(learnt().model).requires_grad_(False)
    model.layers[1].W_O[1] = 0  # type: ignore[index, union-attr, operator]
    for v in virtual_head_rows(trace_trained(model, learnt().cell, [], evidence(), HOW), evidence()):
        assert (v.cost_nats == v.positivity == v.composition == 0) is (v.late_head == 1)
