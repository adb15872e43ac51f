"""Agreement of weights, behavior and intervention on heads and edges (docs/framework.md §10.8); words: agreement.md."""

from functools import lru_cache
from typing import Any

import pandas as pd

from pathsum.claims.formatting import number
from pathsum.records.heads import COPYING
from pathsum.records.results import FORMED
from pathsum.report import told
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, labels

TITLE = "Agreement of weights, behavior and intervention"
NEEDED = 0.1  # nats; an edge is needed if the second copy's loss rises by more without it (edges have no control)
COPIES, INDUCTION, PREVIOUS = "copies", "induction", "previous token"
EDGES = ("K-edge", "Q-edge", "V-edge")
QUESTIONS = (COPIES, INDUCTION, PREVIOUS, *EDGES)
PAIRS = (("weights", "behaviour"), ("weights", "intervention"), ("behaviour", "intervention"))
KINDS = {"weights": "weights", "behaviour": "behavior", "intervention": "intervention"}  # as printed
SAYS = [f"{kind}_says" for kind in KINDS]
NAMED = 6  # heads or edges that a table field names per question
CARRIES = {  # by kind of edge: labels of an early head whose output an induction head can use
    "K": ("previous token", "two tokens back"),
    "Q": ("offset", "previous token"),
}
ABOUT = ["cell", "n_layers", "question", "name"]
PARTS = ["says", "value", "low", "bar"]  # yes or no; its number, with the lower end of a 95 % interval; least for yes
HEAD = ["cell", "layer", "head"]
EDGE = ["cell", "kind", "early_layer", "early_head", "late_layer", "late_head"]
LATE = {"layer": "late_layer", "head": "late_head"}
TESTED = ("score", "low", "threshold")  # columns of the record labels


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


def counts(found: dict[str, Any]) -> Table:
    """Return, for each question and depth, how many heads or edges have yes by each kind of evidence, and how often two
    kinds agree."""
    items = found["items"]
    shown = [
        {"question": question, "layers": n_layers}
        | {f"{name}: yes": _yes(rows[f"{kind}_says"].dropna()) for kind, name in KINDS.items()}
        | {"all: yes": _yes(rows["agreed"])}
        | {f"{KINDS[a]} – {KINDS[b]} (κ; n)": _pair(rows[f"{a}_says"], rows[f"{b}_says"]) for a, b in PAIRS}
        for question in QUESTIONS
        for n_layers, rows in items[items["question"] == question].groupby("n_layers")
    ]
    caption = (
        "Heads or edges with yes by each kind of evidence, and the share on which two kinds agree, with Cohen's κ (0: "
        "chance; –: all answers are equal) and n."
    )
    return told.table(pd.DataFrame(shown), caption, texts=["question"], csv="agreement.csv")


def _yes(says: pd.Series) -> str:
    return f"{says.sum()} of {len(says)}" if len(says) else "–"


def _pair(first: pd.Series, second: pd.Series) -> str:
    if (found := agreement(first, second)) is None:
        return "–"
    share, kappa, n = found
    return f"{number(share)} ({number(kappa)}; {n})"


def named(found: dict[str, Any]) -> Table:
    """Return, for each model, the heads and edges that all kinds of evidence find, and the largest disagreements."""
    shown = [
        {
            "model": cell,
            "all say yes": _agreed(rows[rows["agreed"]]),
            "yes by weights, no by intervention": _widest(rows, "weights", "intervention"),
            "yes by intervention, no by weights": _widest(rows, "intervention", "weights"),
        }
        for cell, rows in found["items"].groupby("cell", sort=False)
    ]
    caption = "Heads and edges with yes from all evidence, and the largest disagreements (scores with the mean write)."
    return told.table(pd.DataFrame(shown), caption, texts=shown[0], csv="agreement.csv")


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


@lru_cache(maxsize=4)
def evidence(t: Frames) -> pd.DataFrame:
    """Return the evidence on each head, for each question that applies to it, and on each edge: the PARTS of each kind.
    Those of a kind that was not measured are missing. By weights, ``value`` must exceed ``bar``, but for edges, where
    ``bar`` is chance, which does not decide."""
    scores = t.composition.assign(says=[row.composes for row in t.rows("composition")])
    tests = _tests(t)
    found = pd.concat([_heads(t, scores, tests), _edges(t, scores, tests)])
    cells = list(t.cells.index)
    found = found.sort_values("cell", key=lambda names: names.map(cells.index), kind="stable", ignore_index=True)
    parts = [f"{kind}_{part}" for kind in KINDS for part in PARTS if (kind, part) != ("weights", "low")]
    return found.reindex(columns=[*ABOUT, *parts, "text_nats"]).convert_dtypes().astype(dict.fromkeys(SAYS, "boolean"))


def agreed(found: pd.DataFrame) -> pd.Series:
    """Return whether at least two kinds of evidence were measured and all measured ones say yes."""
    return (found[SAYS].notna().sum(axis=1) > 1) & found[SAYS].fillna(True).all(axis=1)


def agreement(first: pd.Series, second: pd.Series) -> tuple[float, float | None, int] | None:
    """Return the share of equal answers (0..1), Cohen's κ = (share − chance) / (1 − chance) (docs/framework.md §10.8;
    None if all answers are equal) and the number of heads or edges with both; None without any."""
    both = first.notna() & second.notna()
    if not both.any():
        return None
    a, b = first[both].astype(bool), second[both].astype(bool)
    n, equal = len(a), int((a == b).sum())
    chance = int(a.sum() * b.sum() + (~a).sum() * (~b).sum())  # n² times the share of equal answers by chance
    return equal / n, None if chance == n * n else (n * equal - chance) / (n * n - chance), n


