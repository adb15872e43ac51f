"""Whether the induction circuit suffices for induction (docs/framework.md §5.10)."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import span
from pathsum.claims.sufficiency import MOST
from pathsum.records.results import Results
from pathsum.records.roles import MATCHES
from pathsum.records.sufficiency import FROZEN, HEADS, PATHS, Kept
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, of_models, picture, row, side_by_side
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.report.told import Frames, intervals

TITLE = "The induction circuit alone"
PANELS = {"first-layer heads, with the induction heads": HEADS[1:], "paths into the induction head": (*PATHS, *FROZEN)}
ASKED = (Kept.CIRCUIT, Kept.KEY, Kept.KEYS, Kept.PREFERENCE, Kept.MINIMAL)  # the other sets are controls or parts


def facts(t: Frames) -> dict[str, Any]:
    rows = t.sufficiency[t.sufficiency["n_layers"] > 1]
    rows = rows if rows.empty else rows[rows["cell"].map(t.log.groupby("cell")["matching"].last()) >= MATCHES]
    if rows.empty:
        return {}
    shares = {kept.name: rows[rows["kept"] == kept]["matching_share"].dropna().astype(float) for kept in Kept}
    several = rows[rows["kept"] == Kept.KEYS]["heads"].str.contains(" ")
    return {"rows": rows, "shares": shares, "several": several, "matches": MATCHES}


def heads(found: dict[str, Any]) -> Table:
    rows = found["rows"][found["rows"]["kept"].isin(HEADS[1:])]
    shown = {
        "model": rows["cell"],
        "kept with the induction heads": rows["kept"],
        "heads": rows["heads"].replace("", "none") + " of " + rows["n_heads"].astype(str),
        "prefix matching left (share)": intervals(rows, "matching_share", "matching_low", "matching_high"),
        "second-copy gain left (share)": intervals(rows, "gain_share", "gain_low", "gain_high"),
        "loss drop on text left (share)": intervals(rows, "loss_drop_share", "loss_drop_low", "loss_drop_high"),
    }
    caption = (
        "Share of the whole model's value that remains, with 95 % intervals. “Two back” and “all but previous token” "
        "are controls."
    )
    texts = ["kept with the induction heads", "heads"]
    return told.table(pd.DataFrame(shown), caption, texts=texts, csv="sufficiency.csv")


def paths(found: dict[str, Any]) -> Table:
    shown = [
        {
            "kept paths": kept.value,
            "prefix matching left (median share)": shares.median(),
            "range": span(list(shares)),
            f"at least {MOST}": f"{sum(shares >= MOST)} of {len(shares)}",
        }
        for kept in (*PATHS, *FROZEN)
        if len(shares := found["shares"][kept.name])
    ]
    caption = "Share left if the head's queries and keys read only these paths, over models (another head: over heads)."
    return told.table(pd.DataFrame(shown), caption, texts=["kept paths"], source="sufficiency")


def sufficiency(results: Results) -> Figure | None:
    """Draw the share of prefix matching that remains with each set of heads and of paths, by model."""
    if not (found := facts(Frames(results.cells))):
        return None
    rows = found["rows"][found["rows"]["kept"] != Kept.MODEL]
    data = rows.set_index("cell").drop(columns=["n_layers", "n_heads"]).reset_index()

    def paint(canvas: Canvas) -> None:
        for ax, (title, some) in zip(row(canvas, len(PANELS)), PANELS.items(), strict=True):
            kept = [k for k in some if k in set(data["kept"])]
            part = data[data["kept"].isin(kept)].dropna(subset="matching_share")
            x, y = part["matching_share"], side_by_side(part["kept"], kept, 0.5)
            colours = [symbols.layer_colour(2) if k in ASKED else symbols.FAINT for k in part["kept"]]
            of_models([ax.scatter(x, y, c=colours, s=34, alpha=0.7, linewidths=0)], part["cell"], "x")
            ax.axvline(MOST, color=symbols.FAINT, ls="--", lw=1.2, zorder=0)
            ax.set_yticks(range(len(kept)), [str(k) for k in kept])
            ax.set(xlabel="share of prefix matching left", xlim=(-0.05, 1.1), ylim=(len(kept) - 0.5, -0.5), title=title)

    caption = (
        f"A dot per model ({len(found['several'])}; another head: per head). Gray: controls and parts; dashed: what "
        "the claims need."
    )
    return picture("sufficiency", "What suffices for induction", caption, data, (12.5, 4.2), paint)


section = told.from_facts(TITLE, "sufficiency", facts, heads=heads, paths=paths)
THEME = Theme(TITLE, section, figures=(sufficiency,), tables=("sufficiency",))
