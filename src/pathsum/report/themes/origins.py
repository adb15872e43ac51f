"""The table that each figure's and table's records lead to."""

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
    """One row per record."""
    text = (
        "Beside every figure and table stand the records that it was drawn from: they lead here. CELL stands for the "
        "name of a model, its folder in circuits/; code lies in src/pathsum/; dvc repro -fs STAGE makes a stage's "
        "records again, make report this page. How each claim is judged stands in src/pathsum/claims/."
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
