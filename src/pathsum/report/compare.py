"""Comparison of two metrics.json files, as Markdown for a pull request.

The change of a metric is given in units of its spread: its standard deviation over seeds in the older file.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pathsum.claims.formatting import number, plural
from pathsum.claims.metrics import CALIBRATION_METRICS, CELL_METRICS, CORPUS_METRICS
from pathsum.page.render import markdown_text

Metrics = Mapping[str, Any]
SHOWN = 12  # largest number of changed metrics that are listed
IDENTITY = ("n_layers", "n_heads", "seed", "tokens_seen")  # fields that describe a model and are not measured
MEASURED = tuple(m for m in CELL_METRICS if m not in IDENTITY)
PROMISED = {
    "cells": IDENTITY,
    "controls": IDENTITY,
    "claims": ("value", "threshold", "verdict"),
    "corpus": (),
    "calibration": ("recall",),
}
OPTIONAL = ("controls", "calibration")  # absent if there are none
ROUNDING = 1e-6  # relative difference between machines that is not counted as a change


@dataclass(frozen=True)
class Move:
    """The change of one metric of one model."""

    cell: str  # name of the model
    metric: str
    base: float
    now: float
    spread: float | None  # standard deviation over seeds in the base; None with one seed
    seeds: int  # number of seeds in the base

    @property
    def spreads(self) -> float | None:
        """Return the absolute change in units of the spread; infinite if the spread is 0, None with one seed."""
        if self.spread is None:
            return None
        return abs(self.now - self.base) / self.spread if self.spread > 0 else math.inf


def check(found: Any, where: str) -> Metrics:
    """Return ``found`` if it has the structure of reports/metrics.json."""
    tables = found if isinstance(found, Mapping) else {}
    absent = [key for key in PROMISED if not isinstance(tables.get(key, {} if key in OPTIONAL else None), Mapping)]
    for key, fields in PROMISED.items():
        rows = _part(tables, key).items() if fields else ()
        absent += [f"{name}.{f}" for name, row in rows for f in fields if not isinstance(row, Mapping) or f not in row]
    if not absent:
        absent = [f"{n}.verdict as text" for n, row in tables["claims"].items() if not isinstance(row["verdict"], str)]
    if absent:
        raise ValueError(
            f"{where}: expected the metrics.json of a report, got one without {', '.join(absent[:5])}; give a revision "
            "that has reports/metrics.json, or the path of such a file"
        )
    return tables


def compare(base: Metrics, now: Metrics, name: str) -> str:
    """Return the changes from ``base`` to ``now`` as Markdown. ``name`` is printed as the name of the base."""
    sections = {
        "Models": [*_both("models", _models(base), _models(now), _model), *_missing(base, now)],
        "Corpus": [f"- {c}" for c in _changes(_part(base, "corpus"), _part(now, "corpus"), CORPUS_METRICS)],
        "Claims": _both("claims", _part(base, "claims"), _part(now, "claims"), _claim),
        "Detectors on synthetic corpora": _both(
            "detectors", _part(base, "calibration"), _part(now, "calibration"), _detector
        ),
        "Metrics": _numbers(moves(base, now)),
    }
    text = [line for title, lines in sections.items() if lines for line in (f"**{title}**", "", *lines, "")]
    before, after = (_part(_part(m, "provenance"), "weights") for m in (base, now))
    both = before.keys() & after.keys()
    if other := sum(before[name] != after[name] for name in both):
        text.append(f"Weights differ in {other} of {plural(len(both), 'model')}.")
    return "\n".join([f"### Changes since {_named(name)}", "", *(text or ["No changes."])]).rstrip()


def moves(base: Metrics, now: Metrics) -> list[Move]:
    """Return the changed metrics of models in both files, sorted by change / spread, largest first (``_order``)."""
    before, after = _models(base), _models(now)
    found = []
    for cell in before.keys() & after.keys():
        for metric in MEASURED:
            a: Any = before[cell].get(metric)
            b: Any = after[cell].get(metric)
            if is_number(a) and is_number(b) and not math.isclose(a, b, rel_tol=ROUNDING, abs_tol=1e-10):
                seeds = [c for n, c in before.items() if _but_for_seed(n, c) == _but_for_seed(cell, before[cell])]
                values = [float(c[metric]) for c in seeds if is_number(c.get(metric))]
                spread = statistics.stdev(values) if len(values) > 1 else None
                found.append(Move(cell, metric, a, b, spread, len(values)))
    return sorted(found, key=_order)


def _order(move: Move) -> tuple[bool, bool, float, float, str, str]:
    """Return the sort key of a change: first those with a positive spread, by change / spread; then those of spread 0;
    then those without a spread. The last two groups are sorted by relative change. In each, the largest comes first."""
    spreads, share = move.spreads, abs(move.now - move.base) / max(abs(move.base), abs(move.now))
    finite = spreads is not None and math.isfinite(spreads)
    return not finite, spreads is None, -(spreads or 0.0) if finite else 0.0, -share, move.cell, move.metric


def _but_for_seed(name: str, cell: Metrics) -> tuple[Any, ...]:
    return name.removesuffix(f"S{cell['seed']}"), *(cell.get(key) for key in IDENTITY if key != "seed")


# ---- lines ----------------------------------------------------------------------------------------------------------


def _both(what: str, before: Metrics, after: Metrics, describe: Callable[[str, Any, Any], list[str]]) -> list[str]:
    """Return one line with the new names, one with the removed names, and the changes of each name that is in both."""
    sets = {f"new {what}": after.keys() - before.keys(), f"removed {what}": before.keys() - after.keys()}
    lines = [f"- {title}: {', '.join(map(_named, sorted(names)))}" for title, names in sets.items() if names]
    both = sorted(before.keys() & after.keys())
    return lines + [line for name in both for line in describe(name, before[name], after[name])]


def _model(name: str, a: Metrics, b: Metrics) -> list[str]:
    measured = [m for m in MEASURED if m in a and m in b and is_number(a[m]) != is_number(b[m])]
    return [f"- {_named(name)} {change}" for change in _changes(a, b, (*IDENTITY, *measured))]


def _missing(base: Metrics, now: Metrics) -> list[str]:
    missing = now.get("missing_cells")
    if not missing or missing == base.get("missing_cells"):
        return []
    return [f"- declared models without records now: {', '.join(map(_named, missing))}"]


def _claim(name: str, a: Metrics, b: Metrics) -> list[str]:
    lines = []
    if a["verdict"] != b["verdict"]:
        lines.append(
            f"- {_named(name)}: {_shown(a['verdict'])} → {_shown(b['verdict'])} ({_shown(a['value'])} → "
            f"{_shown(b['value'])}; reproduced if {_shown(b['threshold'])})"
        )
    if a["threshold"] != b["threshold"]:
        lines.append(f"- {_named(name)}: threshold {_shown(a['threshold'])} → {_shown(b['threshold'])}")
    return lines


def _detector(name: str, a: Metrics, b: Metrics) -> list[str]:
    changes = _changes(a, b, CALIBRATION_METRICS)
    return [f"- {_named(name)}: {', '.join(changes)}"] if changes else []


def _numbers(found: list[Move]) -> list[str]:
    if not found:
        return []
    beyond = sum(m.spreads is not None and m.spreads > 1 for m in found)
    alone = sum(m.spread is None for m in found)
    note = f"{plural(len(found), 'metric')} of models changed, {beyond} by more than one standard deviation over seeds"
    note += f"; {alone} belong to models with one seed, which have no standard deviation." if alone else "."
    note += f" The {SHOWN} largest changes:" if len(found) > SHOWN else ""
    heading = "| model | metric | base | now | change | standard deviation (seeds) | change / standard deviation |"
    return [note, "", heading, "| --- | --- " + "| ---: " * 5 + "|", *map(_row, found[:SHOWN])]


def _row(move: Move) -> str:
    spread = "one seed" if move.spread is None else f"{_shown(move.spread)} ({move.seeds})"
    spreads = "–" if move.spreads is None else "∞" if math.isinf(move.spreads) else number(move.spreads, 1)
    change = ("+" if move.now > move.base else "") + _shown(move.now - move.base)
    fields = (_named(move.cell), _named(move.metric), _shown(move.base), _shown(move.now), change, spread)
    return f"| {' | '.join((*fields, spreads))} |"


# ---- values ---------------------------------------------------------------------------------------------------------


def _part(values: Metrics, key: str) -> Metrics:
    found = values.get(key)
    return found if isinstance(found, Mapping) else {}


def _models(values: Metrics) -> dict[str, Metrics]:
    """Return the models of the grid and the controls, by name."""
    return {**_part(values, "cells"), **_part(values, "controls")}


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a finite number that fits a float. Booleans are not numbers."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def _named(name: str) -> str:
    """Format a name as code, or as escaped text if its characters could end the code."""
    return f"`{name}`" if re.fullmatch(r"[\w./~^@ -]+", name) else markdown_text(name)


def _changes(a: Metrics, b: Metrics, keys: tuple[str, ...]) -> list[str]:
    return [f"{_named(k)} {_shown(a.get(k))} → {_shown(b.get(k))}" for k in keys if a.get(k) != b.get(k)]


def _shown(value: Any) -> str:
    """Format a value: integers in full, other numbers with four significant digits (from 100,000 on rounded to
    integers), None as "none", and text escaped."""
    if value is None:
        return "none"
    if not is_number(value):
        return markdown_text(str(value))
    whole = isinstance(value, int) or abs(value) >= 1e5
    return (f"{value:,.0f}" if whole else f"{value:.4g}").replace("-", "−")
