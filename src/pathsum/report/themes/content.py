"""Attention scores and losses by content, the token that is read (docs/framework.md §2.5). Words: content.md."""

from typing import Any

import pandas as pd

from pathsum.claims.content import CURRENT, POSITION, PREVIOUS, TWO_BACK
from pathsum.claims.formatting import number, plural, span
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures.base import Figure
from pathsum.report.page.document import Section
from pathsum.report.theme import DetectorText, Figures, Theme
from pathsum.report.themes.score_paths import preferences, with_terms
from pathsum.report.told import Frames, intervals, labels, listed

TITLE = "Attention scores and losses by content"
SMALL = "small_embedding"  # prefix of the name of the control whose embedding starts small
MOST_MODELS = 4  # panels of the figure
CAPTIONS = {
    "content_claims": "Preference of the best induction head and shares of it, by heads and by content (at the query × "
    "at the key). Shares can exceed 1, because other terms can be negative.",
    "content_loss_reduction": "Fall of the held-out loss (nats per token) as paths through 0, 1, … heads, or content "
    "after 0, 1, … hops, are added in this order.",
    "matching_pairs": "Matching of tokens (eigenvalue positivity, −1 to 1) on the pair of paths with the largest part "
    "of the preference, and on AMF's pair: direct, and through the previous-token head.",
    "balance": "Root-mean-square norms of the embedding and of what earlier layers and their heads (range) write; "
    "share of the direct path in the squared norm of what is read (power), and in its direction (projection).",
}
SOURCES = {  # records of each table; the first is its CSV file
    "content_claims": ("content_scores", "score_paths"),
    "content_loss_reduction": ("content", "terms"),
    "matching_pairs": ("matching", "heads"),
}


def facts(t: Frames) -> dict[str, Any]:
    """Return what text and tables show, over the models with heads. Empty without such models."""
    power = t.balance[(t.balance["reader"] == 1) & (t.balance["part"] == "embedding")].set_index("cell")["power_share"]
    if power.empty:
        return {}
    small = power.index.str.startswith(SMALL)
    errors = [rows.loc[rows["n_layers"] > 0, "exactness"] for rows in (t.content, t.content_scores)]
    found = {"grid": power[~small], "small": power[small].to_dict(), "balance": balance(t)}
    found["error"] = max(value for some in errors for value in listed(some))
    if t.content_scores.empty:
        return found
    deep = {"content_claims": scores(t), "content_loss_reduction": orders(t), "matching_pairs": matching(t)}
    return found | deep


def pairs_of_offsets(t: Frames) -> pd.DataFrame:
    """Return the scores of each best induction head by content; ``boxed``: current token and previous token."""
    rows = t.content_scores.merge(t.induction)
    return rows.assign(boxed=(rows["query"] == CURRENT) & (rows["key"] == PREVIOUS))


def share(pairs: pd.DataFrame, some: pd.Series) -> pd.Series:
    """Return the share of each model's preference that ``some`` of the pairs hold; missing if the whole is not > 0."""
    cells, nats = pairs["cell"], pairs["preference_nats"]
    whole = nats.groupby(cells).sum()
    return nats.where(some, 0.0).groupby(cells).sum() / whole.where(whole > 0)


def scores(t: Frames) -> pd.DataFrame:
    by_heads, pairs = with_terms(t), pairs_of_offsets(t)
    shown = {
        "by heads: K": share(by_heads, by_heads["term"] == "K"),
        "by heads: Q&K": share(by_heads, by_heads["term"] == "Q&K"),
        "current × previous token": share(pairs, pairs["boxed"]),
        "previous × two tokens back": share(pairs, (pairs["query"] == PREVIOUS) & (pairs["key"] == TWO_BACK)),
        "preference (nats)": pairs.groupby("cell")["preference_nats"].sum(),
    }
    models = t.induction[t.induction["cell"].isin(t.content_scores["cell"])]
    names = pd.DataFrame({"model": models["cell"], "head": labels(models)})
    return names.join(pd.DataFrame(shown).round(2) + 0, on="model")


