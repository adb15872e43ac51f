"""The tables that `make repro` and sweeps print: one line per model, with its results."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pathsum.claims.formatting import millions, number

WIDTHS = {"model": 30, "tokens": 9, "loss (nats)": 13, "prefix matching": 17, "phase change at": 17, "time left": 15}


class Progress:
    """The lines of the table, and an estimate of the time left from the share of the work done."""

    def __init__(self, cells: Mapping[str, Any], names: list[str]) -> None:
        self.begun, self.headed = time.monotonic(), False
        self.work = {name: _work(cells[name]) for name in names}
        self.done = 0.0

    def line(self, name: str, summary: Path, failed: bool) -> str:
        """Return the line of the model ``name``, and count its work as done. The first line has the heading above it.

        ``summary`` is the path of the model's summary.json. The line says "failed" if ``failed`` is true or this file
        cannot be read.
        """
        self.done += self.work[name]
        share = self.done / sum(self.work.values())
        left = (time.monotonic() - self.begun) * (1 - share) / share
        found = [] if failed else _findings(summary)
        entries = [name, *(found or ["failed", "", "", ""]), f"{left / 60:.0f} min" if share < 1 else "–"]
        heading, self.headed = "" if self.headed else row(WIDTHS) + "\n", True
        return heading + row(entries)


def sweep_table(jobs: Sequence[tuple[Sequence[str], Mapping[str, Any] | None]]) -> str:
    """Return the table of a sweep: for each job the overrides in which it differs from others, and its results. Without
    results, it says "failed"."""
    shared = set.intersection(*(set(overrides) for overrides, _ in jobs)) if len(jobs) > 1 else set()
    named = [" ".join(o for o in overrides if o not in shared) for overrides, _ in jobs]
    columns = ("tokens", "loss (nats)", "prefix matching", "phase change at")
    widths = [max(map(len, ("overrides", *named))), *(WIDTHS[column] for column in columns)]
    lines = [("overrides", *columns)]
    for name, (_, found) in zip(named, jobs, strict=True):
        lines.append((name, *(findings(found) if found else ("failed", "", "", ""))))
    return "\n".join(row(line, widths) for line in lines)


def row(entries: Iterable[str], widths: Collection[int] = WIDTHS.values()) -> str:
    """Return a line of the table: the model's name left-aligned, all other entries right-aligned."""
    name, *numbers = zip(entries, widths, strict=True)
    return f"{name[0]:{name[1]}}" + "".join(f"{entry:>{width}}" for entry, width in numbers)


def _work(cell: Mapping[str, Any]) -> float:
    """Return the work of training and extracting a model, in arbitrary units: tokens · (1 + layers) plus a constant."""
    return float(cell["train"]["tokens"] * (1 + cell["model"]["n_layers"]) + 1e6)


def _findings(summary: Path) -> list[str]:
    try:
        return findings(json.loads(summary.read_text()))
    except (OSError, ValueError):
        return []


def findings(found: Mapping[str, Any]) -> list[str]:
    """Return tokens, loss, prefix matching and onset of a model, as text."""
    onset = found["onset_tokens"]
    matching = found["prefix_matching"]
    return [
        millions(found["tokens_seen"]),
        number(found["val_loss_nats"], 3),
        "–" if matching is None else number(matching),
        "none" if onset is None else millions(onset),
    ]
