"""Controls: models outside the grid in which induction must form, or must not form. The words are in controls.md."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as Canvas

from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.formatting import layers_label, millions
from pathsum.records.results import FORMED, Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, of_models, picture, row
from pathsum.report.figures.learning import led_caption, shade_led
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames

TITLE = "Controls"


def facts(t: Frames) -> dict[str, Any]:
    """Return the controls, each with its expected outcome and its verdict, and the kinds with an expectation."""
    cells = t.cells
    if cells.empty:
        return {}
    smeared = cells["smeared_keys"] & (cells["n_layers"] == 1)
    kind = np.select([cells["tokens_seen"] == 0, cells["shuffled"], smeared], ["untrained", "shuffled", "smeared"], "")
    matching, formed = cells["prefix_matching"].astype(float), kind == "smeared"
    unknown = (kind == "") | matching.isna()
    expected = np.select([unknown, formed], ["–", f"prefix matching ≥ {FORMED}"], f"prefix matching ≤ {NOT_FORMED}")
    holds = np.where(formed, matching >= FORMED, matching <= NOT_FORMED)
    verdict = np.select([unknown, holds], ["–", "as expected"], "not as expected")
    return {"cells": cells.assign(expected=expected, verdict=verdict), "kinds": set(kind) - {""}}


def outcomes(found: dict[str, Any]) -> Table:
    cells = found["cells"]
    shown = {
        "control": cells.index,
        "layers": cells["n_layers"],
        "expected": cells["expected"],
        "prefix matching": cells["prefix_matching"],
        "previous token": cells["previous_token"],
        "in-context loss drop (nats)": cells["in_context_loss_drop_nats"],
        "tokens": cells["tokens_seen"].map(millions),
        "verdict": cells["verdict"],
    }
    caption = "Expected prefix matching (–: no value is expected), and scores of the best heads at the end of training."
    texts = ("control", "expected", "verdict")
    return told.table(pd.DataFrame(shown), caption, {"prefix matching": 3}, texts=texts, csv="controls.csv")


def controls(results: Results) -> Figure | None:
    """Draw the best prefix matching against tokens seen, for the controls and for the grid."""
    t = Frames({**results.cells, **results.controls})
    log = t.log.assign(tokens_millions=t.log["tokens_seen"] / 1e6, n_layers=t.log["cell"].map(t.cells["n_layers"]))
    columns = ["cell", "n_layers", "tokens_millions", "prefix_matching"]
    data = log.assign(prefix_matching=log["matching"])[columns].dropna()
    if not data["cell"].isin(list(results.controls)).any():
        return None

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        colours = dict(zip(results.controls, sns.color_palette("colorblind", len(results.controls)), strict=True))
        dashes = dict(zip(colours, itertools.cycle(("-", "--", ":")), strict=False))
        for name in dict.fromkeys(data["cell"]):
            part = data[data["cell"] == name]
            x, y = part["tokens_millions"], part["prefix_matching"]
            if name in colours:
                label = f"{name.replace('_', ' ')} ({layers_label(int(part['n_layers'].iloc[0]))})"
                style = {"color": colours[name], "ls": dashes[name], "lw": 2.4, "marker": "o" * (len(part) == 1)}
                drawn = ax.plot(x, y, label=label, **style)
            else:
                drawn = ax.plot(x, y, color=symbols.FAINT, lw=0.9, alpha=0.5)
            of_models(drawn, name, "both")
        shade_led(ax, results)
        ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=symbols.PREFIX_MATCHING)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2, handlelength=2, frameon=False)

    caption = f"Thick lines: controls; thin lines: the models of the grid.{led_caption(results)}"
    return picture("controls", "Controls", caption, data, (5.6, 4.8), paint)


section = told.from_results(TITLE, "controls", lambda results: facts(Frames(results.controls)), outcomes=outcomes)
THEME = Theme(TITLE, section, figures=(controls,), sources={"controls": ("log", "summary")}, tables=("controls",))
