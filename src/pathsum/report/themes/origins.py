"""The section with the table of records, to which every figure and table links."""

from __future__ import annotations

from pathsum.page.document import ORIGINS, Entry, Section, Table, Text, anchor
from pathsum.records.registry import origins
from pathsum.records.results import Results
from pathsum.report.theme import Figures, Theme


def section(_: Results, __: Figures) -> Section:
    """Show the content, the equation, the code and the file of every record."""
    text = (
        "Figures and tables link to their records, which this table lists. CELL stands for the name of a model, "
        "which is also its folder under circuits/. Code paths are relative to src/pathsum/. The command dvc repro -fs "
        "STAGE computes the records of one stage again; make report writes this page again. The rules by which claims "
        "are judged are in src/pathsum/claims/."
    )
    table = Table.of(
        origins().values(),
        Text("record", lambda o: Entry(o.record, anchor=anchor(o.record))),
        Text("content", "holds"),
        Text("equation", "equation"),
        Text("code", lambda o: Entry(o.code, link=f"../src/pathsum/{o.code}")),
        Text("file", "stored"),
        Text("stage", "stage"),
        caption="All records of the suite.",
        fold=False,
    )
    return Section(ORIGINS, (text,), (table,))


THEME = Theme(ORIGINS, section)
