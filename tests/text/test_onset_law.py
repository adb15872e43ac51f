"""The law of onsets recovers a known line, and its prediction intervals hold new texts as often as they say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import linregress

from pathsum.records.onsets import TextOnsets
from pathsum.text.onset_law import Forecast, Law, fit, forecast


def texts(spread: float, n: int, seed: int = 0) -> list[TextOnsets]:
    """Return texts about the line 9000 √(batch · n_ctx) / saving^1.2, with one model each."""
    rng = np.random.default_rng(seed)
    found = []
    for i, saving in enumerate(np.exp(rng.uniform(-3, 0, n))):
        batch, n_ctx = int(rng.integers(1, 9)), int(rng.choice([128, 256, 512]))
        onset = 9000 * math.sqrt(batch * n_ctx) * saving**-1.2 * math.exp(spread * rng.standard_normal())
        found.append(TextOnsets(f"text{i}", f"hash{i}", saving, 1.0, batch, n_ctx, 10**12, (round(onset),)))
    return found


def law(some: list[TextOnsets]) -> Law:
    found = fit(some)
    assert found
    return found


def test_a_known_law_is_recovered() -> None:
    known = law(texts(0.0, 5))
    assert (known.intercept, known.slope) == pytest.approx((math.log(9000), -1.2), rel=1e-4)
    assert known.spread < 1e-4
    found = known.forecast(TextOnsets("new", "", 0.1, 1.0, 4, 256, 10**6))
    assert (found.tokens, found.low, found.high) == pytest.approx([9000 * 32 * 0.1**-1.2] * 3, rel=1e-3)


def test_the_line_is_that_of_scipy() -> None:
    some = texts(0.3, 12)
    expected = linregress(
        np.log([p.saving_nats for p in some]), np.log([p.onset / math.sqrt(p.batch * p.n_ctx) for p in some if p.onset])
    )
    found = law(some)
    assert (found.slope, found.intercept) == pytest.approx((expected.slope, expected.intercept))
    assert found.spread / math.sqrt(found.squares) == pytest.approx(expected.stderr)


def test_intervals_hold_a_new_text_in_95_of_100_cases() -> None:
    held = 0
    for seed in range(2000):
        *known, new = texts(0.4, 9, seed)
        found = law(known).forecast(new)
        held += found.holds(new)
    assert 0.93 <= held / 2000 <= 0.97


def test_a_text_does_not_testify_for_itself_under_either_name() -> None:
    first, *others = texts(0.0, 6)
    odd = replace(first, onset_tokens=(50 * (first.onset_tokens[0] or 0),))
    for same in (odd, replace(odd, text="renamed"), replace(odd, text="text0@prose", corpus_hash="cut")):
        found = forecast(first, [same, *others])
        assert found
        assert found.tokens == pytest.approx(first.onset, rel=1e-3)
    moved = forecast(others[0], [odd, *others])
    assert moved
    assert moved.high / moved.low > 10


def test_texts_without_an_onset_or_with_weights_are_not_fitted() -> None:
    some = texts(0.1, 5)
    without = replace(some[0], text="none", onset_tokens=(10**6, None, None))
    led = replace(some[0], text="led", repeat_weight=3.0, onset_tokens=(1,))
    assert fit([*some, without, led]) == fit(some)
    assert without.onset is None


def test_the_onset_of_a_text_is_the_median_and_a_model_without_one_is_the_latest() -> None:
    text = TextOnsets("new", "", 0.1, 1.0, 4, 256, 10**6)
    for onsets, expected in {
        (): None,
        (None,): None,
        (300, None, 100): 300,
        (400, 100): 200,
        (100, None): None,
        (100, 400, None, 100): 200,
    }.items():
        assert replace(text, onset_tokens=onsets).onset == expected


def test_no_onset_is_right_where_it_is_expected_after_the_end_of_training() -> None:
    text = TextOnsets("new", "", 0.1, 1.0, 4, 256, 10**6, (None, None))
    assert Forecast(1.1e6, 0.5e6, 2e6).holds(text)
    assert not Forecast(0.9e6, 0.5e6, 2e6).holds(text)
    early = replace(text, onset_tokens=(800_000, 900_000))
    assert Forecast(0.9e6, 0.5e6, 2e6).holds(early)
    assert not Forecast(1.1e6, 0.5e6, 2e6).holds(early)  # none had been expected
    assert not Forecast(0.9e6, 0.87e6, 2e6).holds(early)


def test_too_few_texts_or_equal_ones_give_no_law() -> None:
    assert fit(texts(0.1, 3)) is None
    assert fit([replace(text, saving_nats=0.1) for text in texts(0.1, 9)]) is None
    assert forecast(texts(0.1, 4)[0], texts(0.1, 4)) is None


def test_a_text_that_offers_nothing_has_a_forecast_far_away() -> None:
    assert law(texts(0.1, 9)).forecast(TextOnsets("new", "", -1e-9, 1.0, 4, 256, 10**6)).tokens > 1e8
