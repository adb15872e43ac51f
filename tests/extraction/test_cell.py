"""The records of a trained model agree with its weights."""

import copy
import dataclasses
from pathlib import Path

import pytest
import torch

from pathsum.extraction.cell import Part, extract, parts
from pathsum.extraction.inputs import SOURCES, effective
from pathsum.records import registry
from pathsum.records.composition import CompositionRow
from pathsum.records.corpus import BigramRow
from pathsum.records.heads import DistanceRow, EigenvalueRow, HeadRow
from pathsum.records.paths import ExactnessRow
from pathsum.records.results import read_cell, write_cell
from pathsum.records.roles import HeadRoles
from tests.extraction.small import HOW, evidence, learnt, taken_apart
from tests.training.small import MODEL, TRAIN


@pytest.mark.parametrize(("norm", "n_layers"), [("none", 0), ("rms", 1), ("layer", 2), ("rms", 2)])
def test_every_checkpoint_is_the_sum_of_its_paths(norm: str, n_layers: int) -> None:
    cell = taken_apart(n_layers=n_layers, norm=norm)
    assert len(cell.rows(ExactnessRow)) == len(cell.log)
    assert 0 <= cell.summary.exactness < 1e-10
    assert all((e.scores_max_relative_error is None) == (n_layers < 2) for e in cell.rows(ExactnessRow))
    assert all(isinstance(row, registry.tables()[name]) for name, rows in cell.tables.items() for row in rows)


def test_the_tables_have_a_row_for_every_head_edge_and_eigenvalue() -> None:
    cell = taken_apart()
    assert [(h.layer, h.head) for h in cell.rows(HeadRow)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(cell.rows(EigenvalueRow)) == 4 * MODEL.d_head
    for h in cell.rows(HeadRow):
        own = [complex(z.real, z.imag) for z in cell.rows(EigenvalueRow) if (z.layer, z.head) == h.place]
        assert h.copying_positivity == pytest.approx(sum(z.real for z in own) / sum(map(abs, own)), abs=1e-12)
    assert len(cell.rows(CompositionRow)) == 3 * 2 * 2
    assert {d.distance for d in cell.rows(DistanceRow)} == set(range(MODEL.n_ctx - 1))
    roles = HeadRoles.of(cell.log)
    by_place = {h.place: h for h in cell.rows(HeadRow)}
    assert cell.summary.prefix_matching == by_place[roles.induction].prefix_matching  # type: ignore[index]
    assert cell.summary.previous_token == by_place[roles.previous].previous_token  # type: ignore[index]
    assert cell.summary.onset_tokens is None  # a second of training


def test_a_zero_layer_model_has_no_heads_and_has_learned_the_bigrams() -> None:
    cell = taken_apart(tokens=20 * TRAIN.tokens, n_layers=0)
    assert cell.tables["heads"] == cell.tables["composition"] == cell.tables["skip_trigrams"] == []
    assert cell.summary.prefix_matching is cell.summary.copying_heads is None
    assert cell.summary.direct_path_kl_nats < 0.2  # each token is followed by one of two: log 2 is unknowable
    assert cell.rows(BigramRow)[0].count >= cell.rows(BigramRow)[-1].count > 0


def test_copying_is_judged_by_at_most_2048_tokens_of_the_text() -> None:
    assert evidence().sources.tolist() == evidence().unigram.nonzero()[:, 0].tolist()
    counts = torch.arange(10_000.0) % 3
    drawn = dataclasses.replace(evidence(), unigram=counts).sources
    assert len(drawn.unique()) == SOURCES
    assert (counts[drawn] > 0).all()
    assert abs(drawn.double().mean().item() - 5_000) < 5 * 2_900 / SOURCES**0.5  # from all of the vocabulary


def test_held_out_numbers_have_intervals_over_documents_and_the_excess_is_paired() -> None:
    s = taken_apart().summary
    for name in ("val_loss", "in_context_loss_drop", "bigram_excess"):
        low, value, high = (getattr(s, f"{name}_{end}") for end in ("low", "nats", "high"))
        assert low < value < high
    assert s.bigram_excess_nats == pytest.approx(s.val_loss_nats - 3.0)
    # paired: against a constant, the interval of the difference is as wide as that of the loss
    assert s.bigram_excess_high - s.bigram_excess_low == pytest.approx(s.val_loss_high - s.val_loss_low)  # type: ignore[operator]


def test_an_untrained_direct_path_has_no_bigrams() -> None:
    made = learnt()
    found = extract("cell", made.cell, made.log[:2], made.checkpoints[:1] * 2, evidence(), HOW)
    assert found.summary.direct_path_kl_nats > 1.5


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.__module__.split(".")[-1])
def test_the_same_model_gives_the_same_rows_and_is_left_as_it_was(part: Part) -> None:
    trained = learnt()
    before, found = copy.deepcopy(trained.model.state_dict()), part(trained, evidence(), HOW)
    assert found == {name: taken_apart().tables[name] for name in found}
    assert all(p.equal(before[name]) for name, p in trained.model.state_dict().items())


def test_records_survive_the_disk_and_are_the_same_bytes_twice(tmp_path: Path) -> None:
    cell = taken_apart()
    for name in "ab":
        write_cell(tmp_path / name, cell)
    assert read_cell(tmp_path / "a") == cell
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_bare_tokens_tables_are_read_at_the_scale_of_its_norm() -> None:
    """With a norm and zero layers, the logits after a token are exactly its column of W_U W_E, times its norm scale."""
    model = copy.deepcopy(learnt(norm="layer", n_layers=0).model).double()
    weights = effective(model)
    tokens = torch.arange(8)[None]
    torch.testing.assert_close(model(tokens)[0], (weights.W_U @ weights.W_E).mT[:8])
