"""The detector of keys that hold the previous token, by the content of attention scores (docs/framework.md §2.5)."""

from __future__ import annotations

from collections.abc import Iterator

from pathsum.calibration.detectors import Unit, copies, some_head
from pathsum.calibration.synthetic import SyntheticModel
from pathsum.extraction import content
from pathsum.records.content import ContentScoreRow

PREFERS_NATS = 1.0  # smallest preference for the token after a match whose parts are compared


def keys_of_previous_token(model: SyntheticModel) -> Iterator[Unit]:
    """Judge whether a head's scores compare the current token at the query with the previous token at the key.

    Models of two layers whose text has rules are tested. Some head of the second layer must compare these tokens if the
    text contains copies. No other rule requires such a head.
    """
    if model.text.config.model.n_layers != 2 or not model.text.rules:
        return
    heads = range(model.text.config.model.n_heads)
    rows = content.score_rows(model.trained, {(1, h): 0.0 for h in heads})  # their exactness errors are not needed
    found = [compares_with_previous([row for row in rows if row.head == h]) for h in heads]
    yield from some_head(copies(model, 1), found)


def compares_with_previous(rows: list[ContentScoreRow]) -> bool:
    """Return whether at least half of the preference comes from the current token at the query and the previous token
    at the key.

    The preference of all pairs must be at least ``PREFERS_NATS`` (docs/framework.md §2.4, §2.5).
    """
    whole = sum(row.preference_nats for row in rows)
    part = sum(row.preference_nats for row in rows if (row.query, row.key) == ("0", "1"))
    return whole >= PREFERS_NATS and part >= 0.5 * whole


DETECTORS = {"keys_of_previous_token": keys_of_previous_token}
