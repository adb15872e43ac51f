"""The section on models that were led to induction on text where it hardly pays (docs/framework.md §6.7)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.formatting import millions, number, plural, signed
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row
from pathsum.page.document import Column, Section, Table
from pathsum.records.doses import DoseRow
from pathsum.records.results import Results
from pathsum.report.theme import Figures, Theme

TITLE = "Where induction hardly pays"


def section(results: Results, _: Figures) -> Section:
    """Show every model of the experiment in a table."""
    if not results.doses:
        return Section(TITLE, ("The experiment (docs/log/prose.md) was not run.",))
    text = (
        "All models have two layers of four heads and differ in nothing but the weight and the seed. The key edge "
        "leads from the first-layer head with the highest previous-token score to the second-layer head with the "
        "highest prefix matching; it is cut by giving the later head's keys the write of another window. Heads are "
        "chosen on tuning documents and random tokens, and costs are measured on verdict documents."
    )
    return Section(TITLE, (text,), (_table(results.doses),))


def _table(doses: Sequence[DoseRow]) -> Table:
    return Table.of(
        doses,
        Column("weight", "weight", digits=0),
        Column("seed", "seed"),
        Column("onset (tokens)", "onset_tokens"),
        Column("prefix matching, led", "matching_led"),
        Column("prefix matching, released", "matching"),
        Column("previous token", "previous_token"),
        Column("held-out loss (nats)", "loss_nats", digits=3),
        Column("cost of cutting the key edge, on repeats (nats)", "cut_on_repeats_nats", digits=3),
        Column("elsewhere (nats)", "cut_elsewhere_nats", digits=3),
        caption="Models led to induction on prose by a weight of repeats in the loss, which was held for the first "
        "third of training and was 1 in the last third.",
        csv="dose_response.csv",
    )


def by_weight(doses: Sequence[DoseRow]) -> dict[float, list[DoseRow]]:
    """Return the models of each weight, in ascending order of weights."""
    return {w: [row for row in doses if row.weight == w] for w in sorted({row.weight for row in doses})}


def paragraph(doses: Sequence[DoseRow]) -> str:
    """State, for each weight, how many models have an onset and its median, what remains of prefix matching after the
    release, what cutting the key edge costs, and the loss against models that were never led. Empty without models."""
    if not doses:
        return ""
    kinds = by_weight(doses)
    onsets = "; ".join(f"{weight:g}: {_onsets(rows)}" for weight, rows in kinds.items())
    plain = {row.seed: row.loss_nats for row in doses if row.weight == 1}
    led = [row for row in doses if row.weight > 1 and row.onset_tokens is not None]
    after = ""
    if led and plain:
        kept, held = (statistics.median(getattr(row, what) for row in led) for what in ("matching", "matching_led"))
        cost = statistics.median(row.cut_on_repeats_nats for row in led)
        never = statistics.median(row.cut_on_repeats_nats for row in doses if row.weight == 1)
        losses = [row.loss_nats - plain[row.seed] for row in led if row.seed in plain]
        after = (
            f" After the release, the median prefix matching of models with an onset is {number(kept)} (when led "
            f"{number(held)}); cutting the key edge costs them {number(cost)} nats on tokens that complete a repeat "
            f"(never led: {number(never)}), and their loss is {signed(statistics.median(losses), 3)} nats from that of "
            "models never led."
        )
    return (
        "On English prose, whether and when induction heads form depends on what they are worth. Tokens that complete "
        "a pair seen before in the window had a weight in the loss of the first third of training, which fell to 1 by "
        f"the end of the second. Models with an onset, by weight: {onsets}.{after}"
    )


def _onsets(rows: Sequence[DoseRow]) -> str:
    found = [row.onset_tokens for row in rows if row.onset_tokens is not None]
    count = f"{len(found)} of {plural(len(rows), 'model')}"
    return f"{count}, at {millions(statistics.median(found))} tokens" if found else count


def dose_response(results: Results) -> Figure | None:
    """Draw, against the weight, the onset, prefix matching when led and when released, the cost of cutting the key
    edge, and the loss against the model of the same seed that was never led. None without models."""
    doses = results.doses
    if not doses:
        return None
    data = pd.DataFrame([vars(dose) for dose in doses])
    plain = data[data["weight"] == 1].set_index("seed")["loss_nats"]
    data["loss_above_never_led_nats"] = data["loss_nats"] - data["seed"].map(plain)
    weights = sorted(data["weight"].unique())
    colour, last = symbols.layer_colour(2), data["tokens"].max() / 1e6
    seed = data["seed"].rank(method="dense")
    x = data["weight"].map(weights.index) + 0.08 * (seed - seed.mean())  # beside each other

    def dots(ax: Axes, column: str, filled: bool = True, scale: float = 1.0) -> None:
        face = colour if filled else "white"
        ax.plot(x, data[column] * scale, "o", ms=6, mfc=face, mec=colour, mew=1.2, ls="none")

    def paint(canvas: Canvas) -> None:
        onsets, matching, cost, loss = row(canvas, 4)
        dots(onsets, "onset_tokens", scale=1e-6)
        none = x[data["onset_tokens"].isna()]
        onsets.plot(none, [last] * len(none), "^", ms=7, mfc="white", mec=colour, ls="none")
        onsets.set(ylabel="onset (million tokens)", ylim=(0, 1.08 * last), title="Onset (triangle: none)")
        dots(matching, "matching_led", filled=False)
        dots(matching, "matching")
        matching.set(ylabel=symbols.PREFIX_MATCHING, title="open: led; filled: released")
        dots(cost, "cut_on_repeats_nats")
        dots(cost, "cut_elsewhere_nats", filled=False)
        cost.set(ylabel="rise of the loss (nats per token)", title="Key edge cut\nfilled: repeats; open: others")
        loss.axhline(0, color=symbols.FAINT, lw=0.8)
        dots(loss, "loss_above_never_led_nats")
        loss.set(ylabel="loss above never led\n(nats per token)", title="After the release")
        for ax in canvas.axes:
            ax.set(xlabel="weight of repeats, at first", xticks=range(len(weights)))
            ax.set_xticklabels([f"{weight:g}" for weight in weights])

    caption = (
        f"A dot per model of two layers on English prose, {plural(data['seed'].nunique(), 'seed')} each. The weight "
        "was held for the first third of training and was 1 in the last third."
    )
    return picture("dose_response", "Dose and response", caption, data, (14.4, 3.8), paint)


THEME = Theme(TITLE, section, figures=(dose_response,), sources={"dose_response": ("dose_response",)})
