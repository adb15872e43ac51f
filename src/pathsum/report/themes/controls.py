"""The section on controls: models outside the grid in which induction must form, or must not form."""

from __future__ import annotations

import itertools

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as Canvas

from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.formatting import layers_label, millions
from pathsum.figures import symbols
from pathsum.figures.base import Figure, picture, row
from pathsum.figures.learning import best, led_caption, shade_led
from pathsum.page.document import Column, Section, Table, Text
from pathsum.records.results import FORMED, Cell, Results
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Controls"
KINDS = {  # a sentence for the report, and whether induction must form
    "smeared": (
        "With smeared keys, which mix in the key of the previous token, one layer can do induction without a "
        "previous-token head.",
        True,
    ),
    "shuffled": (
        "Where the tokens of each window are in random order, it does not help to know what followed an earlier copy, "
        "so a model trained on such windows should form no induction.",
        False,
    ),
    "untrained": ("An untrained model has learned nothing.", False),
}


def section(results: Results, figures: Figures) -> Section:
    """Show the controls, and whether the outcome of each is the expected one."""
    if not results.controls:
        return Section(TITLE, ("This sweep has no controls.",))
    kinds = list(dict.fromkeys(kind for c in results.controls.values() if (kind := _kind(c)) is not None))
    first = "Controls are models outside the grid. " + (
        "For some of them, it is known in advance whether induction should form."
        if kinds
        else "For none of them is it known in advance whether induction should form."
    )
    text = " ".join([first, *(KINDS[kind][0] for kind in kinds)])
    table = Table.of(
        results.controls.values(),
        Text("control", "name"),
        Column("layers", "summary.n_layers"),
        Text("expected", lambda c: outcome(c)[0]),
        Column("prefix matching", "summary.prefix_matching", 3),
        Column("previous token", "summary.previous_token"),
        Column("in-context loss drop (nats)", "summary.in_context_loss_drop_nats"),
        Column("tokens", lambda c: millions(c.summary.tokens_seen)),
        Text("verdict", lambda c: outcome(c)[1]),
        caption="The prefix matching that is expected of each control (–: no value is expected), and the scores of its "
        "best heads at the end of training.",
        csv="controls.csv",
    )
    return Section(TITLE, (text,), (*drawn(figures, "controls"), table))


def _kind(cell: Cell) -> str | None:
    """Return the kind of a control (a key of KINDS); None if no outcome is expected of it."""
    s = cell.summary
    if s.tokens_seen == 0:
        return "untrained"
    if s.shuffled:
        return "shuffled"
    return "smeared" if s.smeared_keys and s.n_layers == 1 else None


def outcome(cell: Cell) -> tuple[str, str]:
    """Return the expected outcome of a control, and whether it was observed. Both are "–" if no outcome is expected or
    prefix matching was not measured."""
    matching, kind = cell.summary.prefix_matching, _kind(cell)
    if kind is None or matching is None:
        return "–", "–"
    _, formed = KINDS[kind]
    holds = matching >= FORMED if formed else matching <= NOT_FORMED
    expected = f"prefix matching {f'≥ {FORMED}' if formed else f'≤ {NOT_FORMED}'}"
    return expected, "as expected" if holds else "not as expected"


def _expected(results: Results) -> str:
    """State which controls should have induction heads at the end of training and which should not."""
    kinds = {name: KINDS[kind][1] for name, c in results.controls.items() if (kind := _kind(c)) is not None}
    said = []
    for wanted, text in ((True, "high in"), (False, "near zero in")):
        if names := [name for name, formed in kinds.items() if formed is wanted]:
            said.append(f"{text} {' and '.join(f'“{name}”' for name in names)}")
    others = "; other controls may end anywhere" * (len(kinds) < len(results.controls))
    return f"Prefix matching should end {', and '.join(said)}{others}." if said else "No outcome is expected."


def controls(results: Results) -> Figure | None:
    """Draw the best prefix matching against tokens seen, for the controls and for the models of the grid with heads.
    None without controls that have heads."""
    rows = [
        (c.name, c.summary.n_layers, e.tokens_seen / 1e6, matching)
        for c in (*results.cells.values(), *results.controls.values())
        for e in c.log
        if (matching := best(e.prefix_matching)) is not None
    ]
    data = pd.DataFrame(rows, columns=["cell", "n_layers", "tokens_millions", "prefix_matching"])
    if not any(name in results.controls for name in data["cell"]):
        return None

    def paint(canvas: Canvas) -> None:
        (ax,) = row(canvas, 1)
        colours = dict(zip(results.controls, sns.color_palette("colorblind", len(results.controls)), strict=True))
        dashes = dict(zip(colours, itertools.cycle(("-", "--", ":")), strict=False))
        for name in dict.fromkeys(data["cell"]):
            part = data[data["cell"] == name]
            n_layers = int(part["n_layers"].iloc[0])
            x, y = part["tokens_millions"], part["prefix_matching"]
            if name in colours:
                label, dot = f"{name.replace('_', ' ')} ({layers_label(n_layers)})", "o" * (len(part) == 1)
                ax.plot(x, y, color=colours[name], ls=dashes[name], lw=2.4, marker=dot, label=label)
            else:
                ax.plot(x, y, color=symbols.FAINT, lw=0.9, alpha=0.5)
        shade_led(ax, results)
        ax.set(xlabel=symbols.TOKENS_SEEN, ylabel=symbols.PREFIX_MATCHING)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2, handlelength=2, frameon=False)

    caption = f"{_expected(results)} Thin lines: the models of the grid.{led_caption(results)}"
    return picture("controls", "Controls", caption, data, (5.6, 4.8), paint)


THEME = Theme(TITLE, section, figures=(controls,), sources={"controls": ("log", "summary")}, tables=("controls",))
