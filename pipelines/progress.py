"""The tables that `make repro` and sweeps print: one line per model, with its results."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pathsum.claims.formatting import millions, number

WIDTHS = {"model": 22, "tokens": 9, "loss (nats)": 13, "prefix matching": 17, "phase change at": 17}


def row(entries: Iterable[str], widths: Collection[int] = WIDTHS.values()) -> str:
    """Return a line of the table: the model's name left-aligned, all other entries right-aligned."""
    name, *numbers = zip(entries, widths, strict=True)
    return f"{name[0]:{name[1]}}" + "".join(f"{entry:>{width}}" for entry, width in numbers)


HEADING = row(WIDTHS)


def row_of(summary: Path) -> str:
    """Return the line of the model with this summary.json."""
    found = json.loads(summary.read_text())
    return row([found["cell"], *findings(found)])


def sweep_table(jobs: Sequence[tuple[Sequence[str], Mapping[str, Any] | None]]) -> str:
    """Return the table of a sweep: for each job the overrides in which it differs from others, and its results."""
    shared = set.intersection(*(set(overrides) for overrides, _ in jobs)) if len(jobs) > 1 else set()
    named = [" ".join(o for o in overrides if o not in shared) for overrides, _ in jobs]
    columns = ("tokens", "loss (nats)", "prefix matching", "phase change at")
    widths = [max(map(len, ("overrides", *named))), *(WIDTHS[column] for column in columns)]
    lines = [("overrides", *columns)]
    for name, (_, found) in zip(named, jobs, strict=True):
        lines.append((name, *(findings(found) if found else ("failed", "", "", ""))))
    return "\n".join(row(line, widths) for line in lines)


def findings(found: Mapping[str, Any]) -> list[str]:
    """Return tokens, loss, prefix matching and onset of a model, as text."""
    onset, matching = found["onset_tokens"], found["prefix_matching"]
    return [
        millions(found["tokens_seen"]),
        number(found["val_loss_nats"], 3),
        "–" if matching is None else number(matching),
        "none" if onset is None else millions(onset),
    ]
