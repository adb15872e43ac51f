"""The section on forecasts: each text by the law of the others, and right only where the onset came as expected."""

import re
from dataclasses import replace

import pytest

from pathsum.records.onsets import TextOnsets
from pathsum.report.themes import forecast
from tests.report import synthetic
from tests.report.conftest import prose


def text(name: str, saving: float, onset: int | None, weight: float = 1.0) -> TextOnsets:
    return replace(
        synthetic.KNOWN[0],
        text=name,
        corpus_hash=name,
        saving_nats=saving,
        repeat_weight=weight,
        onset_tokens=(onset,) * 2,
    )


OTHERS = [text("odd", 0.3, 3_000_000), text("none", 0.1, None), text("led", 0.1, 90_000, weight=3.0)]
RESULTS = replace(synthetic.results(), known=[*synthetic.KNOWN, *OTHERS], texts={"prose": prose()})


def test_each_text_is_forecast_by_the_others() -> None:
    found = forecast.facts(RESULTS)
    by_text = found["shown"].set_index("text")
    assert set(by_text.index) == {"python", "prose", *(known.text for known in synthetic.KNOWN), "odd", "none", "led"}
    assert by_text.loc["notes", "onset"] == pytest.approx(320_000 / 0.3, rel=1e-5)
    assert by_text.loc["none", "expected"] > 2_000_000
    assert by_text.loc[["none", "notes"], "held"].all()
    assert not by_text.loc["led", "held"]
    odd = by_text.loc["odd"]
    assert not odd["held"]
    assert odd["expected"] == pytest.approx(320_000 / 0.3, rel=1e-3)  # the others are on one line
    assert found["off"].max() == pytest.approx(3 * 0.3 / 0.32, rel=1e-2)


def test_the_section_says_how_far_off_the_forecasts_are() -> None:
    section = forecast.section(RESULTS, {})
    text = " ".join(section.paragraphs)
    assert re.search(r"log\(saving\), fitted to 6 texts", text)
    assert re.search(r"off by a factor of 1\.\d\d \(median; largest 2\.8\d\)", text)
    assert "Weights of repeats are outside the law" in text


def test_a_figure_shows_every_text_and_too_few_texts_show_nothing() -> None:
    drawn = forecast.onset_forecast(RESULTS)
    assert drawn
    assert set(drawn.data["text"]) == set(forecast.facts(RESULTS)["shown"]["text"])
    few = replace(RESULTS, known=list(synthetic.KNOWN[:3]))
    assert forecast.facts(few) == {}
    assert forecast.onset_forecast(few) is None
    assert "No model here" in forecast.section(few, {}).paragraphs[0]
