"""The papers' numbers and those of this suite (docs/framework.md §8), one per paragraph of references.md."""

from typing import Any

import pandas as pd

from pathsum.claims.content import virtual_heads_little
from pathsum.claims.formatting import millions
from pathsum.claims.phase_change import AFTER, BEFORE, icl_loss_drop_before_onset
from pathsum.records.results import FORMED, Results
from pathsum.report import told
from pathsum.report.page.document import Section
from pathsum.report.theme import Figures, Theme
from pathsum.report.told import Frames, listed

TITLE = "Comparison with the papers' numbers"
COLUMNS = ["quantity", "papers", "ours", "agrees"]


def facts(results: Results) -> dict[str, Any]:
    two = {cell.name: cell for cell in results.of_depth(2)}
    t, one = Frames(two), [cell.summary for cell in results.of_depth(1)]
    changed = t.cells[t.cells["onset_tokens"].notna()]
    before = pd.Series({name: icl_loss_drop_before_onset(two[name]) for name in changed.index}, dtype=float)
    end = changed["icl_loss_drop_nats"].astype(float)
    formed = t.induction.merge(t.heads)["prefix_matching"]
    hops, orders = t.content[t.content["kind"] == "hops"], t.terms[t.terms["layer"].isna()]
    groups = t.joint_copying[t.joint_copying["layer"] > 0].sort_values("top1", ascending=False, kind="stable")
    onsets = listed(changed["onset_tokens"])
    return {
        "copying": sum(s.copying_heads or 0 for s in one),
        "heads": sum(s.n_heads for s in one),
        "late": t.cells["icl_late_token"],
        "before": listed(before[end.notna()]),
        "rise": listed(end - before),
        "end": listed(end[before.notna()]),
        "first": BEFORE,
        "last": AFTER,
        "least_rise": AFTER - BEFORE,
        "onsets": [millions(tokens) for tokens in sorted({min(onsets), max(onsets)})] if onsets else [],
        "scale": max(onsets, default=0) >= 1e9,
        "matching": listed(formed[formed >= FORMED]),
        "previous": listed(t.cells["previous_token"]),
        "hops": [listed(hops.loc[hops["content"] == str(n), "own_scale_nats"]) for n in range(3)],
        "orders": [listed(orders.loc[orders["order"] == n, "own_scale_nats"]) for n in range(3)],
        "little": all(virtual_heads_little(cell).passes for cell in two.values()),
        "joint": [f"{100 * share:.0f} %" for share in groups[["best_top1", "top1"]].head(1).to_numpy().ravel()],
        "raised": groups["top1"].max() >= 0.9,
    }


def section(results: Results, _: Figures) -> Section:
    rows = told.section(TITLE, "references", facts(results), {}).paragraphs
    caption = (
        "Values of the papers or of public checkpoints (in parentheses), and ours (ranges over models, or counts). "
        "Agreement: the same kind of effect of similar size; not a statistical test. Loss drops have nothing "
        "subtracted, as in ICL."
    )
    shown = pd.DataFrame([row.split(" | ") for row in rows], columns=COLUMNS)
    return Section(TITLE, (), (told.table(shown, caption, texts=COLUMNS, source="references"),))


THEME = Theme(
    TITLE,
    section,
    sources={"references": ("log", "summary", "heads", "terms", "content", "formation", "joint_copying")},
)
