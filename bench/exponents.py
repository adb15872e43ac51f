"""Show how cost grows with size: a table of exponents, and a figure of all measurements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.ticker import LogLocator, NullLocator

from bench.markdown import NOT_MEASURED, table

HERE = Path(__file__).parent
THINGS = {"step": "training step", "extract": "extraction", "tokenize": "tokenizing"}
OF = {"seconds": "time", "peak_mb": "peak memory"}
WIDEST = 1.0  # width of the 95 % interval beyond which an exponent says nothing


def growth() -> str:
    """Return the table of exponents in Markdown, and draw growth.png. Exponents with a wide interval are only named."""
    if not (path := HERE / "growth.json").exists():
        return NOT_MEASURED.format("python -m bench.growth")
    fits = json.loads(path.read_text())
    rows = [
        (
            *_subject(f),
            f"{f['exponent']} ({f['low']} to {f['high']})",
            "" if f["counted"] is None else f["counted"],
            "faster than any power" if f["limit"] is None else f["limit"],
        )
        for f in fits
        if not _wide(f)
    ]
    head = ("what is measured", "size", "exponent (95 % interval)", "by count, at the same sizes", "in the limit")
    draw_growth()
    figure = "![Time and memory against each size](growth.png)"
    return "\n\n".join(filter(None, (table(head, rows), dropped([f for f in fits if _wide(f)]), figure)))


def dropped(fits: list[Mapping[str, Any]]) -> str:
    """Return a note on which exponents (``fits``) are left out, and why; "" if there are none."""
    if not fits:
        return ""
    names = "; ".join(" in ".join(_subject(f)) for f in fits)
    return (
        f"Left out, because their 95 % interval is wider than {WIDEST:g}: {names}. At so few "
        "and so small sizes, noise and terms of lower order hide the power."
    )


def _wide(fit: Mapping[str, Any]) -> bool:
    return bool(fit["high"] - fit["low"] > WIDEST)


def _subject(fit: Mapping[str, Any]) -> tuple[str, str]:
    return f"{THINGS[fit['what']]}, {OF[fit['of']]}", fit["axis"]


def draw_growth() -> None:
    """Draw time and memory against each size to growth.png, all relative to the smallest size."""
    measured = pd.read_csv(HERE / "growth.csv")
    numbers = ["size", *OF]
    smallest = measured.groupby(["what", "axis"])[numbers].transform("first")
    measured[numbers] = measured[numbers] / smallest.where(smallest > 0)
    measured["what"] = measured["what"].map(THINGS)
    lines = measured.rename(columns=OF).melt(["what", "axis", "size"], OF.values(), "of", "times that of the smallest")
    sns.set_theme(style="whitegrid")
    grid = sns.relplot(
        lines.dropna(), x="size", y="times that of the smallest", hue="what", style="of", col="axis", col_wrap=3,
        kind="line", markers=["o", "o"], height=3.2, aspect=1.25, facet_kws={"sharex": False, "sharey": False},
    )  # fmt: skip
    for axis, ax in grid.axes_dict.items():
        ax.set(xscale="log", yscale="log", title="", xlabel=f"{axis} / smallest")
        for side in (ax.xaxis, ax.yaxis):
            side.set_major_locator(LogLocator(2))
            side.set_major_formatter("{x:g}")
            side.set_minor_locator(NullLocator())
    grid.savefig(HERE / "growth.png", dpi=110, metadata={"Software": None})
