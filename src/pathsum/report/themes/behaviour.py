"""The section on the behaviors of each head: its labels, and the scores from which they follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pathsum.claims.formatting import layers_label, number, plural, span
from pathsum.figures.behaviour import logit_lens
from pathsum.page.document import HEAD, MODEL, Column, Entry, Section, Table, Text
from pathsum.page.roles import names
from pathsum.records.heads import COPYING, HeadRow, LabelRow
from pathsum.records.results import Cell, Results
from pathsum.report.theme import DetectorText, Figures, Theme, drawn

TITLE = "What each head does"
SCORES = (
    "previous token",
    "two tokens back",
    "offset",
    "duplicate token",
    "induction: uniform",
    "induction: by frequency",
    "induction: natural",
    "copies the next token",
    "attends to BOS (attention sink)",
)  # columns; the text and the CSV give the value-weighted scores
UNLABELLED = {True: "– (copies, by weights)", False: "–"}  # by whether the OV circuit of an unlabeled head copies


def section(results: Results, figures: Figures) -> Section:
    """Show the labels and scores of every head, and the loss by logit lens after each layer."""
    shown = drawn(figures, "logit_lens")
    cells = [c for c in results.cells.values() if c.rows(LabelRow)]
    if not cells:
        return Section(TITLE, ("This sweep has no heads.",), shown)
    method = (
        "A head is labeled with a behavior if the lower end of the 95 % interval of its score (bootstrap over "
        "documents; on random tokens, over windows) exceeds a threshold, which is at least three times chance. Chance "
        "is the score of uniform causal attention; for copying, the score on another window's tokens.",
        "For the label induction, a head must pass three tests: on repeated random tokens sampled uniformly, on "
        "repeated random tokens sampled by frequency, and on held-out text. A head that always attends back by one "
        "token less than the length of the repeated block passes only on random tokens; a head that attends to likely "
        "followers of the current token may pass only on text. The thresholds were chosen after models of this kind "
        "had been seen. The counts of labeled heads therefore describe the models and test no claim.",
    )
    named = " ".join(_named(n, results.with_layers(n)) for n in results.layer_counts())
    counts = f"A head may have several labels. {named.strip()}"
    return Section(TITLE, (*method, counts, _weighted(cells)), (_table(cells), *shown))


def _named(n_layers: int, cells: Sequence[Cell]) -> str:
    heads = [names(c, h.layer, h.head) for c in cells for h in c.rows(HeadRow) if c.rows(LabelRow)]
    if not heads:
        return ""
    counted = Counter(name for called in heads for name in called)
    counts = [f"{name} {count}" for name, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))]
    counts.append(f"no label {sum(not called for called in heads)}")
    return f"Labels of {plural(len(heads), 'head')} in models with {layers_label(n_layers)}: {', '.join(counts)}."


def _weighted(cells: Sequence[Cell]) -> str:
    """Compare attention with value-weighted attention (docs/framework.md §3.14)."""
    by_head = {(c.name, r.layer, r.head, r.behaviour): r.score for c in cells for r in c.rows(LabelRow)}
    heads = [(c.name, h.layer, h.head) for c in cells for h in c.rows(HeadRow)]
    sinks = [
        abs(by_head[*head, "BOS, value-weighted"] - by_head[*head, "attends to BOS (attention sink)"])
        for head in heads
        if (*head, "BOS, value-weighted") in by_head
    ]
    text = (
        "Value-weighted attention multiplies attention by the norm of the vector that is moved, A ‖W_OV x‖, and scales "
        "each row to sum to 1. It changes a head's attention to the beginning-of-sequence (BOS) token by at most "
        f"{number(max(sinks, default=0.0))} (mean attention, 0 to 1)"
    )
    induction = [
        (c.name, h.layer, h.head) for c in cells for h in c.rows(HeadRow) if "induction" in names(c, h.layer, h.head)
    ]
    if induction:
        plain, weighted = (
            span([by_head[*h, b] for h in induction]) for b in ("induction: uniform", "uniform, value-weighted")
        )
        text += (
            f". The prefix matching of heads labeled induction, on random tokens sampled uniformly, is {weighted} with "
            f"it and {plain} without it (range over heads)"
        )
    return f"{text}."


def _table(cells: Sequence[Cell]) -> Table:
    heads = [
        (c, {r.behaviour: r for r in c.rows(LabelRow) if (r.layer, r.head) == (h.layer, h.head)}, h)
        for c in cells
        for h in c.rows(HeadRow)
    ]
    table = Table.of(
        heads,
        MODEL,
        HEAD,
        Text("labels", lambda c, _, h: ", ".join(names(c, h.layer, h.head)) or UNLABELLED[h.copies]),
        *(Column(score, lambda _, labels, __, score=score: _score(labels.get(score))) for score in SCORES),
        Column("OV positivity", "copying_positivity"),
        Column("copies top-1 / top-5", lambda *row: f"{number(row[-1].copying_top1)} / {number(row[-1].copying_top5)}"),
        Column("QK matching", "qk_matching_positivity"),
        caption="Labels and scores of every head, with 95 % intervals; chance and threshold as ranges over heads. "
        "Attention scores: mean attention, 0 to 1 (duplicate token: to an earlier occurrence of the current token; "
        "induction: to the token after one, on random tokens sampled uniformly or by frequency, or on held-out text "
        "(natural); offset: at the distance in tokens that receives most attention, chosen on other documents). Copies "
        "the next token: mean sign of the head's effect on the logit of the correct next token in the second copy, "
        "relative to the mean over the vocabulary, −1 to 1. From the weights: eigenvalue positivity of OV, and of QK "
        "matching through the strongest first-layer previous-token head, −1 to 1; copies "
        "top-1 / top-5: share of tokens whose own logit is raised most, or among the five most, by attention to them. "
        f"“(copies, by weights)”: a head without a label, with OV positivity above {COPYING}. The CSV also has the "
        "value-weighted scores.",
        csv="labels.csv",
        levels=2,
        fold=False,
    )
    every = [r for c in cells for r in c.rows(LabelRow)]
    return replace(table, rows=(_level("chance", every), _level("threshold", every), *table.rows))


def _level(field: str, rows: Sequence[LabelRow]) -> tuple[Entry, ...]:
    """Return a table row with the range of ``field`` (chance or threshold) for each score."""
    known = [[v for r in rows if r.behaviour == score and (v := getattr(r, field)) is not None] for score in SCORES]
    return (Entry(field), *[Entry("–")] * 2, *(Entry(span(v), "number") for v in known), *[Entry("–", "number")] * 3)


def _score(r: LabelRow | None) -> str:
    if r is None:
        return "–"
    at = "" if r.distance is None else f" at {r.distance}"
    return f"{r.score:.2f}{at} [{r.low:.2f}, {r.high:.2f}]".replace("-", "−").replace("−0.00", "0.00")


THEME = Theme(
    TITLE,
    section,
    figures=(logit_lens,),
    sources={"logit_lens": ("lens", "corpus"), "labels": ("labels", "heads")},
    detectors={
        "previous_token": DetectorText(
            "previous-token heads",
            "the next word depends on the word before the current one, so the only head must attend one token back; "
            "the head has this label",
        ),
        "induction": DetectorText(
            "induction heads",
            "stretches of text repeat, and only one layer can attend to what followed; one of its heads has this label",
        ),
        "copying": DetectorText(
            "copying heads",
            f"the heads of induction, which must copy what they attend to; OV eigenvalue positivity above {COPYING}",
        ),
    },
    relies_on=("previous_token", "induction"),
    tables=("labels", "heads", "lens"),
)
