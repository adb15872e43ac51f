"""The rows of reports/corpora.csv, one per text."""

import csv
from pathlib import Path

from pathsum.records.onsets import TextOnsets

FILE = "corpora.csv"
Row = dict[str, str]


def read_onsets(path: Path) -> list[TextOnsets]:
    """Return the onsets of every row of corpora.csv at ``path``; none if there is no such file."""
    return [
        TextOnsets(
            text=r["corpus"],
            corpus_hash=r["corpus_hash"],
            saving_nats=float(r["induction_saving_nats"]),
            repeat_weight=float(r["repeat_weight"]),
            batch=int(r["batch"]),
            n_ctx=int(r["n_ctx"]),
            tokens=int(r["tokens"]),
            onset_tokens=tuple(None if n == "none" else int(n) for n in r["onset_tokens"].split()),
        )
        for r in read_rows(path)
        if "tokens" in r  # rows before 2026-11-30 have no onset to compare
    ]


def read_rows(path: Path) -> list[Row]:
    """Return the rows of corpora.csv at ``path``; none if there is no such file."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []
