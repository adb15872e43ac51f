"""Rows of led models survive their file, and the report states what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from pathsum.records.doses import read_doses
from pathsum.report.themes.dose_response import dose_response, paragraph
from tests.report import synthetic
from tests.report.synthetic import DOSES


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "dose_response.csv"
    assert read_doses(path) == []
    pd.DataFrame([vars(row) for row in DOSES]).astype({"onset_tokens": "Int64"}).to_csv(path, index=False)
    assert read_doses(path) == DOSES


def test_the_paragraph_counts_onsets_and_compares_with_models_that_were_never_led() -> None:
    text = paragraph(DOSES)
    assert "by weight: 1: 0 of 3 models; 3: 3 of 3 models, at 1.3 M tokens." in text
    assert "prefix matching of models with an onset is 0.15 (when led 0.30)" in text
    assert "costs them 0.06 nats on tokens that complete a repeat (never led: 0.02)" in text
    assert "their loss is +0.020 nats from that of models never led" in text
    assert paragraph([]) == ""
    assert "After the release" not in paragraph([row for row in DOSES if row.weight == 1])


def test_the_figure_has_a_dot_per_model() -> None:
    results = synthetic.results(layers=(2,), heads=(2,), seeds=(0,))
    assert dose_response(replace(results, doses=[])) is None
    figure = dose_response(results)
    assert figure is not None
    assert len(figure.data) == len(DOSES)
    assert figure.data["loss_above_never_led_nats"].tolist() == pytest.approx([0] * 3 + [0.02] * 3)
