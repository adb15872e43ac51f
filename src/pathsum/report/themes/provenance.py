"""The section on the provenance of the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pathsum.page.document import Section, Table, Text
from pathsum.records.results import Results
from pathsum.report.theme import Figures, Theme

TITLE = "Provenance"


def section(results: Results, _: Figures) -> Section:
    """Show the command, the machine, the libraries, and the hashes of the corpus and of all weights."""
    table = Table.of(
        _flat(results.provenance),
        Text("what", lambda name, _: name),
        Text("value", lambda _, value: value, kind="token"),
        caption="Command, machine, libraries, and hashes of the corpus and of the weights of every model.",
    )
    text = (
        "The command make repro computes this report again; dvc repro runs only the stages whose inputs changed. Every "
        "experiment behind the recipe, including those that failed, is in docs/log/README.md of the repository."
    )
    return Section(TITLE, (text,), (table,))


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for key in sorted(values):
        value = values[key]
        if isinstance(value, Mapping):
            flat += _flat(value, f"{prefix}{key} ")
        else:
            flat.append((f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, default=str)))
    return flat


THEME = Theme(TITLE, section)
