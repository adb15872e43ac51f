"""The provenance of the report: the command, the machine, the libraries, and hashes of the corpus and all weights."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures, Theme

TITLE = "Provenance"


def section(results: Results, _: Figures) -> Section:
    shown = pd.DataFrame(_flat(results.provenance), columns=["what", "value"])
    table = told.table(shown, "Command, machine, libraries and hashes.", kinds={"value": "token"}, texts=["what"])
    return told.section(TITLE, "provenance", {}, {"table": table})


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [row for key in sorted(value) for row in _flat(value[key], f"{name} {key}".strip())]
    return [(name, value if isinstance(value, str) else json.dumps(value, default=str))]


THEME = Theme(TITLE, section)
