"""One layer: copying heads by three kinds of evidence, and skip-trigrams (docs/framework.md §3.5 to §3.10)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from scipy.special import stdtrit

from pathsum.claims.formatting import head_label, interval, layers_label, number
from pathsum.claims.one_layer import highest_matching, passing_share
from pathsum.records.heads import COPYING, SPREADS
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramRow
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, axes_through_zero, picture, row
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Section, Table
from pathsum.report.theme import DetectorText, Figures, Theme
from pathsum.report.themes.agreement import COPIES, KINDS, evidence
from pathsum.report.told import Frames, intervals, labels

TITLE = "One layer"
ENTRIES_A_HEAD = 4  # skip-trigrams that the table shows per head
BUGS = 8  # rows of the table of skip-trigram bugs
NEAR = 8  # tokens back; a long-range head has less than half of its attention within them
HEAD = ["cell", "layer", "head"]
TOKENS = {"source": "source", "… destination": "destination", "→ out": "out"}
EFFECTS = {"effect (logits)": "effect_logits", "change in log P (nats)": "change_nats"}
PRICES = {
    "price (nats)": "price_nats", "on balance (nats)": "balance_nats", "QK (nats)": "qk_nats", "OV (logit)": "ov_logit",
}  # fmt: skip


def facts(results: Results) -> dict[str, Any]:
    groups = {f"grid, {layers_label(n)}": results.with_layers(n) for n in results.layer_counts()}
    groups |= {f"control, {name}": [cell] for name, cell in results.controls.items()}
    group = {cell.name: name for name, cells in groups.items() for cell in cells}
    t = Frames({cell.name: cell for cells in groups.values() for cell in cells})
    if t.heads.empty:
        return {}
    heads, models = evidence(t), results.of_depth(1)
    heads = heads[heads["question"] == COPIES].rename(columns={f"{kind}_says": kind for kind in KINDS})
    heads = heads.merge(t.heads.assign(name=labels(t.heads), top1=t.heads["copying_top1"])[["cell", "name", "top1"]])
    heads = heads.assign(models=heads["cell"].map(group), positivity=heads["weights_value"])
    one, grid = heads[heads["models"] == f"grid, {layers_label(1)}"], Frames(results.cells)
    return {
        "heads": heads,
        "one": one,
        "copying_heads": one[one["weights"]],
        "other_heads": one[~one["weights"]],
        "on_text": grid.copying[grid.copying["n_layers"] == 1].merge(grid.heads),
        "matching": highest_matching(models),
        "threshold": COPYING,
        "spreads": SPREADS,
        "controls": results.controls,
        **skip_trigrams(models),
    }


def section(results: Results, figures: Figures) -> Section:
    if not (found := facts(results)):
        return told.absent(TITLE)
    tables = {"copying_heads": table(found["heads"]), "copying": on_text(found["on_text"])}
    return told.section(TITLE, "one_layer", found, {**figures, **tables, **atlas(found)})


def table(heads: pd.DataFrame) -> Table:
    heads = heads.assign(three=heads[[*KINDS]].dropna().all(axis=1))
    columns = {KINDS[kind]: kind for kind in KINDS} | {"all three": "three"}
    shown = [
        {"models": models}
        | {name: f"{int(rows[kind].sum())} of {rows[kind].count()}" for name, kind in columns.items()}
        | {"OV positivity (median over heads)": rows["positivity"].median()}
        for models, rows in heads.groupby("models", sort=False)
    ]
    caption = "Number of heads that copy by each kind of evidence, of those measured."
    return told.table(pd.DataFrame(shown), caption, texts=["models"], csv="heads.csv", source="copying_heads")


def on_text(rows: pd.DataFrame) -> Table:
    shown = {
        "model": rows["cell"],
        "head": labels(rows),
        "OV positivity": rows["copying_positivity"],
        "attended − another window (nats)": intervals(rows, "attended_nats"),
        "must exceed": SPREADS * rows["spread_nats"],
        "loss without own OV entries (nats)": rows["removal_nats"],
    }
    caption = (
        "Logit that the head's output gives to the tokens that it attends to, minus that of another window's (95 % "
        "intervals over documents), and the rise of the loss without the OV entries (token, token)."
    )
    return told.table(pd.DataFrame(shown), caption, {"loss without own OV entries (nats)": 3}, csv="copying.csv")


def skip_trigrams(models: Sequence[Cell]) -> dict[str, Any]:
    t = Frames({c.name: c for c in models if c.rows(SkipTrigramRow)})
    if t.skip_trigrams.empty:
        return {}
    rows, tallies, bugs = t.rows("skip_trigrams"), t.skip_trigram_tallies, t.skip_trigram_bugs
    listed = t.skip_trigrams.assign(confirmed=[r.confirmed for r in rows], copies=[r.copies for r in rows])
    tested = listed[listed["text_lift"].notna()]
    by_head = tested.groupby(HEAD)["confirmed"].agg(["sum", "count"])
    near = t.distances[t.distances["distance"] <= NEAR].groupby(HEAD)["attention"].sum()
    positivity = t.heads.set_index(HEAD)["copying_positivity"]
    far = positivity.index[(positivity > COPYING) & (near.reindex(positivity.index, fill_value=0) < 0.5)]
    confirmed, best = listed[listed["confirmed"]], t.cells["val_loss_nats"].idxmin()
    total = (bugs["price_nats"] * bugs["places"]).sort_values(ascending=False, kind="stable")
    shown = listed[(listed["cell"] == best) & (listed["rank"] <= ENTRIES_A_HEAD)]
    return {
        "listed": listed,
        "tested": tested,
        "tested_interval": _over_heads(by_head["sum"], by_head["count"]),
        "tallies": tallies,
        "tallies_interval": _over_heads(tallies["confirmed"], tallies["tested"]),
        "copying": confirmed.groupby("cell")["copies"].mean(),
        "candidates_copying": tallies["copying"].sum() / max(1, tallies["candidates"].sum()),
        "passing_copying": passing_share(t.rows("skip_trigram_tallies")),
        "near": NEAR,
        "far": confirmed.groupby(HEAD)["copies"].mean().reindex(far),
        "bugs": bugs,
        "best": best,
        "atlas": shown.sort_values(["layer", "head", "rank"]),
        "worst": bugs.loc[total.index].query("cell == @best").head(BUGS),
    }


def _over_heads(hits: pd.Series, trials: pd.Series) -> str:
    """Return a share with its 95 % t-interval by the ratio estimator, with the trials of a head as one cluster."""
    hits, trials = hits[trials > 0], trials[trials > 0]
    if (n := len(trials)) < 2:
        return "one head"
    share = hits.sum() / trials.sum()
    spread = ((hits - share * trials) ** 2).sum() * n / (n - 1)
    error = float(stdtrit(n - 1, 0.975)) * spread**0.5 / trials.sum()
    return interval(share, max(0.0, share - error), min(1.0, share + error))


def atlas(found: Mapping[str, Any]) -> dict[str, Table]:
    if "best" not in found:
        return {}
    lift = "Lift: in the judging documents, with hits of places (–: too few)."
    return {
        "skip_trigrams": _trigrams(
            found["atlas"], EFFECTS, "skip_trigrams.csv",
            f"The first {ENTRIES_A_HEAD} skip-trigrams of each head of {found['best']}, the one-layer model with the "
            f"lowest held-out loss. Effect and change: means over places. {lift}",
        ),
        "skip_trigram_bugs": _trigrams(
            found["worst"], PRICES, "skip_trigram_bugs.csv",
            f"Bugs of {found['best']} that raise the loss most in total. {lift}",
        ),
    }  # fmt: skip


def _trigrams(rows: pd.DataFrame, columns: Mapping[str, str], csv: str, caption: str) -> Table:
    lifts = zip(rows["text_lift"], rows["text_hits"], rows["text_places"], strict=True)
    shown = {
        "head": list(map(head_label, rows["layer"], rows["head"])),
        **{name: rows[field].map(visible) for name, field in TOKENS.items()},
        "places": rows["places"],
        **{name: rows[field] for name, field in columns.items()},
        "lift of the text": [f"{number(None if pd.isna(x) else x)} ({hits:,} of {n:,})" for x, hits, n in lifts],
    }
    digits = {"price (nats)": 3, "on balance (nats)": 3}
    return told.table(pd.DataFrame(shown), caption, digits, dict.fromkeys(TOKENS, "token"), csv=csv)


def eigenvalues(results: Results) -> Figure | None:
    """Draw the OV positivity of every head, and OV eigenvalues of one head per depth (docs/framework.md §3.5)."""
    t = Frames(results.cells)
    heads = t.heads.sort_values("copying_positivity", ascending=False, kind="stable")
    if heads.empty:
        return None
    planes = list(t.eigenvalues.merge(heads.drop_duplicates("n_layers")).groupby("n_layers"))
    found = {
        "cell": heads["cell"],
        "layers": heads["n_layers"],
        "group": heads["n_layers"].map(layers_label) + ": L" + heads["layer"].astype(str),
        "head": labels(heads),
        "positivity": heads["copying_positivity"],
    }
    data = pd.DataFrame(found).sort_values(["layers", "group", "cell", "head"], kind="stable", ignore_index=True)

    def paint(canvas: Canvas) -> None:
        first, *others = row(canvas, 1 + len(planes))
        _positivity(first, data)
        for ax, (_, values) in zip(others, planes, strict=True):
            _plane(ax, values)

    caption = (
        f"Left: all heads; dashed: our threshold, {COPYING}. Right: OV eigenvalues of the head with the highest "
        "positivity for each number of layers."
    )
    size = (4.4 * (1 + len(planes)), 4.0)
    return picture("eigenvalues", "Copying heads by their OV eigenvalues", caption, data, size, paint)


def _positivity(ax: Axes, data: pd.DataFrame) -> None:
    groups = list(dict.fromkeys(data["group"]))
    colours = {g: symbols.layer_colour(int(g.split()[0])) for g in groups}
    sns.stripplot(
        data, x="positivity", y="group", hue="group", palette=colours, jitter=False, alpha=0.45, size=8, ax=ax
    )
    ax.axvline(COPYING, color=symbols.FAINT, ls="--", lw=1.2, zorder=0)
    ax.set(xlim=(-1.05, 1.05), ylabel="", xlabel=f"OV eigenvalue positivity {symbols.POSITIVITY} (−1..1)")
    ax.set_title("all heads")


def _plane(ax: Axes, values: pd.DataFrame) -> None:
    head = values.iloc[0]
    scale = max(float((values["real"] ** 2 + values["imag"] ** 2).max() ** 0.5), 1e-30)
    axes_through_zero(ax)
    colour = symbols.layer_colour(int(head["n_layers"]))
    sns.scatterplot(x=values["real"] / scale, y=values["imag"] / scale, color=colour, s=45, alpha=0.75, ax=ax)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xlabel="Re λ / max |λ|", ylabel="Im λ / max |λ|")
    ax.set_box_aspect(1)
    label = head_label(int(head["layer"]), int(head["head"]))
    ax.set_title(f"{head['cell']}, head {label}:\npositivity {number(head['copying_positivity'])}")


THEME = Theme(
    TITLE,
    section,
    (eigenvalues,),
    {"eigenvalues": ("eigenvalues", "heads"), "copying_heads": ("heads", "copying", "ablations")},
    {
        "skip_trigram": DetectorText(
            "skip-trigrams, by model and text",
            "source … destination → out; entries of the atlas that the text confirms",
        ),
        "skip_trigram_model": DetectorText(
            "skip-trigrams, by the model alone",
            "the same; triples whose source raises the log-probability of the output through a head by at least half a "
            "nat, on documents that were not used to choose them, whether or not the text confirms them",
        ),
    },
    ("skip_trigram", "skip_trigram_model", "copying"),
    tables=("skip_trigrams", "skip_trigram_bugs", "eigenvalues", "copying"),
)