def _heads(t: Frames, scores: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    ablated = t.ablations[(t.ablations["target"] == "head") & (t.ablations["patterns"] == "recomputed")]
    resampled, rotated = (ablated[ablated["method"] == method] for method in ("resample", "rotated"))
    needed = resampled.merge(rotated[HEAD].assign(bar=rotated["second_copy_high"].clip(lower=0)))
    needed = needed.assign(says=needed["second_copy_low"] > needed["bar"])
    intervention = _answers("intervention", HEAD, needed, "second_copy_nats", "second_copy_low", "bar")
    intervention = intervention.join(resampled.set_index(HEAD)["loss_nats"].rename("text_nats"), how="outer")

    heads = t.heads.astype({"qk_matching_positivity": float}).assign(name=labels)
    both = heads[["copying_positivity", "qk_matching_positivity"]].min(axis=1, skipna=False)
    first = heads[(heads["layer"] == 0) & (heads["n_layers"] > 1)]
    formed = t.induction.merge(t.heads)
    formed = formed.loc[formed["prefix_matching"] >= FORMED, HEAD].rename(columns=LATE)
    read = scores[scores["kind"] == "K"].merge(formed).rename(columns={"early_layer": "layer", "early_head": "head"})
    copying = t.rows("copying")
    by_text = t.copying.assign(says=[row.copies for row in copying], bar=[row.bar for row in copying])
    copies = _answers("behaviour", HEAD, by_text, "attended_nats", "attended_low", "bar")
    asked = {
        COPIES: _positive(heads, heads["copying_positivity"]).join(copies, on=HEAD),
        INDUCTION: _positive(heads, both)[both.notna()],
        PREVIOUS: first.join(_answers("weights", HEAD, read, "value", "chance"), on=HEAD),
    }
    for question in (INDUCTION, PREVIOUS):
        rows = _answers("behaviour", HEAD, tests[tests["name"] == question], *TESTED)
        asked[question] = asked[question].join(rows, on=HEAD)
    found = pd.concat([rows.assign(question=question) for question, rows in asked.items()])
    return found.join(intervention, on=HEAD).sort_index(kind="stable")


def _edges(t: Frames, scores: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    which = {"target": "edge", "patterns": "recomputed", "method": "resample"}
    ablated = t.ablations[(t.ablations[[*which]] == pd.Series(which)).all(axis=1)].rename(columns=LATE)
    ablated = ablated.astype(dict.fromkeys(EDGE[2:], int)).rename(columns={"loss_nats": "text_nats"})
    ablated = ablated.assign(says=ablated["second_copy_low"] > NEEDED, bar=NEEDED)
    carries = pd.DataFrame([(k, name) for k, names in CARRIES.items() for name in names], columns=["kind", "name"])
    early = tests.rename(columns={"layer": "early_layer", "head": "early_head"})
    late = tests[tests["name"] == "induction"].rename(columns=LATE)
    carried = _sorted(scores[EDGE].merge(carries).merge(early), ascending=False).drop_duplicates(EDGE)
    both = pd.concat([carried, scores[EDGE].merge(late)])
    both = _sorted(both[both.duplicated(EDGE, keep=False)]).drop_duplicates(EDGE)
    return (
        scores.assign(
            question=scores["kind"] + "-edge",
            name=[f"{a} → {b}" for a, b in zip(labels(scores, "early_"), labels(scores, "late_"), strict=True)],
        )
        .join(_answers("weights", EDGE, scores, "value", "chance"), on=EDGE)
        .join(_answers("behaviour", EDGE, both, *TESTED), on=EDGE)
        .join(_answers("intervention", EDGE, ablated, "second_copy_nats", "second_copy_low", "bar"), on=EDGE)
        .join(ablated.set_index(EDGE)["text_nats"], on=EDGE)
    )


def _tests(t: Frames) -> pd.DataFrame:
    """Return the least sure test of each label of each head."""
    rows = t.labels[t.labels["threshold"].notna()]
    rows = rows.assign(
        name=rows["behaviour"].astype(str).str.split(":").str[0],
        says=rows["labelled"].astype(bool) & (rows["distance"].isna() | (rows["distance"] == 0)),
        margin=rows["low"] - rows["threshold"],
    )
    return _sorted(rows).drop_duplicates([*HEAD, "name"])


def _sorted(answers: pd.DataFrame, *, ascending: bool = True) -> pd.DataFrame:
    return answers.sort_values(["says", "margin"], ascending=ascending, kind="stable")


def _positive(heads: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    return heads.assign(weights_says=values > COPYING, weights_value=values, weights_bar=COPYING)


def _answers(kind: str, at: list[str], rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the PARTS of one kind of evidence, from ``says`` and the columns of value, lower end (if any) and bar."""
    parts = [f"{kind}_{part}" for part in PARTS if part != "low" or len(columns) == len(PARTS) - 1]
    found = rows.set_index(at)[["says", *columns]].set_axis(parts, axis=1)
    return found.astype({parts[0]: "boolean"})


section = told.from_facts(TITLE, "agreement", facts, counts=counts, named=named)
THEME = Theme(
    TITLE,
    section,
    sources={"agreement": ("heads", "labels", "composition", "ablations")},
    relies_on=("copying", "previous_token", "induction", *(f"composition{kind}" for kind in ("_q", "_k", "_v", ""))),
    few_windows=True,
    tables=("agreement",),
)
