"""The experiments' results as text and tables for bench/README.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.curves import NAMES
from pathsum.records.results import FORMED

HERE = Path(__file__).parent
NOT_MEASURED = "Not measured yet: `{}`."


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Markdown; the first two columns to the left, the others to the right."""
    line = ["---" if i < 2 else "---:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (head, line, *rows))


def phase_change(found: Mapping[str, Any]) -> str:
    if not (races := {k: v for k, v in found.items() if k.startswith("phase_change_seconds.")}):
        return NOT_MEASURED.format("python -m experiments.phase_change")
    said = []
    for name, r in races.items():
        who, times = NAMES[name.split(".")[1]], f"{r['ratio']} times our seconds"
        low, high = r["ratio_range"]
        said.append(
            f"{who} was stopped after {times}, when at least one of its {r['seeds']} seeds had not changed"
            if r["lower_bound"]
            else f"{who} takes {times} (over {r['seeds']} seeds {low} to {high})"
        )
    figure = "![Prefix matching against tokens and seconds](../experiments/phase_change.png)"
    lines = f"Thin: a seed; thick: their mean, with its 95 % interval; dotted: {FORMED}."
    return f"Beside ours, {'; '.join(said)}.\n\n{figure}\n\n{lines}"


def onset_law() -> str:
    if not (path := HERE / "onset_law.json").exists():
        return NOT_MEASURED.format("make onset-law")
    found = json.loads(path.read_text())
    if "law" not in found:
        return "Too few cells have changed for a fit."
    fits = [(key.replace("_", " "), found[key]) for key in ("batch_times_context", "batch", "context")]
    said = ", ".join(f"{name} {f['exponent']} ({f['low']} to {f['high']})" for name, f in fits)
    return (
        f"Tokens at the phase change grow with an exponent of {said}; 95 % intervals, {found['points']} models, "
        f"{found['unchanged']} more have not changed. The law: {found['law']} of batch times context."
    )


def dilution() -> str:
    if not (path := HERE / "dilution.json").exists():
        return NOT_MEASURED.format("python -m experiments.dilution --text ...")
    found = json.loads(path.read_text())
    kinds = {(c["share"], c["repetitive"]): c["saving"] for c in found["cells"]}
    rows = [
        (_of_windows(share, part), saving, ", ".join(map(_tokens, _cells(found, share, part))))
        for (share, part), saving in kinds.items()
    ]
    head = ("windows", "induction can save, nats per token", "tokens at the change, per model")
    said = table(head, rows)
    if not (law := found.get("law")):
        return said + "\n\nToo few of them have changed for a fit."
    mixed = [c for c in found["cells"] if c["share"]]
    bounds = sum(c["tokens"] is None for c in mixed)
    alone = [c["tokens_seen"] for c in _cells(found, 0, 1) if c["tokens"] is None]
    exponent = f"{law['exponent']} ({law['exponent_low']} to {law['exponent_high']})"
    said += (
        f"\n\nTokens go with the saving to the power of {exponent}; on the other text alone, which leaves "
        f"{found['saving']['other']:.3f} nats per token to be saved, that makes {_interval(law)}; 95 % intervals, "
        f"{len(mixed)} models, of which {bounds} had not changed and count with the tokens they had seen as a lower "
        "bound."
    )
    if alone:
        said += f" That text alone, in no fit, had not changed by {min(alone) / 1e6:.1f} M."
    late, beyond, models = 0, 0, 0
    for part, predicted in found.get("chosen", {}).items():
        cells = _cells(found, 0, float(part))
        tokens = [c["tokens"] or c["tokens_seen"] for c in cells]
        late, models = late + sum(t > predicted["tokens"] for t in tokens), models + len(tokens)
        beyond += sum(t > predicted["tokens_high"] for t in tokens)
        said += (
            f" The {float(part):.0%} of its windows that repeat most: predicted {_interval(predicted)}, found "
            f"{', '.join(map(_tokens, cells))}."
        )
    if models:
        said += f" Models later than predicted: {late} of {models}, beyond the interval {beyond}."
    return said


def _cells(found: Mapping[str, Any], share: float, part: float) -> list[Mapping[str, Any]]:
    return [c for c in found["cells"] if (c["share"], c["repetitive"]) == (share, part)]


def _of_windows(share: float, part: float) -> str:
    if share:
        return f"{share:.3g} source code"
    return "prose alone" if part == 1 else f"prose alone, the {part:.0%} that repeat most"


def _tokens(cell: Mapping[str, Any]) -> str:
    return f"{cell['tokens'] / 1e6:.2f} M" if cell["tokens"] else f"none within {cell['tokens_seen'] / 1e6:.1f} M"


def _interval(law: Mapping[str, Any]) -> str:
    return f"{law['tokens'] / 1e6:.1f} M ({law['tokens_low'] / 1e6:.1f} M to {law['tokens_high'] / 1e6:.1f} M)"
