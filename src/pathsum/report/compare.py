"""Comparison of two metrics.json files, as Markdown for a pull request.

The change of a metric is given in units of its spread: its standard deviation over seeds in the older file.
"""

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from pathsum.claims.formatting import number, plural
from pathsum.claims.metrics import CALIBRATION_METRICS, CELL_METRICS, CORPUS_METRICS
from pathsum.report.page.render import markdown_text

Metrics = Mapping[str, Any]
SHOWN = 12  # largest number of changed metrics that are listed
IDENTITY = ("n_layers", "n_heads", "seed", "tokens_seen")  # fields that describe a model and are not measured
MEASURED = tuple(m for m in CELL_METRICS if m not in IDENTITY)
ROUNDING = 1e-6  # relative difference between machines that is not counted as a change


def check(found: Any, where: str) -> Metrics:
    """Return ``found`` if it has the structure of reports/metrics.json."""
    parts = {"controls": {}, "calibration": {}, **found} if isinstance(found, dict) else {}
    rows = [parts.get(key) for key in ("cells", "controls", "claims", "calibration")]
    if not (
        isinstance(parts.get("corpus"), dict)
        and all(isinstance(part, dict) and all(isinstance(row, dict) for row in part.values()) for part in rows)
        and all(isinstance(claim.get("verdict"), str) for claim in parts["claims"].values())
    ):
        raise ValueError(
            f"{where}: expected the metrics.json of a report, got another JSON value; give a revision that has "
            "reports/metrics.json, or the path of such a file"
        )
    return parts


def compare(base: Metrics, now: Metrics, name: str) -> str:
    """Return the changes from ``base`` to ``now`` as Markdown. ``name`` is printed as the name of the base."""
    missing = now.get("missing_cells") or []
    new = (
        missing
        and missing != base.get("missing_cells")
        and [f"- models without records now: {', '.join(map(_named, missing))}"]
    )
    sections = {
        "Models": [*_lines("models", _models(base), _models(now), CELL_METRICS), *(new or [])],
        "Corpus": _lines("corpora", {"corpus": base["corpus"]}, {"corpus": now["corpus"]}, CORPUS_METRICS),
        "Claims": _lines("claims", _claims(base), _claims(now), ("verdict", "value", "threshold")),
        "Detectors on synthetic corpora": _lines(
            "detectors", base["calibration"], now["calibration"], CALIBRATION_METRICS
        ),
        "Metrics": _numbers(moves(base, now)),
    }
    text = [line for title, lines in sections.items() if lines for line in (f"**{title}**", "", *lines, "")]
    before, after = (m.get("provenance", {}).get("weights", {}) for m in (base, now))
    both = before.keys() & after.keys()
    if other := sum(before[name] != after[name] for name in both):
        text.append(f"Weights differ in {other} of {plural(len(both), 'model')}.")
    return "\n".join([f"### Changes since {_named(name)}", "", *(text or ["No changes."])]).rstrip()


def moves(base: Metrics, now: Metrics) -> pd.DataFrame:
    """Return the changed metrics of models in both files, with their spread (standard deviation over seeds in ``base``;
    missing with one seed) and the change in units of it, largest first. Those of spread 0, then those without a spread,
    come last, by relative change."""
    before = _measured(base)
    by_seed = before.groupby(["but_for_seed", "metric"])["value"]
    before["seeds"] = by_seed.transform("size")
    before["spread"] = by_seed.transform(lambda v: statistics.stdev(v) if len(v) > 1 else math.nan)
    both = before.merge(_measured(now), on=["cell", "metric", "but_for_seed"], suffixes=("", "_now"))
    a, b = both["value"], both["value_now"]
    change, largest = (a - b).abs(), a.abs().combine(b.abs(), max)
    both = both.assign(spreads=change / both["spread"], share=change / largest)[
        change > (ROUNDING * largest).clip(1e-10)
    ]
    order = both["spreads"].replace(math.inf, -1.0)
    return both.assign(order=order).sort_values(
        ["order", "share", "cell", "metric"], ascending=[False, False, True, True], ignore_index=True
    )


