"""Numbers of README's finding are those of the committed report."""

import json
import re
from collections.abc import Iterable

from pathsum.claims import registry
from pathsum.claims.corpora import read_rows
from pathsum.claims.judging import NOT, OWN, PARTLY, REPRODUCED
from pipelines.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
METRICS = json.loads((ROOT / "reports" / "metrics.json").read_text(encoding="utf-8"))


def between(values: Iterable[float | None], digits: int) -> str:
    """Format the range of the known ``values`` as the README does."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    low, high = (f"{pick(known):.{digits}f}" for pick in (min, max))
    return low if low == high else f"{low}–{high}"


def test_the_finding_has_the_numbers_of_the_report() -> None:
    finding = " ".join(README.partition("## The finding")[2].partition("\n![")[0].split())
    zero, one, two = ([c for c in METRICS["cells"].values() if c["n_layers"] == n] for n in range(3))
    english = [c for c in METRICS["texts"]["docstrings"]["cells"].values() if c["n_layers"] == 2]
    for key, name, digits in (
        ("val_loss_nats", "loss (nats per token)", (2, 2, 2)),
        ("prefix_matching", "prefix matching, best head (0..1; uniform attention 0.005)", (2, 3, 2)),
        ("previous_token", "attention to the previous token, best first-layer head (0..1)", (2, 2, 2)),
        ("in_context_loss_drop_nats", "in-context loss drop (nats per token)", (2, 2, 2)),
    ):
        groups = zip((zero, one, two, english), (*digits, digits[-1]), strict=True)
        row = [between((c[key] for c in cells), n) for cells, n in groups]
        assert f"| {name} | {' | '.join(row)} |" in finding
    onset, of_english = (between((c["onset_tokens"] / 1e6 for c in cells), 1) for cells in (two, english))
    assert f"| onset of the phase change (million tokens) | none | none | {onset} | {of_english} |" in finding
    assert f"onset after {onset} million tokens" in finding
    verdicts = [METRICS["claims"][c.id]["verdict"] for c in registry.claims().values() if c.section != OWN]
    reproduced, partly, missed = (verdicts.count(v) for v in (REPRODUCED, PARTLY, NOT))
    told = f"Of {len(verdicts)} claims of the papers, {reproduced} are reproduced, {partly} partly and {missed} not."
    assert told in finding


def test_the_rows_of_other_texts_are_those_of_corpora_csv() -> None:
    rows = [r for r in read_rows(ROOT / "reports" / "corpora.csv") if r["corpus"] != METRICS["corpus"]["name"]]
    assert len(rows) > 2
    told = " ".join(README.split())
    assert [r["corpus"] for r in rows if not re.search(rf"{r['onsets']} on {re.escape(r['corpus'])}[ ,;.]", told)] == []
