"""Numbers of every size and sign are printed as a reader expects them."""

from __future__ import annotations

import pytest

from pathsum.claims.formatting import number


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (None, "–"),
        (0, "0.00"),
        (-0.5, "−0.50"),
        (0.003, "0.003"),
        (-4e-15, "−4e−15"),
        (99_999, "99999.00"),
        (300_000, "0.3 M"),
        (-300_000, "−0.3 M"),
    ],
)
def test_numbers(value: float | None, printed: str) -> None:
    assert number(value) == printed