def orders(t: Frames) -> pd.DataFrame:
    hops = t.content[(t.content["kind"] == "hops") & t.content["cell"].isin(t.content_scores["cell"])]
    hops = hops.assign(order=hops["content"].astype(int))
    terms = t.terms.loc[t.terms["layer"].isna(), ["cell", "order", "own_scale_nats"]]
    both = hops.merge(terms, "left", ["cell", "order"], suffixes=("", "_heads"))
    shown = {
        "model": both["cell"],
        "heads or hops": both["order"],
        "by heads: own scale (nats)": both["own_scale_nats_heads"],
        "by hops: own scale (nats)": intervals(both, "own_scale_nats"),
        "by hops: scales frozen (nats)": intervals(both, "added_nats"),
    }
    return pd.DataFrame(shown)


def matching(t: Frames) -> pd.DataFrame:
    pairs = t.matching.merge(t.induction).merge(t.heads[["cell", "layer", "head", "qk_matching_positivity"]])
    shown = {
        "model": pairs["cell"],
        "head": labels(pairs),
        "path to the query": pairs["query"],
        "path to the key": pairs["key"],
        "share of the preference": pairs["judged_share"],
        "matching on this pair": pairs["positivity"],
        "matching on AMF's pair": pairs["qk_matching_positivity"],
    }
    return pd.DataFrame(shown)


def balance(t: Frames) -> pd.DataFrame:
    shown = []
    for _, rows in t.balance[t.balance["reader"] > 0].groupby(["cell", "reader"], sort=False):
        direct, norms = rows.iloc[0], rows.set_index("part")["norm"]
        by_layer = norms.filter(like="H").groupby(lambda part: part.split("H")[0], sort=False)
        shown.append({
            "model": direct["cell"],
            "read by": f"layer {direct['reader']}" if direct["reader"] < direct["n_layers"] else "unembedding",
            "embedding (norm)": direct["norm"],
            "layers (norm)": "; ".join(number(norm, 1) for norm in norms.filter(regex=r"^L\d+$")),
            "heads (norm)": "; ".join(span(list(some), 1) for _, some in by_layer),
            "direct path: power": direct["power_share"],
            "projection": direct["projection_share"],
        })  # fmt: skip
    return pd.DataFrame(shown)


def section(results: Results, figures: Figures) -> Section:
    small = {name: cell for name, cell in results.controls.items() if name.startswith(SMALL)}
    if not (found := facts(Frames(results.cells | small))):
        return told.absent(TITLE)
    texts = ("path to the query", "path to the key", "read by")
    tables = {
        name: told.table(found[name], caption, {"embedding (norm)": 1}, texts=texts, csv=f"{csv}.csv", source=name)
        for name, caption in CAPTIONS.items()
        if name in found and (csv := SOURCES.get(name, [name])[0])
    }
    return told.section(TITLE, "content", found, {**figures, **tables})


def content_scores(results: Results) -> Figure | None:
    """Draw the preference of the best induction heads by content at the query and at the key."""
    t = Frames(results.cells | results.controls)
    if t.content_scores.empty:
        return None
    pairs = pairs_of_offsets(t)
    grid = [name for name in pairs["cell"].unique() if name in results.cells]
    small = [name for name in pairs["cell"].unique() if name in results.controls and name.startswith(SMALL)][:1]
    if not (shown := [*grid[: MOST_MODELS - len(small)], *small]):
        return None
    held = listed(share(pairs, pairs["boxed"]).reindex(grid))
    caption = (
        "Preference of the best induction head (nats; chance is 0) by content. Box: current token at the query, "
        f"previous token at the key, {span(held)} of the whole preference in {plural(len(held), 'model')}."
    )
    drawn = pairs[~pairs[["query", "key"]].isin([POSITION]).any(axis=1)]
    title, axis = "Scores of induction heads by content", "content at the key (tokens back)"
    return preferences("content_scores", title, caption, drawn, t.cells.loc[shown], axis, (3.2, 3.6))


THEME = Theme(
    TITLE,
    section,
    figures=(content_scores,),
    few_windows=True,
    sources=SOURCES,
    detectors={
        "keys_of_previous_token": DetectorText(
            "keys read by content",
            "stretches of text repeat, so a second-layer head must compare the current token at the query with the "
            "previous token at the key; a head has a preference of at least one nat, and at least half of it compares "
            "these two",
        )
    },
    relies_on=("keys_of_previous_token",),
    tables=("content_scores", "content", "matching", "balance"),
)
