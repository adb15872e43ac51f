"""Models that were led to induction on text where it hardly pays (docs/framework.md §6.7). The words are in
dose_response.md and in chapters/learning.md."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import plural
from pathsum.core.storage import frame
from pathsum.records.doses import DoseRow
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, picture, row
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.statistics.phase_change import LEAST_RISE

TITLE = "Where induction hardly pays"
HEADINGS = {
    "onset_tokens": "onset (tokens)",
    "matching_led": "prefix matching, led",
    "matching": "prefix matching, released",
    "previous_token": "previous token",
    "loss_nats": "held-out loss (nats)",
    "cut_on_repeats_nats": "cost of cutting the key edge, on repeats (nats)",
    "cut_elsewhere_nats": "elsewhere (nats)",
}
PANELS = (  # columns, and whether their dots are filled; label of the axis; title
    ({"onset_tokens": True}, "onset (million tokens)", "Onset (triangle: none)"),
    ({"matching_led": False, "matching": True}, symbols.PREFIX_MATCHING, "open: led; filled: released"),
    ({"cut_on_repeats_nats": True, "cut_elsewhere_nats": False}, "rise of the loss (nats per token)",
     "Key edge cut\nfilled: repeats; open: others"),
    ({"loss_above_never_led_nats": True}, "loss above never led\n(nats per token)", "After the release"),
)  # fmt: skip


def facts(doses: Sequence[DoseRow]) -> dict[str, Any]:
    """Return the models, onsets by weight, medians over models never led, over those led to an onset and over all that
    were led, and how many of those with an onset have none by the prefix matching in which they end."""
    if not doses:
        return {}
    models = frame(doses, DoseRow).astype({"onset_tokens": float})
    never = models[models["weight"] == 1]
    models["loss_above_never_led_nats"] = models["loss_nats"] - models["seed"].map(never.set_index("seed")["loss_nats"])
    all_led = models[models["weight"] > 1]
    led = all_led[all_led["onset_tokens"].notna()]
    return {
        "models": models,
        "onsets": dict(list(models.groupby("weight")["onset_tokens"])),
        "compared": len(never) > 0 and len(led) > 0,
        "never": never.median(),
        "led": led.median(),
        "all_led": all_led.median(),
        "faded": int((led["matching"] < LEAST_RISE).sum()),
    }


def table(found: dict[str, Any]) -> Table:
    shown = found["models"][["weight", "seed", *HEADINGS]].astype({"onset_tokens": "Int64"}).rename(columns=HEADINGS)
    digits = {"weight": 0} | {HEADINGS[name]: 3 for name in ("loss_nats", "cut_on_repeats_nats", "cut_elsewhere_nats")}
    caption = "Models led to induction on prose by a weight of repeats in the loss."
    return told.table(shown, caption, digits, csv="dose_response.csv")


def dose_response(results: Results) -> Figure | None:
    """Draw the columns of ``PANELS`` against the weight."""
    if not (found := facts(results.doses)):
        return None
    data, weights = found["models"], list(found["onsets"])
    colour, last = symbols.layer_colour(2), data["tokens"].max() / 1e6
    seed = data["seed"].rank(method="dense")
    x = data["weight"].map(weights.index) + 0.08 * (seed - seed.mean())  # beside each other

    def paint(canvas: Canvas) -> None:
        axes = row(canvas, len(PANELS))
        axes[-1].axhline(0, color=symbols.FAINT, lw=0.8)
        drawn = data.assign(onset_tokens=data["onset_tokens"] * 1e-6)
        for ax, (columns, label, title) in zip(axes, PANELS, strict=True):
            for column, filled in columns.items():
                face = colour if filled else "white"
                ax.plot(x, drawn[column], "o", ms=6, mfc=face, mec=colour, mew=1.2, ls="none")
            ax.set(ylabel=label, title=title, xlabel="weight of repeats, at first", xticks=range(len(weights)))
            ax.set_xticklabels([f"{weight:g}" for weight in weights])
        none = x[data["onset_tokens"].isna()]
        axes[0].plot(none, [last] * len(none), "^", ms=7, mfc="white", mec=colour, ls="none")
        axes[0].set_ylim(0, 1.08 * last)

    caption = f"A dot per model of two layers on English prose, {plural(data['seed'].nunique(), 'seed')} each."
    return picture("dose_response", "Dose and response", caption, data, (14.4, 3.8), paint)


section = told.from_results(TITLE, "dose_response", lambda results: facts(results.doses), doses=table)
THEME = Theme(TITLE, section, figures=(dose_response,), sources={"dose_response": ("dose_response",)})