def _measured(metrics: Metrics) -> pd.DataFrame:
    """Return a row for each number of each model; ``but_for_seed`` is its name without the seed."""
    rows = [
        (name, name.removesuffix(f"S{cell.get('seed')}"), metric, float(cell[metric]))
        for name, cell in _models(metrics).items()
        for metric in MEASURED
        if is_number(cell.get(metric))
    ]
    return pd.DataFrame(rows, columns=["cell", "but_for_seed", "metric", "value"])


def _lines(what: str, before: Metrics, after: Metrics, keys: Iterable[str]) -> list[str]:
    """Return one line with the new names, one with the removed names, and one with the changes of each name in both.
    Changes of measured values are in these lines only if a value appears or vanishes, or with a verdict."""
    sets = {f"new {what}": after.keys() - before.keys(), f"removed {what}": before.keys() - after.keys()}
    lines = [f"- {title}: {', '.join(map(_named, sorted(names)))}" for title, names in sets.items() if names]
    for name in sorted(before.keys() & after.keys()):
        pairs = {key: (before[name].get(key), after[name].get(key)) for key in keys}
        changed = {key: (a, b) for key, (a, b) in pairs.items() if a != b}
        changed = {k: ab for k, ab in changed.items() if k not in MEASURED or not all(map(is_number, ab))}
        if changed.keys() - {"value"}:
            told = ", ".join(f"{_named(key)} {_shown(a)} → {_shown(b)}" for key, (a, b) in changed.items())
            lines.append(f"- {_named(name)}: {told}")
    return lines


def _numbers(found: pd.DataFrame) -> list[str]:
    if found.empty:
        return []
    beyond, alone = (found["spreads"] > 1).sum(), found["spread"].isna().sum()
    note = f"{plural(len(found), 'metric')} of models changed, {beyond} by more than one standard deviation over seeds"
    note += f"; {alone} belong to models with one seed, which have no standard deviation." if alone else "."
    note += f" The {SHOWN} largest changes:" if len(found) > SHOWN else ""
    heading = "| model | metric | base | now | change | standard deviation (seeds) | change / standard deviation |"
    return [note, "", heading, "| --- | --- " + "| ---: " * 5 + "|", *map(_row, found[:SHOWN].itertuples())]


def _row(move: Any) -> str:
    change = move.value_now - move.value
    spread, spreads = f"{_shown(move.spread)} ({move.seeds})", number(move.spreads, 1) if move.spread else "∞"
    if math.isnan(move.spread):
        spread, spreads = "one seed", "–"
    values = [_shown(move.value), _shown(move.value_now), "+" * (change > 0) + _shown(change)]
    return f"| {' | '.join((_named(move.cell), _named(move.metric), *values, spread, spreads))} |"


def _models(values: Metrics) -> dict[str, Metrics]:
    """Return the models of the grid on all texts, and the controls, by name."""
    others = (found["cells"] for found in values.get("texts", {}).values())
    return {**values["cells"], **values["controls"], **{name: cell for cells in others for name, cell in cells.items()}}


def _claims(values: Metrics) -> dict[str, Metrics]:
    """Return the verdicts by claim; those on a further text have its name."""
    others = values.get("texts", {}).items()
    return {**values["claims"], **{f"{id} on {text}": v for text, found in others for id, v in found["claims"].items()}}


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a finite number. Booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _named(name: str) -> str:
    """Format a name as code, or as escaped text if its characters could end the code."""
    return f"`{name}`" if re.fullmatch(r"[\w./~^@ -]+", name) else markdown_text(name)


def _shown(value: Any) -> str:
    """Format a value: whole numbers in full, other numbers with four significant digits, and text escaped."""
    if not is_number(value):
        return "none" if value is None else markdown_text(str(value))
    whole = value == int(value) or abs(value) >= 1e5
    return (f"{value:,.0f}" if whole else f"{value:.4g}").replace("-", "−")
