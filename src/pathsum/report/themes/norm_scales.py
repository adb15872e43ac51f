"""The effect of paths on the loss at frozen norm scales and at their own scale."""

from __future__ import annotations

import pandas as pd

from pathsum.claims.formatting import number, span
from pathsum.records.norm_scales import NormScaleRow
from pathsum.records.results import Cell, Results
from pathsum.report.document import MODEL, Column, Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "What frozen norm scales hide"


def section(results: Results, _: Figures) -> Section:
    """Compare the loss reduction of each path at both scales, where the model has a norm."""
    cells = [c for c in results.cells.values() if c.rows(NormScaleRow)]
    if not cells:
        return Section(TITLE, ("No model of this sweep has heads and a norm.",))
    single = [r for c in cells for r in c.rows(NormScaleRow) if r.order == 1]
    more = sum(r.difference_low > 0 for r in single)
    less = sum(r.difference_high < 0 for r in single)
    text = (
        "The path expansion is exact with norm scales frozen, and the norms then divide each path by the size of the "
        "whole residual stream. At its own scale, a path is read as if the residual stream held only this path, its "
        f"heads' single paths and the direct path. Of {len(single)} single heads, {more} reduce the loss more at their "
        f"own scale and {less} less (95 % intervals); the difference is {span([r.difference_nats for r in single])} "
        "nats per token (range over heads). Spearman's rank correlation of the two reductions over the heads of a "
        f"model is {span(_correlations(cells))} (range over models)."
    )
    return Section(TITLE, (text,), (_table(cells),))


def _correlations(cells: list[Cell]) -> list[float]:
    """Return Spearman's correlation over the single heads of each model that has several."""
    found = []
    for cell in cells:
        heads = [r for r in cell.rows(NormScaleRow) if r.order == 1]
        frozen, own = (pd.Series([getattr(r, name) for r in heads]).rank() for name in ("frozen_nats", "own_nats"))
        if len(heads) > 1:
            found.append(float(frozen.corr(own)))
    return found


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in _most(c)],
        MODEL,
        Text("path", "path"),
        Column("scales frozen (nats)", ("frozen_nats", "frozen_low", "frozen_high")),
        Column("own scale (nats)", ("own_nats", "own_low", "own_high")),
        Column("difference (nats)", ("difference_nats", "difference_low", "difference_high")),
        Column("random directions", lambda _, r: f"{number(r.frozen_control_nats)}; {number(r.own_control_nats)}"),
        caption="A path's loss reduction depends on the scale at which norms read it. Fall of the held-out loss when "
        "the path joins the direct path and its own heads' single paths, attention patterns fixed: the path of largest "
        "reduction of each order in each model. Last: the control, with as much written in random directions (frozen; "
        "own scale). 95 % intervals.",
        csv="norm_scales.csv",
    )


def _most(cell: Cell) -> list[NormScaleRow]:
    orders = sorted({r.order for r in cell.rows(NormScaleRow)})
    return [max((r for r in cell.rows(NormScaleRow) if r.order == n), key=lambda r: r.frozen_nats) for n in orders]


THEME = Theme(TITLE, section, tables=("norm_scales",))
