"""Verdicts on several corpora: reports/corpora.csv with one row per corpus, and its summary reports/corpora.md."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from pathsum.claims import registry
from pathsum.claims.formatting import millions, number
from pathsum.claims.judging import ABSENT, NOT, PARTLY, REPRODUCED
from pathsum.core.storage import write_whole
from pathsum.page.document import MARKS
from pathsum.page.render import markdown_text
from pathsum.records.corpus import CorpusSummary
from pathsum.records.results import Results
from pathsum.records.roles import MATCHES
from pathsum.records.verdicts import ClaimResult

FILE = "corpora.csv"
Row = dict[str, str]
HEADINGS = {  # heading of each column of the first table
    "corpus": "corpus",
    "corpus_hash": "corpus hash",
    "train_tokens": "training tokens",
    "documents": "judged documents",
    "windows": "judged windows",
    "d_vocab": "vocabulary",
    "repeat_weight": "weight of repeats",
    "seeds": "seeds",
    "models": "models",
    "missing": "missing models",
    "prefix_matching": "prefix matching of each two-layer model",
    "onset_tokens": "onset of each (tokens seen)",
    "onsets": "two-layer models with an onset",
    REPRODUCED: "claims reproduced",
    PARTLY: "partly reproduced",
    NOT: "not reproduced",
    ABSENT: ABSENT,
}


def row(name: str, results: Results, claims: Sequence[ClaimResult]) -> Row:
    """Return the row of one corpus: its description, its models, and the verdict and median of each claim.

    ``name`` is CORPUS or CORPUS@PROFILE.
    """
    summaries = [c.summary for c in results.cells.values()]
    two = [c.summary for c in results.with_layers(2)]
    counts = {v: sum(c.verdict == v for c in claims) for v in (REPRODUCED, PARTLY, NOT, ABSENT)}
    about = {
        "corpus": name,
        "corpus_hash": results.corpus.corpus_hash[:12],
        "train_tokens": results.corpus.train_tokens,
        "documents": f"{results.corpus.judged_documents}{_pieces(results.corpus)}",
        "windows": results.corpus.judged_windows,
        "d_vocab": results.corpus.d_vocab,
        "repeat_weight": f"{max((s.repeat_weight for s in summaries), default=1):g}",
        "seeds": " ".join(map(str, sorted({s.seed for s in summaries}))),
        "models": len(summaries),
        "missing": " ".join(results.missing),
        "prefix_matching": " ".join(number(s.prefix_matching) for s in two),
        "onset_tokens": " ".join("none" if s.onset_tokens is None else str(s.onset_tokens) for s in two),
        "onsets": f"{sum(s.onset_tokens is not None for s in two)} of {len(two)}",
        **counts,
    }
    judged: dict[str, str] = {}
    for c in claims:
        passing = f"{len(c.values) - len(c.short)} of {len(c.values)}"
        judged |= {c.id: c.verdict, f"{c.id}_median": _exact(c.value), f"{c.id}_passing": passing}
    return {key: str(value) for key, value in (about | judged).items()}


def read_rows(path: Path) -> list[Row]:
    """Return the rows of corpora.csv at ``path``; none if there is no such file."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def on_other_text(rows: Sequence[Row], corpus: str) -> str:
    """State for each of ``rows`` but those of ``corpus`` in how many two-layer models induction has an onset. Empty
    without such rows."""
    others = [r for r in rows if r["corpus"].partition("@")[0] != corpus]
    found = ", ".join(f"{r['onsets']} on {r['corpus']}" for r in others)
    return f"On other text, two-layer models with an onset of induction: {found} (corpora.md)." if others else ""


def _pieces(corpus: CorpusSummary) -> str:
    """Say that what is counted as documents is pieces of documents, if the text was cut."""
    parts = corpus.train_documents + corpus.tuning_documents + corpus.verdict_documents
    return f" pieces ({corpus.source_documents} documents)" if parts > corpus.source_documents else ""


def write_rows(rows: Sequence[Row], folder: Path) -> None:
    """Add ``rows`` (at least one) to corpora.csv and write corpora.md. Older rows of the same corpora are replaced, and
    rows of other corpora are kept if they have the same claims."""
    path = folder / FILE
    found = {r["corpus"]: r for r in (*read_rows(path), *rows) if list(r) == list(rows[0])}
    sorted_rows = [found[corpus] for corpus in sorted(found)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted_rows)
    write_whole(path, text.getvalue().encode())
    write_whole(folder / "corpora.md", page(sorted_rows).encode())


def page(rows: Sequence[Row]) -> str:
    """Return corpora.md with two tables: one row per corpus, and one row per claim with a column per corpus."""
    about = [[_shown(key, r[key]) for key in HEADINGS] for r in rows]
    verdicts = [
        [c.claim, *(_verdict(r, c.id, c.digits) for r in rows), c.threshold] for c in registry.claims().values()
    ]
    return f"""<!-- Generated by make corpora; do not edit. -->
# The same models on several corpora

`make corpora` trains models of zero, one and two layers on each corpus, and judges every claim of the \
[report](README.md) on them. [CSV](corpora.csv)

Verdicts rest on the judged windows, which come from the judged documents: with few documents, intervals are wide. \
Claims about induction heads are judged on models with one (prefix matching of at least {MATCHES} at the end of \
training); if no model has one, the verdict is “{ABSENT}”. The weight of repeats is the largest weight in the training \
loss of tokens that complete a pair seen before in the window. CORPUS@PROFILE stands for training with this profile \
of conf/profile/ instead of the default. Claims about controls are not testable here, because `make corpora` trains no \
controls.

{_table(list(HEADINGS.values()), about)}

Verdict on each claim, median over models, and how many of the judged models pass, for each corpus.

{_table(["claim", *(r["corpus"] for r in rows), "reproduced if"], verdicts)}
"""


def _shown(key: str, value: str) -> str:
    if key == "onset_tokens":
        return ", ".join(n if n == "none" else millions(int(n)) for n in value.split()) or "–"
    return value.replace(" ", ", ") if key == "prefix_matching" else value or "–"


def _exact(value: float | int | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _verdict(row: Row, claim: str, digits: int) -> str:
    value = row[f"{claim}_median"]
    shown = f" {number(float(value), digits)} ({row[f'{claim}_passing']})" if value else ""
    return MARKS[row[claim]] + shown


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head, *body = ([markdown_text(x) for x in r] for r in (columns, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(columns), *body))
