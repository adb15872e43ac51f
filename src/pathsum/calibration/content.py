"""The detector of keys that hold the previous token, by content."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.detectors import Unit, copies, some_head
from pathsum.calibration.world import PlantedModel
from pathsum.extraction import content
from pathsum.records.content import ContentScoreRow

PREFERS_NATS = 1.0  # the smallest preference for the token after a match whose parts are compared


def keys_of_previous_token(planted: PlantedModel) -> Iterator[Unit]:
    """Expect some head of the second layer of two, where text repeats itself: its scores must compare the current token
    with the token before the key. No other rule asks that of a head."""
    if planted.world.config.model.n_layers != 2 or not planted.world.rules:
        return
    heads = range(planted.world.config.model.n_heads)
    rows = content.score_rows(planted.trained, {(1, h): 0.0 for h in heads})  # the sums' errors are not needed
    found = [compares_with_previous([row for row in rows if row.head == h]) for h in heads]
    yield from some_head(copies(planted, 1), found)


def compares_with_previous(rows: list[ContentScoreRow]) -> bool:
    """Tell whether at least half of a preference of ``PREFERS_NATS`` or more comes from the query's own token and the
    token before the key."""
    whole = sum(row.preference_nats for row in rows)
    part = sum(row.preference_nats for row in rows if (row.query, row.key) == ("0", "1"))
    return whole >= PREFERS_NATS and part >= 0.5 * whole


DETECTORS = {"keys_of_previous_token": keys_of_previous_token}
