"""The table of records, to which every figure and table links."""

import pandas as pd

from pathsum.records.registry import origins
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import ORIGINS, Entry, Section, anchor
from pathsum.report.theme import Figures, Theme


def section(_: Results, __: Figures) -> Section:
    rows = [
        (Entry(o.record, anchor=anchor(o.record)), o.holds, o.equation, Entry(o.code, link=f"../src/pathsum/{o.code}"),
         o.stored, o.stage)
        for o in origins().values()
    ]  # fmt: skip
    columns = ["record", "content", "equation", "code", "file", "stage"]
    shown, caption = pd.DataFrame(rows, columns=columns), "All records of the suite."
    table = told.table(shown, caption, texts=columns, fold=False)
    return told.section(ORIGINS, "origins", {}, {"records": table})


THEME = Theme(ORIGINS, section)
