"""The four sentences at the head of bench/README.md, made from stored measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.exponents import WIDEST
from bench.markdown import NOT_MEASURED
from bench.ratios import Results
from bench.shapes import DEFAULT, LARGER
from experiments.curves import NAMES
from experiments.summary import late, shared_exponent

RIVALS = {
    "compiled": "`torch.compile` of the same model without kernels by hand",
    "plain_loop": "a plain PyTorch loop of a simpler model",
    "transformerlens_float32": "TransformerLens with its default settings",
}


def findings(results: Results, growth: Path, onset_law: Path, dilution: Path) -> str:
    """Return one sentence each on speed, on the share of the peak, on the phase change, and on growth and laws."""
    return " ".join(
        (speed(results), peak(results), phase_change(results), laws(_read(growth), _read(onset_law), _read(dilution)))
    )


def speed(results: Results) -> str:
    """Return a sentence that compares our training step at the default batch with the others."""
    rows = {title: results.get(f"train_step.{DEFAULT.name}.{name}") for name, title in RIVALS.items()}
    compared = [f"{row['ratio']} times as fast as {title}" for title, row in rows.items() if row]
    if not compared:
        return NOT_MEASURED.format("python -m bench.train_step")
    *first, last = compared
    return f"A training step of the default model ({DEFAULT.title}) is {_listed(first, last)}."


def peak(results: Results) -> str:
    """Return a sentence on the share of the matrix-product peak that our step reaches, at two batch sizes."""
    rows = [results.get(f"train_step.{shape.name}.matmul_peak") for shape in (DEFAULT, LARGER)]
    if not rows[0] or not rows[1]:
        return NOT_MEASURED.format("python -m bench.train_step")
    a, b = rows
    return (
        f"It reaches {a['ratio']} of the peak of its matrix products, and {b['ratio']} at batch {LARGER.batch}; that "
        f"peak was {a['theirs']} and {b['theirs']} {a['unit']} on the day of the measurement."
    )


def phase_change(results: Results) -> str:
    """Return a sentence on the time to the phase change with our recipe and with others, and on how each was tuned."""
    found = {name.split(".")[1]: row for name, row in results.items() if name.startswith("phase_change_seconds.")}
    if not found:
        return NOT_MEASURED.format("python -m experiments.phase_change")
    ours = next(iter(found.values()))["ours"]
    tokens = next(row["ours"] for name, row in results.items() if name.startswith("phase_change_tokens."))
    *first, last = (
        f"{NAMES[name]} takes {'more than ' if row['lower_bound'] else ''}{row['ratio']} times as long"
        for name, row in found.items()
    )
    return (
        f"Our recipe reaches the phase change after {ours} s and {tokens / 1e6:.2f} million tokens; "
        f"{_listed(first, last)} (three learning rates were tried for each of these two, but more settings were tuned "
        "for ours)."
    )


def laws(growth: Any, onset: Any, dilution: Any) -> str:
    """Return a sentence on how the time of a training step grows, and on the laws that did not hold."""
    times = [f for f in growth or () if (f["what"], f["of"]) == ("step", "seconds") and f["high"] - f["low"] <= WIDEST]
    if not times:
        return NOT_MEASURED.format("python -m bench.growth")
    *first, last = (f"{f['axis']} to the power of {f['exponent']}" for f in times)
    grows = f"The time of a training step grows with {_listed(first, last)}"
    failed = []
    if onset and "law" in onset and not shared_exponent(onset):
        exponents = f"{onset['batch']['exponent']} and {onset['context']['exponent']}"
        failed.append(f"that tokens to the phase change have one exponent of batch size and context ({exponents})")
    if dilution and dilution.get("chosen") and (counts := late(dilution)).late:
        failed.append(
            f"that the saving by induction predicts them on prose ({counts.late} of {counts.models} models were late)"
        )
    if not failed:
        return f"{grows}."
    count = "two laws" if len(failed) == 2 else "one law"
    return f"{grows}; {count} did not hold: {' and '.join(failed)}."


def _listed(first: list[str], last: str) -> str:
    return f"{', '.join(first)} and {last}" if first else last


def _read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None
