"""Repetition is the bigram loss of repeated pairs, and the most repetitive windows come in its order."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import pathsum.data.counting as counting
from experiments.selected import most_repetitive, repetition
from pathsum.data.windows import Windows

D_VOCAB = 13


def windows(count: int = 41, n_ctx: int = 23) -> Windows:
    """Return windows that each use a few words of their own, so that some repeat more than others."""
    rng = np.random.default_rng(5)
    rows = [rng.integers(1, rng.integers(3, D_VOCAB), n_ctx) for _ in range(count)]
    return Windows(np.concatenate(rows).astype(np.uint16), n_ctx)


def by_hand(text: Windows) -> list[float]:
    """Compute the definition, pair by pair."""
    rows = [r.tolist() for r in text.batch(text.spread(len(text)))]
    pairs = Counter(pair for row in rows for pair in pairwise(row))
    sources = Counter(a for row in rows for a in row[:-1])
    found = []
    for row in rows:
        seen: set[tuple[int, int]] = set()
        nats = 0.0
        for a, b in pairwise(row):
            nats += -math.log(pairs[a, b] / sources[a]) if (a, b) in seen else 0.0
            seen.add((a, b))
        found.append(nats / text.n_ctx)
    return found


def test_repetition_is_what_repeated_pairs_cost() -> None:
    assert repetition(windows(), D_VOCAB) == pytest.approx(by_hand(windows()), abs=1e-12)


def test_repetition_does_not_depend_on_how_the_text_is_cut_for_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = repetition(windows(), D_VOCAB)
    monkeypatch.setattr(counting, "CHUNK", 100)  # four windows at a time, and counted without a table
    assert repetition(windows(), D_VOCAB) == pytest.approx(whole, abs=1e-12)


def test_known_windows() -> None:
    """1 2 1 2 1 2 repeats 1→2 twice and 2→1 once.

    1→2 has 3 of the 4 places after 1, and 2→1 has 2 of the 4 after 2, which also precedes 3 and 4. The other windows
    repeat nothing.
    """
    text = Windows(np.array([[1, 2, 1, 2, 1, 2], [2, 3, 1, 4, 5, 6], [7, 2, 4, 8, 9, 10]], dtype=np.uint16).ravel(), 6)
    expected = [(2 * math.log(4 / 3) + math.log(4 / 2)) / 6, 0, 0]
    assert repetition(text, D_VOCAB) == pytest.approx(expected, abs=1e-12)


def test_the_most_repetitive_windows_come_in_order() -> None:
    text = windows()
    chosen = most_repetitive(text, 0.1, D_VOCAB)
    scores, rows = by_hand(text), text.batch(text.spread(len(text)))
    expected = sorted(range(len(text)), key=lambda i: -scores[i])[:5]  # 0.1 of 41, rounded up
    assert chosen.batch(chosen.spread(len(chosen))).equal(rows[expected])
    assert len(most_repetitive(text, 1e-9, D_VOCAB)) == 1
    assert len(most_repetitive(text, 1.0, D_VOCAB)) == len(text)
