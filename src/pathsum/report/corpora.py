"""Verdicts on several corpora: reports/corpora.csv with one row per corpus, and its summary reports/corpora.md."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pandas as pd

from pathsum.claims import registry
from pathsum.claims.corpora import FILE, Row, read_rows
from pathsum.claims.formatting import millions, number
from pathsum.claims.judging import ABSENT, NOT, PARTLY, REPRODUCED
from pathsum.core.storage import write_whole
from pathsum.records.onsets import TextOnsets
from pathsum.records.results import Results
from pathsum.records.roles import MATCHES
from pathsum.records.verdicts import ClaimResult
from pathsum.report.page.document import MARKS
from pathsum.report.page.render import markdown_text

HEADINGS = {  # heading of each column of the first table
    "corpus": "corpus",
    "corpus_hash": "corpus hash",
    "train_tokens": "training tokens",
    "documents": "judged documents",
    "windows": "judged windows",
    "d_vocab": "vocabulary",
    "induction_saving_nats": "what an ideal induction head could save (nats per token)",
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
    """Return the row of one corpus: its description, its models, and the verdict and median of each claim."""
    about, onsets = results.corpus, text_onsets(name, results)
    parts = about.train_documents + about.tuning_documents + about.verdict_documents
    pieces = f" pieces ({about.source_documents} documents)" if parts > about.source_documents else ""
    summaries, two = [c.summary for c in results.cells.values()], [c.summary for c in results.of_depth(2)]
    found = {
        "corpus": name,
        "corpus_hash": about.corpus_hash[:12],
        "train_tokens": about.train_tokens,
        "documents": f"{about.judged_documents}{pieces}",
        "windows": about.judged_windows,
        "d_vocab": about.d_vocab,
        "induction_saving_nats": f"{onsets.saving_nats:.4f}",
        "repeat_weight": f"{onsets.repeat_weight:g}",
        "batch": onsets.batch,
        "n_ctx": onsets.n_ctx,
        "tokens": onsets.tokens,
        "seeds": " ".join(map(str, sorted({s.seed for s in summaries}))),
        "models": len(summaries),
        "missing": " ".join(results.missing),
        "prefix_matching": " ".join(number(s.prefix_matching) for s in two),
        "onset_tokens": " ".join(str(tokens or "none") for tokens in onsets.onset_tokens),
        "onsets": f"{sum(s.onset_tokens is not None for s in two)} of {len(two)}",
        **{v: sum(c.verdict == v for c in claims) for v in (REPRODUCED, PARTLY, NOT, ABSENT)},
    }
    for c in claims:
        median = "" if c.value is None else f"{c.value:.6g}"
        passing = f"{len(c.values) - len(c.short)} of {len(c.values)}"
        found |= {c.id: c.verdict, f"{c.id}_median": median, f"{c.id}_passing": passing}
    return {key: str(value) for key, value in found.items()}


def text_onsets(name: str, results: Results) -> TextOnsets:
    """Return the onsets of the two-layer models on one text."""
    two, about = [cell.summary for cell in results.of_depth(2)], results.corpus
    return TextOnsets(
        text=name,
        corpus_hash=about.corpus_hash[:12],
        saving_nats=about.induction_saving_nats,
        repeat_weight=max((s.repeat_weight for s in two), default=1.0),
        batch=max((s.batch for s in two), default=0),
        n_ctx=about.n_ctx,
        tokens=min((s.tokens_seen for s in two), default=0),
        onset_tokens=tuple(s.onset_tokens for s in two),
    )


def write_rows(rows: Sequence[Row], folder: Path) -> list[str]:
    """Add ``rows`` (at least one) to corpora.csv and write corpora.md. Return the corpora whose earlier rows are left
    out, because they have other columns, as before a claim was added."""
    before = read_rows(folder / FILE)
    found = {r["corpus"]: r for r in (*before, *rows) if list(r) == list(rows[0])}
    kept = [found[corpus] for corpus in sorted(found)]
    write_whole(folder / FILE, pd.DataFrame(kept).to_csv(index=False, lineterminator="\n").encode())
    write_whole(folder / "corpora.md", page(kept).encode())
    return [r["corpus"] for r in before if r["corpus"] not in found]


def page(rows: Sequence[Row]) -> str:
    """Return corpora.md with two tables: one row per corpus, and one row per claim with a column per corpus."""
    about = [[_shown(key, r[key]) for key in HEADINGS] for r in rows]
    claims = registry.claims().values()
    verdicts = [[c.claim, *(verdict(r, c.id, c.digits) for r in rows), c.threshold] for c in claims]
    return f"""<!-- Generated by make corpora; do not edit. -->
# The same models on several corpora

`make corpora` trains models of zero, one and two layers on each text, and judges every claim of the \
[report](README.md) on them. [CSV](corpora.csv)

Verdicts rest on the judged windows, which come from the judged documents: with few documents, intervals are wide. \
Claims about induction heads are judged on models with one (prefix matching of at least {MATCHES} at the end of \
training); if no model has one, the verdict is “{ABSENT}”. The weight of repeats is the largest weight in the training \
loss of tokens that complete a pair seen before in the window. CORPUS@PROFILE stands for training with this profile \
of conf/profile/ instead of the default. Claims about controls are not testable here, because `make corpora` trains no \
controls.

{_table(HEADINGS.values(), about)}

Verdict on each claim, median over models, and how many of the judged models pass, for each corpus.

{_table(["claim", *(r["corpus"] for r in rows), "reproduced if"], verdicts)}
"""


def _shown(key: str, value: str) -> str:
    if key == "onset_tokens":
        return ", ".join(n if n == "none" else millions(int(n)) for n in value.split()) or "–"
    return value.replace(" ", ", ") if key == "prefix_matching" else value or "–"


def verdict(row: Row, claim: str, digits: int, *, short: bool = False) -> str:
    """Return the verdict on a claim as the tables show it; ``short``: by its mark alone."""
    value, mark = row[f"{claim}_median"], MARKS[row[claim]]
    return (mark[0] if short else mark) + (
        f" {number(float(value), digits)} ({row[f'{claim}_passing']})" if value else ""
    )


def _table(columns: Collection[str], rows: Iterable[Iterable[str]]) -> str:
    head, *body = ([markdown_text(x) for x in line] for line in (columns, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))
