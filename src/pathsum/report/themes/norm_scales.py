"""The section on the loss reduction by paths at frozen norm scales and at their own scale (docs/framework.md §2.7)."""

from __future__ import annotations

import pandas as pd

from pathsum.claims.formatting import number, plural, span
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.norm_scales import NormScaleRow
from pathsum.records.results import Cell, Results
from pathsum.report.theme import Figures, Theme

TITLE = "Frozen norm scales and own scales"


def section(results: Results, _: Figures) -> Section:
    """Compare the loss reduction by paths at frozen norm scales and at their own scale, for models with a norm."""
    cells = [c for c in results.cells.values() if c.rows(NormScaleRow)]
    if not cells:
        return Section(TITLE, ("No model of this sweep has heads and a norm.",))
    single = [r for c in cells for r in c.rows(NormScaleRow) if r.order == 1]
    more = sum(r.difference_low > 0 for r in single)
    less = sum(r.difference_high < 0 for r in single)
    text = (
        "The path expansion is exact if norm scales are frozen. Each path is then divided by the norm of the whole "
        "residual stream, which makes a single path small. At its own scale, a path is divided by the norm of the sum "
        f"of the direct path, its single-head paths and itself. Of {plural(len(single), 'single head')}, {more} reduce "
        f"the loss more at their own scale and {less} reduce it less (95 % interval of the difference above or below "
        f"0); the difference is {span([r.difference_nats for r in single])} nats per token (range over heads). "
        "Spearman's rank correlation of the two reductions over the heads of a model is "
        f"{span(_correlations(cells))} (range over models; for a model of two heads, it can only be −1 or 1)."
    )
    return Section(TITLE, (text,), (_table(cells),))


def _correlations(cells: list[Cell]) -> list[float]:
    """Return Spearman's rank correlation of the two loss reductions for each model whose heads differ in both."""
    found = []
    for cell in cells:
        heads = [r for r in cell.rows(NormScaleRow) if r.order == 1]
        frozen, own = (pd.Series([getattr(r, name) for r in heads]).rank() for name in ("frozen_nats", "own_nats"))
        if frozen.nunique() > 1 and own.nunique() > 1:
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
        Column(
            "random directions, frozen; own (nats)",
            lambda _, r: f"{number(r.frozen_control_nats)}; {number(r.own_control_nats)}",
        ),
        caption="Fall of the held-out loss (nats per token, every eighth position) when a path is added to the shorter "
        "paths through its heads (for one head the direct path, for two the direct path and both single-head paths), "
        "with attention patterns fixed: at frozen norm scales, at the path's own scale, and the difference (own − "
        "frozen). Rows: for each model, the single head and the pair of heads that reduce the loss most at frozen "
        "scales. Last column: the control, in which what the path writes is randomly rotated. For models with many "
        "pairs of heads, only single heads are measured. 95 % intervals.",
        csv="norm_scales.csv",
    )


def _most(cell: Cell) -> list[NormScaleRow]:
    orders = sorted({r.order for r in cell.rows(NormScaleRow)})
    return [max((r for r in cell.rows(NormScaleRow) if r.order == n), key=lambda r: r.frozen_nats) for n in orders]


THEME = Theme(TITLE, section, few_windows=True, tables=("norm_scales",))
