"""The order of the models in verdicts and report, and the provenance."""

from __future__ import annotations

import re
from dataclasses import replace

from pipelines.results import by_size, provenance
from tests.report import synthetic


def test_models_are_ordered_by_size_and_then_as_in_the_sweep() -> None:
    cells = synthetic.results(heads=(4, 2, 8), seeds=(3, 2)).cells
    assert [*by_size(cells)] != [*cells]
    assert [*by_size(cells)] == [
        *("L0S3", "L0S2", "L1H2S3", "L1H2S2", "L1H4S3", "L1H4S2", "L1H8S3", "L1H8S2"),
        *("L2H2S3", "L2H2S2", "L2H4S3", "L2H4S2", "L2H8S3", "L2H8S2"),
    ]
    assert all(by_size(cells)[name] is cell for name, cell in cells.items())
    wide = {name: replace(c, summary=replace(c.summary, d_head=64)) for name, c in cells.items() if name == "L2H8S3"}
    assert [*by_size(cells | wide)][-2:] == ["L2H8S2", "L2H8S3"]


def test_the_provenance_names_the_minor_release_of_python() -> None:
    made = synthetic.results()
    assert re.fullmatch(r"3\.\d+", provenance(made.corpus, made.cells, {})["python"])
