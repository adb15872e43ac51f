"""Evidence from weights, behavior and intervention on heads and edges, and its agreement (docs/framework.md §10.8)."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from pathsum.records.heads import COPYING
from pathsum.records.results import FORMED, Results
from pathsum.report.told import Frames, labels

NEEDED = 0.1  # nats; an edge is needed if the second copy's loss rises by more without it (edges have no control)
COPIES, INDUCTION, PREVIOUS = "copies", "induction", "previous token"
EDGES = ("K-edge", "Q-edge", "V-edge")
QUESTIONS = (COPIES, INDUCTION, PREVIOUS, *EDGES)
KINDS = {"weights": "weights", "behaviour": "behavior", "intervention": "intervention"}  # as printed
SAYS = [f"{kind}_says" for kind in KINDS]
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


def table(results: Results) -> pd.DataFrame:
    """Return the evidence on every head and edge of the grid's models."""
    return evidence(Frames(results.cells))


def evidence(t: Frames) -> pd.DataFrame:
    """Return the evidence on each head, for each question that applies to it, and on each edge: the PARTS of each kind.
    Those of a kind that was not measured are missing. By weights, ``value`` must exceed ``bar``, but for edges, where
    ``bar`` is chance, which does not decide."""
    scores = t.composition.assign(says=[row.composes for row in t.rows("composition")])
    tests = _tests(t)
    found = pd.concat([_heads(t, scores, tests), _edges(t, scores, tests)])
    order = {name: place for place, name in enumerate(t.cells.index)}
    found = found.sort_values("cell", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    parts = [f"{kind}_{part}" for kind in KINDS for part in PARTS if (kind, part) != ("weights", "low")]
    return found.reindex(columns=[*ABOUT, *parts, "text_nats"]).convert_dtypes().astype(dict.fromkeys(SAYS, "boolean"))


def agreed(found: pd.DataFrame) -> pd.Series:
    """Return whether at least two kinds of evidence were measured and all measured ones say yes."""
    return (found[SAYS].notna().sum(axis=1) > 1) & found[SAYS].fillna(True).all(axis=1)


class Agreement(NamedTuple):
    """The agreement of two kinds of evidence."""

    n: int  # heads or edges for which both kinds were measured
    share: float  # share of equal answers, 0..1
    kappa: float | None  # Cohen's κ: 1 complete agreement, 0 chance; None if all answers of both are yes, or all no


def agreement(first: pd.Series, second: pd.Series) -> Agreement | None:
    """Return the share of equal answers and Cohen's κ = (share − chance) / (1 − chance) (docs/framework.md §10.8). None
    without heads or edges with both."""
    both = first.notna() & second.notna()
    if not both.any():
        return None
    a, b = first[both].astype(bool), second[both].astype(bool)
    n, equal = len(a), int((a == b).sum())
    chance = int(a.sum() * b.sum() + (~a).sum() * (~b).sum())  # n² times the share of equal answers by chance
    return Agreement(n, equal / n, None if chance == n * n else (n * equal - chance) / (n * n - chance))


def _heads(t: Frames, scores: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    ablated = t.ablations[(t.ablations["target"] == "head") & (t.ablations["patterns"] == "recomputed")]
    resampled, rotated = (ablated[ablated["method"] == method] for method in ("resample", "rotated"))
    needed = resampled.merge(rotated[HEAD].assign(bar=rotated["second_copy_high"].clip(lower=0)))
    needed = needed.assign(says=needed["second_copy_low"] > needed["bar"])
    intervention = _answers("intervention", HEAD, needed, "second_copy_nats", "second_copy_low", "bar")
    intervention = intervention.join(resampled.set_index(HEAD)["loss_nats"].rename("text_nats"), how="outer")

    heads = t.heads.astype({"qk_matching_positivity": float})
    both = heads[["copying_positivity", "qk_matching_positivity"]].min(axis=1, skipna=False)
    copying = t.rows("copying")
    by_text = t.copying.assign(says=[row.copies for row in copying], bar=[row.bar for row in copying])
    formed = t.induction.merge(t.heads)
    formed = formed.loc[formed["prefix_matching"] >= FORMED, HEAD].rename(columns=LATE)
    read = scores[scores["kind"] == "K"].merge(formed).rename(columns={"early_layer": "layer", "early_head": "head"})
    labelled = {name: _answers("behaviour", HEAD, rows, *TESTED) for name, rows in tests.groupby("name")}
    asked = {
        COPIES: (heads, _positive(heads, heads["copying_positivity"]),
                 _answers("behaviour", HEAD, by_text, "attended_nats", "attended_low", "bar")),
        INDUCTION: (heads[both.notna()], _positive(heads, both), labelled.get("induction")),
        PREVIOUS: (heads[(heads["layer"] == 0) & (heads["n_layers"] > 1)],
                   _answers("weights", HEAD, read, "value", "chance"), labelled.get("previous token")),
    }  # fmt: skip
    found = [
        rows.assign(question=question, name=labels)
        .join(weights, on=HEAD)
        .join(intervention, on=HEAD)
        .join(pd.DataFrame(index=weights.index) if behaviour is None else behaviour, on=HEAD)
        for question, (rows, weights, behaviour) in asked.items()
    ]
    return pd.concat(found).sort_index(kind="stable")


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
    return _answers("weights", HEAD, heads.assign(says=values > COPYING, least=values, bar=COPYING), "least", "bar")


def _answers(kind: str, at: list[str], rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the PARTS of one kind of evidence, from ``says`` and the columns of value, lower end (if any) and bar."""
    parts = [f"{kind}_{part}" for part in PARTS if part != "low" or len(columns) == len(PARTS) - 1]
    found = rows.set_index(at)[["says", *columns]].set_axis(parts, axis=1)
    return found.astype({parts[0]: "boolean"})
