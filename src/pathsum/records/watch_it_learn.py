"""Attention patterns on a few passages, at every checkpoint."""

from pathsum.records.registry import record


@record(
    "passages",
    "passages of the patterns",
    "repeated random tokens and held-out text",
    "extraction/watch_it_learn.py",
    printed=False,
)
class PassageRow:
    """A passage on which patterns are shown. ``PatternRow.passage`` is the number of its row, from 0."""

    kind: str  # description of the passage
    tokens: str  # printable, joined by U+241F; the first is BOS


@record("patterns", "attention on passages", "A; A ‖W_OV x‖ by row", "circuits/value_weighted.py", printed=False)
class PatternRow:
    """The attention pattern of a head on one passage at one checkpoint."""

    passage: int
    layer: int
    head: int
    tokens_seen: int
    weighted: bool  # whether the pattern is value-weighted (docs/framework.md §3.14); the last checkpoint only
    attention: bytes  # one byte per entry, attention (0..1) times 255: row by row, keys 0..i of query i
