"""Rows of led models survive their file, and the report states what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from pathsum.claims.registry import judge_all
from pathsum.records.doses import DoseRow, read_doses
from pathsum.report.chapters import learning_chapter
from pathsum.report.themes.dose_response import dose_response, facts, section
from pathsum.report.told import listed
from tests.report import synthetic
from tests.report.synthetic import DOSES


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "dose_response.csv"
    assert read_doses(path) == []
    pd.DataFrame([vars(row) for row in DOSES]).astype({"onset_tokens": "Int64"}).to_csv(path, index=False)
    assert read_doses(path) == DOSES


def test_the_facts_compare_models_with_an_onset_with_those_never_led() -> None:
    found = facts(DOSES)
    onsets = {weight: listed(tokens) for weight, tokens in found["onsets"].items()}
    assert onsets == {1: [], 3: [1_333_333] * 3}
    names = ["matching", "matching_led", "cut_on_repeats_nats", "loss_above_never_led_nats"]
    assert found["led"][names].tolist() == pytest.approx([0.15, 0.3, 0.06, 0.02])
    assert found["never"]["cut_on_repeats_nats"] == 0.02
    assert facts([]) == {}
    assert not facts([row for row in DOSES if row.weight == 1])["compared"]


def test_the_paragraph_and_the_table_quote_the_facts() -> None:
    results = synthetic.results(layers=(2,), heads=(2,), seeds=(0,))
    claims = {claim.id: claim for claim in judge_all(results)}

    def text(doses: list[DoseRow]) -> str:
        return learning_chapter(replace(results, doses=doses), {}, claims).paragraphs[-1]

    assert "by weight: 1: 0 of 3 models; 3: 3 of 3 models, at 1.3 M tokens. After the release" in text(DOSES)
    assert text(DOSES).endswith("their loss minus that of models never led is 0.020 nats.")
    assert "On English prose" not in text([])
    assert "After the release" not in text([row for row in DOSES if row.weight == 1])
    (table,) = section(results, {}).blocks
    texts = [[entry.text for entry in row[:4]] for row in table.rows]  # type: ignore[union-attr]
    assert texts[2:4] == [["1", "10", "–", "0.10"], ["3", "8", "1,333,333", "0.30"]]


def test_the_figure_has_a_dot_per_model() -> None:
    results = synthetic.results(layers=(2,), heads=(2,), seeds=(0,))
    assert dose_response(replace(results, doses=[])) is None
    figure = dose_response(results)
    assert figure is not None
    assert len(figure.data) == len(DOSES)
    assert figure.data["loss_above_never_led_nats"].tolist() == pytest.approx([0] * 3 + [0.02] * 3)
