"""The order of the models in verdicts and report."""

from __future__ import annotations

from pipelines.results import by_size
from tests.report import synthetic


def test_models_are_ordered_by_size_and_then_as_in_the_sweep() -> None:
    cells = synthetic.results(heads=(4, 2, 8), seeds=(3, 2)).cells
    assert [*cells] != sorted(cells)
    assert [*by_size(cells)] == [
        *("L0S3", "L0S2", "L1H2S3", "L1H2S2", "L1H4S3", "L1H4S2", "L1H8S3", "L1H8S2"),
        *("L2H2S3", "L2H2S2", "L2H4S3", "L2H4S2", "L2H8S3", "L2H8S2"),
    ]
    assert all(by_size(cells)[name] is cell for name, cell in cells.items())
