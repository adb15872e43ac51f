"""The tables of single heads' weights, for models of any depth."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from pathsum.circuits.composition import composition
from pathsum.circuits.subspaces import overlaps
from pathsum.extraction.inputs import trace_trained
from pathsum.extraction.weights_side import tables
from pathsum.model.checkpoint import load_checkpoint
from pathsum.records import registry
from tests.extraction.small import HOW, evidence, subject_of
from tests.training.small import CELL, trained

NAMES = ("token_clusters", "directions", "joint_copying", "overlaps", "bandwidth", "deleting", "virtual_heads")


@pytest.mark.parametrize(
    ("n_layers", "norm", "pairs"), [(0, "none", 0), (1, "rms", 0), (2, "rms", 4), (3, "layer", 12)]
)
def test_every_pair_of_layers_in_order_has_its_rows(tmp_path: Path, n_layers: int, norm: str, pairs: int) -> None:
    found = tables(subject_of(tmp_path, n_layers=n_layers, norm=norm), evidence(), HOW)
    assert set(found) == set(NAMES) <= set(registry.tables())
    assert all(isinstance(row, registry.tables()[name]) for name, rows in found.items() for row in rows)
    assert len(found["virtual_heads"]) == pairs
    assert len(found["overlaps"]) == 3 * pairs
    assert len(found["deleting"]) == 2 * max(0, n_layers - 1)
    assert len(found["bandwidth"]) == (2 + 4 * n_layers if n_layers else 0)
    assert all(v.late_layer > v.early_layer and math.isfinite(v.cost_error_nats) for v in found["virtual_heads"])


def test_the_same_model_gives_the_same_tables(tmp_path: Path) -> None:
    trained = subject_of(tmp_path)
    assert tables(trained, evidence(), HOW) == tables(trained, evidence(), HOW)


def test_what_depends_on_the_weights_alone_is_computed_in_float64(tmp_path: Path) -> None:
    """In float32, the sixth digit depends on the processor and on the number of threads."""
    subject = subject_of(tmp_path)
    found, weights = tables(subject, evidence(), HOW), subject.weights.to(torch.float64)
    for v in found["virtual_heads"]:
        early, late = weights.layers[v.early_layer][v.early_head], weights.layers[v.late_layer][v.late_head]
        assert v.composition == pytest.approx(composition(early, late, "V"), rel=1e-12)
    assert [o.share for o in found["overlaps"]] == pytest.approx([o.share for o in overlaps(weights)], rel=1e-12)
    for d in found["directions"]:
        W_OV = weights.layers[d.layer][d.head].W_OV
        gains = torch.linalg.svdvals(W_OV.left @ W_OV.right).tolist()
        assert d.gain == pytest.approx(gains[d.rank - 1], rel=1e-11)


def test_a_virtual_head_through_a_silent_head_costs_nothing(tmp_path: Path) -> None:
    """Negative control: the late head writes nothing."""
    trained(tmp_path, CELL)
    model = load_checkpoint(max((tmp_path / "checkpoints").iterdir()), "words")
    with torch.no_grad():
        model.layers[1].W_O[1] = 0  # type: ignore[index, union-attr, operator]
    found = tables(trace_trained(model, CELL, [], evidence(), HOW), evidence(), HOW)["virtual_heads"]
    for v in found:
        assert (v.cost_nats == v.positivity == v.composition == 0) is (v.late_head == 1)
