"""The section on whether the induction circuit, two heads and the edge between them, suffices for induction
(docs/framework.md §5.10).
"""

from __future__ import annotations

from pathsum.claims.formatting import head_label
from pathsum.claims.sufficiency import best_control, kept
from pathsum.page.document import MODEL, Column, Section, Table, Text
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import SufficiencyRow
from pathsum.report.theme import Figures, Theme

TITLE = "The induction circuit alone"


def section(results: Results, _: Figures) -> Section:
    """Show the share of induction that remains if everything except the circuit is resampled."""
    cells = [c for c in results.with_layers(2) if c.rows(SufficiencyRow)]
    if not cells:
        return Section(TITLE, ("No two-layer model of this sweep has an induction head after the first layer.",))
    method = (
        "A circuit that is necessary need not be sufficient. Here only the circuit is kept: the keys of the induction "
        "head read the previous-token head, and its queries and values read the token embedding. All else that it "
        "reads comes from other windows (for queries, from other windows than for keys), and so does all that other "
        "heads add to the logits. Position biases, the norm scale before the induction head and the direct path to the "
        "logits stay as they are. The controls keep the K-edge from another first-layer head, or no edge."
    )
    return Section(TITLE, (method,), (_table(cells),))


def _table(cells: list[Cell]) -> Table:
    return Table.of(
        [(c, r) for c in cells for r in (kept(c), best_control(c)) if r is not None],
        MODEL,
        Text("kept", lambda _, r: _edge(r)),
        Column("prefix matching left (share)", ("matching_share", "matching_low", "matching_high")),
        Column("second-copy gain left (share)", ("gain_share", "gain_low", "gain_high")),
        caption="Share of the whole model's prefix matching and second-copy gain (loss on the first copy minus loss on "
        "the second) that remains if only the induction head and its K-edge from the previous-token head are kept. "
        "Second row of a model: the control with the highest upper end of the interval of prefix matching. 95 % "
        "intervals over windows of repeated random tokens.",
        csv="sufficiency.csv",
    )


def _edge(r: SufficiencyRow) -> str:
    late = head_label(r.layer, r.head)
    edge = f"no edge, {late} (control)" if r.early_head is None else f"{head_label(0, r.early_head)} → {late} (K)"
    return edge + " (control)" * (r.kept == "another head")


THEME = Theme(TITLE, section, tables=("sufficiency",))
