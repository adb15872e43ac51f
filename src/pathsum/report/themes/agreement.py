"""Agreement of weights, behavior and intervention (docs/framework.md §10.8). The words are in agreement.md."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pathsum.claims.formatting import number
from pathsum.records.heads import COPYING
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.agreement import (
    COPIES,
    EDGES,
    INDUCTION,
    KINDS,
    NEEDED,
    QUESTIONS,
    SAYS,
    agreed,
    agreement,
    evidence,
)
from pathsum.report.page.document import Section, Table
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames

TITLE = "Agreement of weights, behavior and intervention"
PAIRS = (("weights", "behaviour"), ("weights", "intervention"), ("behaviour", "intervention"))
NAMED = 6  # heads or edges that a table field names per question


def facts(t: Frames) -> dict[str, Any]:
    """Return the evidence on all heads and edges, and the counts that the text quotes. Empty without heads."""
    items = evidence(t)
    if items.empty:
        return {}
    items = items.assign(agreed=agreed(items), all_three=items[SAYS].fillna(False).all(axis=1))
    both = items.dropna(subset=["weights_says", "intervention_says"])
    edges, heads = both[both["question"].isin(EDGES)], both[both["question"] == COPIES]
    return {
        "items": items,
        "copying": COPYING,
        "needed": NEEDED,
        "edges": edges,
        "text_nats": edges[~edges["intervention_says"]].groupby("weights_says")["text_nats"].median().to_dict(),
        "induction": items[items["question"] == INDUCTION],
        "copying_heads": heads[heads["weights_says"]],
        "other_heads": heads[~heads["weights_says"]],
        "unneeded": heads[heads["weights_says"] & ~heads["intervention_says"]],
    }


def section(results: Results, _: Figures) -> Section:
    """Count how often the three kinds of evidence agree on heads and edges, and name the largest disagreements."""
    if not (found := facts(Frames(results.cells))):
        return told.absent(TITLE)
    return told.section(TITLE, "agreement", found, {"counts": counts(found["items"]), "named": named(found["items"])})


def counts(items: pd.DataFrame) -> Table:
    """Return, for each question and depth, how many heads or edges have yes by each kind of evidence, and how often two
    kinds agree."""
    order = {question: place for place, question in enumerate(QUESTIONS)}
    shown = [
        {"question": question, "layers": n_layers}
        | {f"{name}: yes": _yes(rows[f"{kind}_says"].dropna()) for kind, name in KINDS.items()}
        | {"all: yes": _yes(rows["agreed"])}
        | {f"{KINDS[a]} – {KINDS[b]} (κ; n)": _pair(rows[f"{a}_says"], rows[f"{b}_says"]) for a, b in PAIRS}
        for (question, n_layers), rows in items.groupby(["question", "n_layers"])
    ]
    table = pd.DataFrame(shown).sort_values("question", key=lambda names: names.map(order), kind="stable")
    caption = (
        "Number of heads or edges for which each kind of evidence, and all measured kinds together, say yes. Last "
        "columns: the share of heads or edges on which two kinds agree; in parentheses, Cohen's κ (0 at chance, 1 at "
        "complete agreement, –: all answers of both kinds are equal) and the number n of heads or edges. Models of the "
        "same depth are pooled. If most answers are no, the share is high by chance."
    )
    return told.table(table, caption, kinds={"question": "text"}, csv="agreement.csv")


def _yes(says: pd.Series) -> str:
    return f"{says.sum()} of {len(says)}" if len(says) else "–"


def _pair(first: pd.Series, second: pd.Series) -> str:
    found = agreement(first, second)
    return f"{number(found.share)} ({number(found.kappa)}; {found.n})" if found else "–"


def named(items: pd.DataFrame) -> Table:
    """Return, for each model, the heads and edges that all kinds of evidence find, and the largest disagreements."""
    found = dict(list(items.groupby("cell", sort=False)))
    shown = {
        "model": list(found),
        "all say yes": [_agreed(rows[rows["agreed"]]) for rows in found.values()],
        "yes by weights, no by intervention": [_widest(rows, "weights", "intervention") for rows in found.values()],
        "yes by intervention, no by weights": [_widest(rows, "intervention", "weights") for rows in found.values()],
    }
    caption = (
        "All say yes: heads and edges with yes from all measured evidence. Last columns: the largest disagreements "
        "among edges (with one layer, among heads): the edge whose composition score most exceeds chance, or with the "
        "largest rise of the loss on the second copy (the head whose positivity most exceeds its threshold, or whose "
        "rise its control). Scores here include the mean write, which the composition rule leaves out, so an edge that "
        "does not compose can have a score above chance."
    )
    return told.table(pd.DataFrame(shown), caption, kinds=dict.fromkeys(shown, "text"), csv="agreement.csv")


def _agreed(rows: pd.DataFrame) -> str:
    names = [(question, list(rows.loc[rows["question"] == question, "name"])) for question in QUESTIONS]
    texts = [(q, ", ".join(some[:NAMED]), len(some) - NAMED) for q, some in names if some]
    return "; ".join(f"{q} {text}" + f" and {more} more" * (more > 0) for q, text, more in texts) or "none"


def _widest(rows: pd.DataFrame, yes: str, no: str) -> str:
    """Name the largest disagreement of two kinds of evidence, or "none"."""
    edges = rows[rows["question"].isin(EDGES)]
    rows = rows if edges.empty else edges
    rows = rows[rows[f"{yes}_says"].fillna(False) & ~rows[f"{no}_says"].fillna(True)]
    if rows.empty:
        return "none"
    most = rows.iloc[int((rows[f"{yes}_value"] - rows[f"{yes}_bar"]).argmax())]
    bar = "threshold" if edges.empty else "chance"
    return (
        f"{most['question']} {most['name']}: weights {number(most['weights_value'])} ({bar} "
        f"{number(most['weights_bar'])}), rise of the loss {number(most['intervention_value'])} nats"
    )


THEME = Theme(
    TITLE,
    section,
    sources={"agreement": ("heads", "labels", "composition", "ablations")},
    relies_on=(
        *("copying", "previous_token", "induction"),
        *("composition_q", "composition_k", "composition_v", "composition"),
    ),
    few_windows=True,
    tables=("agreement",),
)
