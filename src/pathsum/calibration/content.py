"""The detector of heads whose keys contain the previous token, by the content of scores (docs/framework.md §2.5)."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.detectors import Unit, copies, some_head
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.extraction import content
from pathsum.records.paths import ContentScoreRow

PREFERS_NATS = 1.0  # a head is found only if its preference for the token after a match is at least this


def keys_of_previous_token(model: SyntheticModel) -> Iterator[Unit]:
    """Yield whether second-layer heads must compare the query's current token with the key's previous token, and
    whether they do."""
    if model.text.config.model.n_layers != 2 or not model.text.rules:
        return
    heads = range(model.text.config.model.n_heads)
    rows = content.score_rows(model.trained, {(1, h): 0.0 for h in heads})  # their exactness errors are not needed
    found = [compares_with_previous([row for row in rows if row.head == h]) for h in heads]
    yield from some_head(copies(model, 1), found)


def compares_with_previous(rows: list[ContentScoreRow]) -> bool:
    """Return whether at least half of a head's preference compares the query's current token with the key's previous
    token."""
    whole = sum(row.preference_nats for row in rows)
    part = sum(row.preference_nats for row in rows if (row.query, row.key) == ("0", "1"))
    return whole >= PREFERS_NATS and part >= 0.5 * whole


DETECTORS = {"keys_of_previous_token": keys_of_previous_token}
