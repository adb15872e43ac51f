"""The table of records, to which each figure and table links."""

from __future__ import annotations

from pathsum.records.registry import origins
from pathsum.records.results import Results
from pathsum.report.document import ORIGINS, Entry, Section, Table, Text, anchor
from pathsum.report.theme import Figures, Theme

PAPERS = (
    "AMF is A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), "
    "transformer-circuits.pub/2021/framework; ICL is In-context Learning and Induction Heads (Olsson et al. 2022), "
    "transformer-circuits.pub/2022/in-context-learning-and-induction-heads."
)


def section(_: Results, __: Figures) -> Section:
    """Show one row per record."""
    text = (
        "Next to every figure and table are links to the records it was drawn from, listed below. CELL stands for the "
        "name of a model, which is also its folder under circuits/. Code paths are relative to src/pathsum/. The "
        "command dvc repro -fs STAGE computes the records of one stage again; make report writes this page again. The "
        "rules for judging claims are in src/pathsum/claims/."
    )
    table = Table.of(
        origins().values(),
        Text("record", lambda o: Entry(o.record, anchor=anchor(o.record))),
        Text("what it holds", "holds"),
        Text("equation", "equation"),
        Text("code", lambda o: Entry(o.code, link=f"../src/pathsum/{o.code}")),
        Text("where it lies", "stored"),
        Text("stage", "stage"),
        caption="Every record.",
        fold=False,
    )
    return Section(ORIGINS, (text, PAPERS), (table,))


THEME = Theme(ORIGINS, section)
