"""Skip-trigrams, a part of the section on one layer (docs/framework.md §3.8 to §3.10). The words are in
skip_trigrams.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from scipy.special import stdtrit

from pathsum.claims.formatting import head_label, interval, number
from pathsum.claims.one_layer import copying_share, passing_share
from pathsum.records.heads import COPYING
from pathsum.records.results import Cell
from pathsum.records.skip_trigrams import SkipTrigramRow, SkipTrigramTallyRow
from pathsum.report import told
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import Kind, Table
from pathsum.report.told import Frames

ENTRIES_A_HEAD = 4  # skip-trigrams that the table shows per head
BUGS = 8  # rows of the table of skip-trigram bugs
NEAR = 8  # tokens back; a long-range head has less than half of its attention within them
HEAD = ["cell", "layer", "head"]
TOKENS = {"source": "source", "… destination": "destination", "→ out": "out"}
EFFECTS = {"effect (logits)": "effect_logits", "change in log P (nats)": "change_nats"}
PRICES = {
    "price (nats)": "price_nats", "on balance (nats)": "balance_nats", "QK (nats)": "qk_nats", "OV (logit)": "ov_logit",
}  # fmt: skip


def facts(models: Sequence[Cell]) -> dict[str, Any]:
    """Return what text and tables show of the skip-trigrams of ``models``. Empty without skip-trigrams."""
    cells = [c for c in models if c.rows(SkipTrigramRow)]
    if not cells:
        return {}
    t, rows = Frames({c.name: c for c in cells}), [r for c in cells for r in c.rows(SkipTrigramRow)]
    listed = t.skip_trigrams.assign(confirmed=[r.confirmed for r in rows], copies=[r.copies for r in rows])
    tested, tallies = listed[listed["text_lift"].notna()], t.skip_trigram_tallies
    by_head = tested.groupby(HEAD)["confirmed"].agg(["sum", "count"])
    near = t.distances[t.distances["distance"] <= NEAR].groupby(HEAD)["attention"].sum()
    positivity = t.heads.set_index(HEAD)["copying_positivity"]
    far = positivity.index[(positivity > COPYING) & (near.reindex(positivity.index, fill_value=0) < 0.5)]
    best, bugs = t.cells["val_loss_nats"].idxmin(), t.skip_trigram_bugs
    total = (bugs["price_nats"] * bugs["places"]).sort_values(ascending=False, kind="stable")
    shown = listed[(listed["cell"] == best) & (listed["rank"] <= ENTRIES_A_HEAD)]
    return {
        "listed": listed,
        "tested": tested,
        "tested_interval": _over_heads(by_head["sum"], by_head["count"]),
        "tallies": tallies,
        "tallies_interval": _over_heads(tallies["confirmed"], tallies["tested"]),
        "copying": [copying_share(c) for c in cells],
        "candidates_copying": tallies["copying"].sum() / max(1, tallies["candidates"].sum()),
        "passing_copying": passing_share([r for c in cells for r in c.rows(SkipTrigramTallyRow)]),
        "near": NEAR,
        "far": listed[listed["confirmed"]].groupby(HEAD)["copies"].mean().reindex(far),
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


def tables(found: Mapping[str, Any]) -> dict[str, Table]:
    """Return the atlas and the most expensive bugs of the model with the lowest held-out loss, by name."""
    if "best" not in found:
        return {}
    lift = "lift: in the judging documents, with hits of places (–: too few)"
    return {
        "skip_trigrams": _table(
            found["atlas"], EFFECTS, "skip_trigrams.csv",
            f"Atlas of {found['best']}, the one-layer model with the lowest held-out loss: the first {ENTRIES_A_HEAD} "
            f"skip-trigrams of each head. Effect and change: means over places, in some choosing windows; {lift}."
        ),
        "skip_trigram_bugs": _table(
            found["worst"], PRICES, "skip_trigram_bugs.csv",
            f"Bugs of {found['best']} that raise the loss most in total. QK and OV: entries of the head's "
            f"query–key and output–value circuits, above the mean over keys and over outputs; {lift}."
        ),
    }  # fmt: skip


def _table(rows: pd.DataFrame, columns: Mapping[str, str], csv: str, caption: str) -> Table:
    kinds: dict[str, Kind] = dict.fromkeys(TOKENS, "token")
    lifts = zip(rows["text_lift"], rows["text_hits"], rows["text_places"], strict=True)
    shown = {
        "head": list(map(head_label, rows["layer"], rows["head"])),
        **{name: rows[field].map(visible) for name, field in TOKENS.items()},
        "places": rows["places"],
        **{name: rows[field] for name, field in columns.items()},
        "lift of the text": [f"{number(None if pd.isna(x) else x)} ({hits:,} of {n:,})" for x, hits, n in lifts],
    }
    return told.table(pd.DataFrame(shown), caption, {"price (nats)": 3, "on balance (nats)": 3}, kinds, csv=csv)
