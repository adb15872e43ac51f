"""Write the results of the experiments as text and tables for bench/README.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.markdown import NOT_MEASURED, table
from experiments.curves import NAMES
from pathsum.records.results import FORMED

HERE = Path(__file__).parent


def phase_change(found: Mapping[str, Any]) -> str:
    """Return a description of the comparison of recipes, from the rows of results.json."""
    races = {name.split(".")[1]: r for name, r in found.items() if name.startswith("phase_change_seconds.")}
    if not races:
        return NOT_MEASURED.format("python -m experiments.phase_change")
    compared = []
    for recipe, r in races.items():
        times, (low, high) = f"{r['ratio']} times our seconds", r["ratio_range"]
        result = f"takes {times} (over {r['seeds']} seeds {low} to {high})"
        if r["lower_bound"]:
            result = f"was stopped after {times}, when at least one of its {r['seeds']} seeds had no phase change"
        compared.append(f"{NAMES[recipe]} {result}")
    return (
        f"Compared with our recipe, {'; '.join(compared)}.\n\n"
        "![Prefix matching against tokens and seconds](../experiments/phase_change.png)\n\n"
        f"Thin lines: single seeds. Thick lines: mean over seeds, with its 95 % interval. Dotted line: {FORMED}."
    )


def onset_law() -> str:
    """Return a description of the fitted exponents of batch size and context."""
    if not (path := HERE / "onset_law.json").exists():
        return NOT_MEASURED.format("make onset-law")
    found = json.loads(path.read_text())
    if "law" not in found:
        return "Too few models have a phase change for a fit."
    product, batch, context = (_exponent(found[key]) for key in ("batch_times_context", "batch", "context"))
    verdict = (
        "The law tokens ∝ √(batch · context) did not hold: batch and context do not share an exponent."
        if not shared_exponent(found)
        else "Batch and context may share an exponent, as the law tokens ∝ √(batch · context) demands."
    )
    return (
        f"{verdict} Tokens at the phase change grow with batch to the power of {batch}, and with context to the power "
        f"of {context}. With one exponent for batch times context it is {product}, where the law predicts "
        f"{found['law']} (95 % intervals, {found['points']} models; without a phase change: {found['unchanged']})."
    )


def shared_exponent(found: Mapping[str, Any]) -> bool:
    """Return whether the 95 % intervals of the exponents of batch and context overlap."""
    batch, context = found["batch"], found["context"]
    return bool(batch["low"] <= context["high"] and context["low"] <= batch["high"])


def _exponent(fit: Mapping[str, float]) -> str:
    return f"{fit['exponent']:.2f} ({fit['low']:.2f} to {fit['high']:.2f})"


def dilution() -> str:
    """Return the table of models on mixtures of texts, with the fitted law."""
    if not (path := HERE / "dilution.json").exists():
        return NOT_MEASURED.format("python -m experiments.dilution --text ...")
    found = json.loads(path.read_text())
    kinds: dict[tuple[float, float], list[Mapping[str, Any]]] = {}
    for cell in found["cells"]:
        kinds.setdefault((cell["share"], cell["repetitive"]), []).append(cell)
    rows = [(_windows(*kind), cells[0]["saving"], _tokens(cells)) for kind, cells in kinds.items()]
    head = ("training windows", "saving by ideal induction (nats per token)", "tokens at the phase change, per model")
    if law := found.get("law"):
        return "\n\n".join(filter(None, (_verdict(found), table(head, rows), _prediction(law, found, kinds))))
    return f"Too few of these models have a phase change for a fit.\n\n{table(head, rows)}"


class Late(NamedTuple):
    """Counts of models on repetitive prose: those whose phase change came later than the law predicts, and all."""

    late: int
    beyond: int  # later than the 95 % interval of the prediction
    models: int


def late(found: Mapping[str, Any]) -> Late:
    """Count the late models among those on the most repetitive windows of prose, which are not part of the fit.

    A model without a phase change counts with its tokens seen.
    """
    counts = Late(0, 0, 0)
    for part, predicted in found.get("chosen", {}).items():
        cells = [c for c in found["cells"] if not c["share"] and c["repetitive"] == float(part)]
        tokens = [cell["tokens"] or cell["tokens_seen"] for cell in cells]
        counts = Late(
            counts.late + sum(t > predicted["tokens"] for t in tokens),
            counts.beyond + sum(t > predicted["tokens_high"] for t in tokens),
            counts.models + len(tokens),
        )
    return counts


def _verdict(found: Mapping[str, Any]) -> str:
    """Return whether the law of mixtures holds on the most repetitive windows of prose; "" without models on these.

    The law does not hold if more than half of these models are late.
    """
    counts = late(found)
    if not counts.models:
        return ""
    held = "did not hold" if 2 * counts.late > counts.models else "held"
    return (
        f"The law of mixtures {held} on repetitive prose: of {counts.models} models, {counts.late} had their phase "
        f"change later than predicted, {counts.beyond} of them later than the 95 % interval."
    )


def _prediction(law: Mapping[str, Any], found: Mapping[str, Any], kinds: Mapping[Any, list[Mapping[str, Any]]]) -> str:
    """State the fitted law, and compare it with models on windows that are not part of the fit."""
    mixed = [cell for cell in found["cells"] if cell["share"]]
    sentences = [
        f"Tokens at the phase change are proportional to the saving to the power of {law['exponent']} "
        f"({law['exponent_low']} to {law['exponent_high']}). For prose alone, with a saving of "
        f"{found['saving']['other']:.3f} nats per token, the law predicts {_interval(law)}; 95 % intervals, "
        f"{len(mixed)} models, of which {sum(cell['tokens'] is None for cell in mixed)} had no phase change and count "
        "with their tokens seen as a lower bound."
    ]
    if alone := [cell["tokens_seen"] for cell in kinds.get((0, 1), []) if cell["tokens"] is None]:
        sentences.append(f"Models on prose alone had no phase change within {min(alone) / 1e6:.1f} M tokens.")
    sentences += [
        f"The {float(part):.0%} of prose windows that repeat most: predicted {_interval(predicted)}, found "
        f"{_tokens(kinds[0, float(part)])}."
        for part, predicted in found.get("chosen", {}).items()
    ]
    return " ".join(sentences)


def _windows(share: float, part: float) -> str:
    if share:
        return "source code alone" if share == 1 else f"{share:.3g} source code, {1 - share:.3g} prose"
    return "prose alone" if part == 1 else f"prose alone, the {part:.0%} that repeat most"


def _tokens(cells: list[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{c['tokens'] / 1e6:.2f} M" if c["tokens"] else f"none within {c['tokens_seen'] / 1e6:.1f} M" for c in cells
    )


def _interval(law: Mapping[str, Any]) -> str:
    return f"{law['tokens'] / 1e6:.1f} M ({law['tokens_low'] / 1e6:.1f} M to {law['tokens_high'] / 1e6:.1f} M)"
