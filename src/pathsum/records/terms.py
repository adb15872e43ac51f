"""Worth of each order of paths."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record


@record("terms", "worth of each order of paths", "fall of the loss as orders are added", "circuits/importance.py")
@dataclass(frozen=True)
class TermRow:
    """The worth of paths on held-out windows, patterns and norm scales frozen there: of all heads, of a layer's or of
    one. Intervals: 95 % bootstrap over documents."""

    order: int  # heads on each path
    layer: int | None  # None: of all layers
    head: int | None  # None: of all heads
    paths: int
    added_nats: float  # fall of the loss when they join all paths of lower orders; the direct path joins log d_vocab
    added_low: float
    added_high: float
    removed_nats: float  # rise of the loss when they alone are taken away
    removed_low: float
    removed_high: float
    own_scale_nats: float | None  # as added_nats, norms taking the scale of these orders alone; None but for orders
    own_scale_low: float | None
    own_scale_high: float | None
    windows: int
