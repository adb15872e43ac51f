"""Which numbers of two metrics.json are not the same, and how far they moved against the spread over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pathsum.claims.metrics import CELL_METRICS

Metrics = Mapping[str, Any]
IDENTITY = ("n_layers", "n_heads", "seed", "tokens_seen")  # what a model is, not how it came out
MEASURED = tuple(m for m in CELL_METRICS if m not in IDENTITY)
PROMISED = ("cells", "claims", "corpus")
AS_EVER = 1e-6  # of the number itself: what another machine's rounding moves, and less


@dataclass(frozen=True)
class Move:
    """A number of one model that is not what it was."""

    cell: str
    metric: str
    base: float
    now: float
    spread: float | None  # standard deviation over seeds, in the base; None with one seed
    seeds: int

    @property
    def spreads(self) -> float | None:
        """How many spreads; None with one seed."""
        if self.spread is None:
            return None
        return abs(self.now - self.base) / self.spread if self.spread > 0 else math.inf


def check(found: Any, where: str) -> Metrics:
    """``found`` if it is what reports/metrics.json holds; ValueError names what is not there."""
    tables = found if isinstance(found, Mapping) else {}
    absent = [key for key in PROMISED if not isinstance(tables.get(key), Mapping)]
    cells = [*part(tables, "cells").items(), *part(tables, "controls").items()] if not absent else []
    claims = [*part(tables, "claims").items()] if not absent else []
    for rows, fields in ((cells, IDENTITY), (claims, ("value", "threshold", "verdict"))):
        absent += [f"{name}.{f}" for name, row in rows for f in fields if not isinstance(row, Mapping) or f not in row]
    if absent:
        raise ValueError(
            f"{where}: expected the metrics.json of a report, got one without {', '.join(absent[:5])}; give a revision "
            "that has reports/metrics.json, or the path of such a file"
        )
    return tables


def moves(base: Metrics, now: Metrics) -> list[Move]:
    """Every number of a model in both that is not what it was, the most moved against its spread first."""
    before, after = every_cell(base), every_cell(now)
    found = []
    for cell in before.keys() & after.keys():
        for metric in MEASURED:
            a: Any = before[cell].get(metric)
            b: Any = after[cell].get(metric)
            if is_number(a) and is_number(b) and not math.isclose(a, b, rel_tol=AS_EVER, abs_tol=1e-10):
                values = _over_seeds(before, cell, metric)
                spread = statistics.stdev(values) if len(values) > 1 else None
                found.append(Move(cell, metric, a, b, spread, len(values)))
    return sorted(found, key=_order)


def _order(move: Move) -> tuple[bool, bool, float, float, str, str]:
    """Those with a spread first; of the others, and where it is nought, the largest share of the number itself."""
    spreads, share = move.spreads, abs(move.now - move.base) / max(abs(move.base), abs(move.now))
    finite = spreads is not None and math.isfinite(spreads)
    return not finite, spreads is None, -(spreads or 0.0) if finite else 0.0, -share, move.cell, move.metric


def _over_seeds(cells: Mapping[str, Metrics], name: str, metric: str) -> list[float]:
    """The values of ``metric`` in the models that differ from ``name`` in the seed only."""
    kin = [c for n, c in cells.items() if _but_for_seed(n, c) == _but_for_seed(name, cells[name])]
    return [float(c[metric]) for c in kin if is_number(c.get(metric))]


def _but_for_seed(name: str, cell: Metrics) -> tuple[Any, ...]:
    return name.removesuffix(f"S{cell['seed']}"), *(cell.get(key) for key in IDENTITY if key != "seed")


def part(values: Metrics, key: str) -> Metrics:
    found = values.get(key)
    return found if isinstance(found, Mapping) else {}


def every_cell(values: Metrics) -> dict[str, Metrics]:
    """The grid's models and the controls."""
    return {**part(values, "cells"), **part(values, "controls")}


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
