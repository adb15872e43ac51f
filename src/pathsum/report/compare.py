"""Comparison of two metrics.json files, as Markdown for a pull request.

The change of a metric is given in units of its spread: its standard deviation over seeds in the older file.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from pathsum.claims.formatting import number, plural
from pathsum.claims.metrics import CALIBRATION_METRICS, CELL_METRICS, CORPUS_METRICS
from pathsum.report.page.render import markdown_text

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


def moves(base: Metrics, now: Metrics) -> pd.DataFrame:
    """Return the changed metrics of models in both files, with their spread (standard deviation over seeds in ``base``;
    missing with one seed) and the change in units of it, largest first. Those of spread 0, then those without a spread,
    come last, by relative change."""
    before = _measured(base)
    by_seed = before.groupby(["but_for_seed", "metric"])["base"]
    before["seeds"] = by_seed.transform("size")
    before["spread"] = by_seed.transform(lambda v: statistics.stdev(v) if len(v) > 1 else math.nan).astype(float)
    both = before.merge(_measured(now).rename(columns={"base": "now"})[["cell", "metric", "now"]])
    a, b = both["base"].astype(float), both["now"].astype(float)
    change, largest = (a - b).abs(), a.abs().combine(b.abs(), max)
    both = both.assign(spreads=change / both["spread"], share=change / largest)
    both = both[change > (ROUNDING * largest).clip(1e-10)].copy()
    both["finite"] = both["spreads"].where(both["spreads"] < math.inf)
    both["exact"] = both["spreads"] == math.inf
    order = {"finite": False, "exact": False, "share": False, "cell": True, "metric": True}
    return both.sort_values([*order], ascending=[*order.values()], na_position="last", ignore_index=True)


def _measured(metrics: Metrics) -> pd.DataFrame:
    """Return a row for each number of each model; ``but_for_seed`` is what it has in common with other seeds."""
    rows = [
        (name, str((name.removesuffix(f"S{cell['seed']}"), *(cell[key] for key in IDENTITY if key != "seed"))), metric,
         cell[metric])
        for name, cell in _models(metrics).items()
        for metric in MEASURED
        if is_number(cell.get(metric))
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["cell", "but_for_seed", "metric", "base"], dtype=object)


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
    (verdict, value, threshold), (verdict_now, value_now, now) = (
        [_shown(claim[key]) for key in ("verdict", "value", "threshold")] for claim in (a, b)
    )
    judged = f"- {_named(name)}: {verdict} → {verdict_now} ({value} → {value_now}; reproduced if {now})"
    bound = f"- {_named(name)}: threshold {threshold} → {now}"
    return [judged] * (a["verdict"] != b["verdict"]) + [bound] * (a["threshold"] != b["threshold"])


def _detector(name: str, a: Metrics, b: Metrics) -> list[str]:
    changes = _changes(a, b, CALIBRATION_METRICS)
    return [f"- {_named(name)}: {', '.join(changes)}"] if changes else []


def _numbers(found: pd.DataFrame) -> list[str]:
    if found.empty:
        return []
    beyond, alone = (found["spreads"] > 1).sum(), found["spread"].isna().sum()
    note = f"{plural(len(found), 'metric')} of models changed, {beyond} by more than one standard deviation over seeds"
    note += f"; {alone} belong to models with one seed, which have no standard deviation." if alone else "."
    note += f" The {SHOWN} largest changes:" if len(found) > SHOWN else ""
    heading = "| model | metric | base | now | change | standard deviation (seeds) | change / standard deviation |"
    return [note, "", heading, "| --- | --- " + "| ---: " * 5 + "|", *(_row(m) for _, m in found[:SHOWN].iterrows())]


def _row(move: pd.Series) -> str:
    change = ("+" if move["now"] > move["base"] else "") + _shown(move["now"] - move["base"])
    alone = math.isnan(move["spread"])
    spread = "one seed" if alone else f"{_shown(move['spread'])} ({move['seeds']})"
    spreads = "–" if alone else "∞" if math.isinf(move["spreads"]) else number(move["spreads"], 1)
    names, values = map(_named, (move["cell"], move["metric"])), map(_shown, (move["base"], move["now"]))
    return f"| {' | '.join((*names, *values, change, spread, spreads))} |"


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
