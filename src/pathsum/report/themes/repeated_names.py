"""Names that repeat within a window, with and without the key edges of induction (docs/framework.md §5.16)."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pathsum.claims.formatting import interval, number
from pathsum.records.ablations import CONTRASTED
from pathsum.records.repeated_names import ALL, CONTROL, NAME, RepeatedNameRow
from pathsum.records.results import Results
from pathsum.records.tokens import JOINER
from pathsum.report import told
from pathsum.report.figures.base import deep_in_detail
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Entry, Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames

TITLE = "Names that repeat"
LABELS = {ALL: "all repeated names", CONTROL: "control: new pairs at their first occurrences"}


def facts(results: Results) -> dict[str, Any]:
    rows, cell = Frames(results.cells).repeated_names, deep_in_detail(results)
    if rows.empty or cell is None:
        return {}
    of = {method: rows[rows["method"] == method] for method in CONTRASTED}
    costs = {
        method: {kind: some.loc[some["kind"] == kind, "cost_nats"] for kind in LABELS} for method, some in of.items()
    }
    return {"costs": costs, "models": rows["cell"].nunique(), "results": {cell.name: results}}


def table(shown: Mapping[str, Results], of: str, **more: Any) -> Table:
    """Return the table of names of the two-layer model in detail of each of ``shown``, by its column ``of``."""
    rows = [
        {
            of: key,
            "name": Entry(visible(r.name.replace(JOINER, "|")), "token") if r.name else LABELS[r.kind],
            "ablation": r.method,
            "occurrences": r.occurrences,
            "loss at the first (nats)": r.first_nats,
            "at later ones": None if r.kind == CONTROL else r.loss_nats,
            "without the key edges": r.cut_nats,
            "cost (nats per token)": number(r.cost_nats) if r.name else interval(r.cost_nats, r.cost_low, r.cost_high),
        }
        for key, results in shown.items()
        if (cell := deep_in_detail(results))
        for r in sorted(cell.rows(RepeatedNameRow), key=lambda r: r.kind != NAME)
        if r.kind != NAME or r.method == CONTRASTED[0]
    ]
    caption = (
        f"By {of}: mean loss on the tokens past the first of names that repeat within a window, and the cost of "
        "cutting the key edges at later occurrences (95 % intervals over documents). | separates tokens. Single names: "
        "those of the largest total cost."
    )
    return told.table(pd.DataFrame(rows), caption, texts=[of, "name", "ablation"], **more)


section = told.from_results(
    TITLE, "repeated_names", facts, names=lambda found: table(found["results"], "model", csv="repeated_names.csv")
)
THEME = Theme(TITLE, section, tables=("repeated_names",))
