"""Growth exponents are fitted slopes, and what is measured is measured beyond the start."""

from __future__ import annotations

from dataclasses import replace

from bench.growth import CELL, FLOOR, exponent, extraction, zipf


def test_an_exponent_is_the_slope_with_its_interval() -> None:
    assert exponent((16, 32, 64), [0.1 * n**1.5 for n in (16, 32, 64)]) == "1.50 (1.50 to 1.50)"
    noisy = exponent((1, 2, 4, 8), (1.0, 2.5, 3.5, 9.0))
    slope, low, high = (float(part.strip("()")) for part in noisy.replace("to", "").split())
    assert low < 1 < high
    assert abs(slope - 1.03) < 0.05


def test_zipf_draws_no_beginning_of_sequence() -> None:
    ids = zipf(1000, 50)
    assert ids.min() >= 1
    assert ids.max() < 50


def test_what_extraction_takes_is_what_it_takes_beyond_the_smallest_model() -> None:
    seconds, megabytes = extraction(replace(CELL, n_ctx=256))
    assert seconds > 0
    assert 40 < megabytes < 600  # 336 to 413 in six runs; the whole process takes 730
    assert extraction(FLOOR)[1] < 10
