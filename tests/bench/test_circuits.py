"""The benchmark of circuits runs at a small vocabulary, and its ratios compare successive measurements."""

from __future__ import annotations

import pytest

from bench import circuits


def test_what_is_measured_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round, with a model of a quarter of the width."""
    monkeypatch.setattr(circuits, "D_MODEL", 192)
    monkeypatch.setattr(circuits, "ROUNDS", 1)
    for work in (circuits.top_entries_of_a_head, circuits.eigenvalues_of_all_heads):
        found = work(1500)
        assert min(found.ours, found.theirs, found.ratio, found.peak_gib) > 0


def test_the_ratio_is_the_median_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The median of 12 / 2, 3 / 1 and 4 / 4 is 3. The ratio of the medians would be 4 / 2."""
    ours, theirs = iter([2.0, 1.0, 4.0]), iter([12.0, 3.0, 4.0])
    monkeypatch.setattr(circuits, "seconds", lambda work: next(ours))
    found = circuits.in_turn(lambda: None, lambda: next(theirs))
    assert (found.ours, found.theirs, found.ratio) == (2.0, 4.0, 3.0)
