"""What moved between two metrics.json, as Markdown for a pull request."""

from __future__ import annotations

import math
import re
from typing import Any

from pathsum.claims.formatting import number, plural
from pathsum.claims.metrics import CALIBRATION_METRICS, CORPUS_METRICS
from pathsum.report.document import markdown_text
from pathsum.report.moves import IDENTITY, MEASURED, Metrics, Move, every_cell, is_number, moves, part

SHOWN = 12  # numbers


def compare(base: Metrics, now: Metrics, name: str) -> str:
    """What moved from ``base``, called ``name``, to ``now``."""
    told = [
        *_cells(base, now),
        *_corpus(base, now),
        *_claims(base, now),
        *_calibration(base, now),
        *_numbers(base, now),
        *_weights(base, now),
    ]
    return "\n".join([f"### What moved against {_named(name)}", "", *(told or ["Nothing moved."])]).rstrip()


# ---- what is said ---------------------------------------------------------------------------------------------------


def _cells(base: Metrics, now: Metrics) -> list[str]:
    told, both = _paired("cells", every_cell(base), every_cell(now))
    for name, a, b in both:
        changed = [key for key in IDENTITY if a.get(key) != b.get(key)]
        changed += [m for m in MEASURED if m in a and m in b and is_number(a[m]) != is_number(b[m])]
        told += [f"- {_named(name)} {_change(key, a.get(key), b.get(key))}" for key in changed]
    missing = now.get("missing_cells")
    if missing and missing != base.get("missing_cells"):
        told.append(f"- declared, but without records now: {_names(missing)}")
    return _titled("Cells", told)


def _corpus(base: Metrics, now: Metrics) -> list[str]:
    before, after = part(base, "corpus"), part(now, "corpus")
    told = [f"- {_change(k, before.get(k), after.get(k))}" for k in CORPUS_METRICS if before.get(k) != after.get(k)]
    return _titled("Corpus", told)


def _claims(base: Metrics, now: Metrics) -> list[str]:
    told, both = _paired("claims", part(base, "claims"), part(now, "claims"))
    for claim, a, b in both:
        if a["verdict"] != b["verdict"]:
            values = f"{_shown(a['value'])} → {_shown(b['value'])}"
            told.append(
                f"- {_named(claim)}: {markdown_text(a['verdict'])} → {markdown_text(b['verdict'])} "
                f"({values}; reproduced if {markdown_text(b['threshold'])})"
            )
        if a["threshold"] != b["threshold"]:
            told.append(
                f"- {_named(claim)} is held to another bar: {_shown(a['threshold'])} → {_shown(b['threshold'])}"
            )
    return _titled("Claims", told)


def _calibration(base: Metrics, now: Metrics) -> list[str]:
    told, both = _paired("detectors", part(base, "calibration"), part(now, "calibration"))
    for name, a, b in both:
        changes = [_change(k, a.get(k), b.get(k)) for k in CALIBRATION_METRICS if a.get(k) != b.get(k)]
        told += [f"- {_named(name)}: {', '.join(changes)}"] if changes else []
    return _titled("Detectors on synthetic corpora", told)


def _numbers(base: Metrics, now: Metrics) -> list[str]:
    found = moves(base, now)
    if not found:
        return []
    beyond = sum(m.spreads is not None and m.spreads > 1 for m in found)
    alone = sum(m.spread is None for m in found)
    note = f"{plural(len(found), 'number')} of models moved, {beyond} by more than one spread over seeds"
    note += f"; {alone} in models with one seed, which has no spread." if alone else "."
    most = f" The {SHOWN} that moved most:" if len(found) > SHOWN else ""
    head = [
        "| model | number | base | now | change | spread (seeds) | in spreads |",
        "| --- | --- " + "| ---: " * 5 + "|",
    ]
    return _titled("Numbers", [note + most, "", *head, *(_row(m) for m in found[:SHOWN])])


def _row(move: Move) -> str:
    spread = "one seed" if move.spread is None else f"{_shown(move.spread)} ({move.seeds})"
    spreads = "–" if move.spreads is None else "∞" if math.isinf(move.spreads) else number(move.spreads, 1)
    change = ("+" if move.now > move.base else "") + _shown(move.now - move.base)
    fields = (_named(move.cell), _named(move.metric), _shown(move.base), _shown(move.now), change, spread)
    return f"| {' | '.join((*fields, spreads))} |"


def _weights(base: Metrics, now: Metrics) -> list[str]:
    before, after = (part(part(m, "provenance"), "weights") for m in (base, now))
    both = before.keys() & after.keys()
    other = sum(before[name] != after[name] for name in both)
    return [f"Weights differ in {other} of {plural(len(both), 'model')}.", ""] if other else []


# ---- how ------------------------------------------------------------------------------------------------------------


def _titled(title: str, told: list[str]) -> list[str]:
    return [f"**{title}**", "", *told, ""] if told else []


def _paired(what: str, before: Metrics, after: Metrics) -> tuple[list[str], list[tuple[str, Any, Any]]]:
    """A line for what came and one for what went, and what is in both, by name."""
    pairs = (f"new {what}", after.keys() - before.keys()), (f"{what} that went", before.keys() - after.keys())
    told = [f"- {title}: {_names(sorted(names))}" for title, names in pairs if names]
    return told, [(name, before[name], after[name]) for name in sorted(before.keys() & after.keys())]


def _named(name: str) -> str:
    """A name as code; one that could end the code as plain text."""
    return f"`{name}`" if re.fullmatch(r"[\w./~^@ -]+", name) else markdown_text(name)


def _names(names: list[str]) -> str:
    return ", ".join(_named(n) for n in names)


def _change(what: str, before: Any, after: Any) -> str:
    return f"{_named(what)} {_shown(before)} → {_shown(after)}"


def _shown(value: Any) -> str:
    """Four digits that count, more for nothing."""
    if value is None:
        return "none"
    if not is_number(value):
        return markdown_text(str(value))
    if isinstance(value, int) or abs(value) >= 1e5:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")
