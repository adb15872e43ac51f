"""Circuits at a small vocabulary: what is measured runs, and a ratio is that of neighbours."""

from __future__ import annotations

import pytest

from bench import circuits


def test_what_is_measured_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a model a quarter as wide, one round."""
    monkeypatch.setattr(circuits, "D_MODEL", 192)
    monkeypatch.setattr(circuits, "ROUNDS", 1)
    for work in (circuits.top_entries_of_a_head, circuits.eigenvalues_of_all_heads):
        found = work(1500)
        assert min(found.ours, found.theirs, found.ratio, found.peak_gib) > 0


def test_the_ratio_is_the_median_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the ratio of the medians, 4 / 2: of 12 / 2, 3 / 1 and 4 / 4 it is 3."""
    ours, theirs = iter([2.0, 1.0, 4.0]), iter([12.0, 3.0, 4.0])
    monkeypatch.setattr(circuits, "seconds", lambda work: next(ours))
    found = circuits.in_turn(lambda: None, lambda: next(theirs))
    assert (found.ours, found.theirs, found.ratio) == (2.0, 4.0, 3.0)
