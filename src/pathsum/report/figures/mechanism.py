"""The mechanisms of zero, one and two layers as diagrams, with the heads and the numbers of one model each."""

import math
import textwrap
from collections import Counter
from operator import attrgetter

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from pathsum.claims.content import CURRENT, PREVIOUS, pair_share
from pathsum.claims.formatting import head_label, number, signed
from pathsum.claims.one_layer import confirmed
from pathsum.records.ablations import AblationRow
from pathsum.records.corpus import BigramRow
from pathsum.records.results import Results
from pathsum.report.figures.base import NARROW, Figure, deep_in_detail, in_detail, picture, row
from pathsum.report.figures.symbols import FAINT, drawable, layer_colour

NEXT, LEAST = 5, 3  # next tokens in the diagram of zero layers, at most and at least
INK = "#1b1b1b"
SIZE = (10.4, 3.5)  # inches
ON_PHONE = (4.8, 6.4)
TRIGRAM = ["source", "destination", "out", "qk_nats", "effect_logits", "change_nats"]


def mechanism_zero(results: Results) -> Figure | None:
    """Draw the direct path, and P(next | token) in the text and by the model. None without zero-layer models."""
    cell = in_detail(results).get(0)
    rows = cell.rows(BigramRow) if cell else []
    if cell is None or not rows:
        return None
    counts = Counter(r.token for r in rows).most_common()
    token = next((t for t, n in counts if n >= LEAST and sum(map(str.isalpha, t)) > 2), rows[0].token)
    shown = sorted((r for r in rows if r.token == token), key=lambda r: -r.corpus_log_prob_nats)[:NEXT]
    probabilities = [(r.next, math.exp(r.corpus_log_prob_nats), math.exp(r.model_log_prob_nats)) for r in shown]
    columns = ["cell", "token", "next", "corpus", "model"]
    data = pd.DataFrame([(cell.name, token, *row) for row in probabilities], columns=columns)
    colour = layer_colour(0)

    def paint(canvas: Canvas) -> None:
        diagram, bars = row(canvas, 2, widths=(5.0, 4.0))
        _empty(diagram, (-0.6, 5.2), (-0.5, 2.5))
        for x, text in ((0.2, drawable(token)), (1.9, "$W_E$"), (3.3, "$W_U$"), (4.7, "next\ntoken")):
            _box(diagram, x, 1.0, text, colour if "$" in text else INK)
        for start, end in ((0.75, 1.45), (2.35, 2.85), (3.75, 4.15)):
            _arrow(diagram, (start, 1.0), (end, 1.0), colour)
        _text(diagram, 0.2, 0.25, "current token", color=INK)
        _text(diagram, 2.6, 1.75, "direct path $W_U W_E$:\none table, log P(next | current)", 10.0)
        places = range(len(shown))
        bars.barh([p - 0.2 for p in places], data["corpus"], 0.36, color=FAINT, label="text")
        bars.barh([p + 0.2 for p in places], data["model"], 0.36, color=colour, label="model")
        bars.set_yticks(places, [drawable(name) for name in data["next"]], parse_math=False)
        bars.invert_yaxis()
        bars.set(xlabel=f"P(next | {drawable(token)})".replace("$", r"\$"))
        bars.legend(loc="lower right")

    caption = f"{cell.name}: probabilities of the likeliest next tokens after one frequent token."
    return picture("mechanism_zero", "The direct path is a bigram table", caption, data, SIZE, paint, (4.8, 5.6))


def mechanism_one(results: Results) -> Figure | None:
    """Draw the confirmed skip-trigram with the largest |summed effect|, of words if there is one."""
    cell = in_detail(results).get(1)
    rows = confirmed(cell) if cell else []
    if cell is None or not rows:
        return None
    words = [r for r in rows if _word(r.source) and _word(r.out) and "\n" not in r.destination]
    top, colour = (words or rows)[0], layer_colour(1)
    head = head_label(top.layer, top.head)

    def paint(canvas: Canvas) -> None:
        ax = _diagram(canvas, (-0.5, 10.3), (-0.75, 3.2))
        for x, text, role in ((0.7, drawable(top.source), "source"), (6.0, drawable(top.destination), "destination")):
            _box(ax, x, 0.0, text, INK)
            _text(ax, x, -0.65, role, turned=(x + 0.55, 0.0))
        _text(ax, 3.3, 0.0, "… any tokens …", 10.0, va="center", color=INK)
        _box(ax, 6.0, 1.9, f"head {head}", colour)
        _arrow(ax, (6.0, 0.35), (6.0, 1.55), FAINT)
        _arrow(ax, (5.2, 1.9), (0.85, 0.38), colour, bend=0.22)
        text = f"QK circuit: attention score {number(top.qk_nats, 1)} nats above the mean over keys"
        _text(ax, 2.6, 2.25, text, 9.5, turned=(2.6, 2.5), color=colour)
        _box(ax, 9.3, 1.9, drawable(top.out), INK)
        _text(ax, 9.3, 1.25, "output", turned=(9.85, 1.9))
        _arrow(ax, (6.75, 1.9), (8.55, 1.9), colour)
        text = f"attention × OV:\nlogit {signed(top.effect_logits, 1)}"
        _text(ax, 7.65, 2.1, text, 9.5, turned=(7.65, 2.7), color=colour)
        _text(ax, 8.8, 0.35, f"log P(output) {signed(top.change_nats, 1)} nats", 10.0, turned=(7.65, 0.6), color=INK)

    values = {"cell": cell.name, "head": head} | {name: getattr(top, name) for name in TRIGRAM}
    caption = (
        f"{cell.name}: the confirmed skip-trigram{' of words' * bool(words)} with the largest total effect. After this "
        f"source, the output follows the destination {number(top.text_lift, 1)} times as often as it does in general."
    )
    return picture(
        "mechanism_one", "One of a head's skip-trigrams", caption, pd.DataFrame([values]), SIZE, paint, ON_PHONE
    )


def mechanism_two(results: Results) -> Figure | None:
    """Draw the induction mechanism of the two-layer model. None if no induction head has formed in it."""
    cell = deep_in_detail(results)
    previous, induction = (cell.previous_token_head(), cell.formed_induction_head()) if cell else (None, None)
    if cell is None or previous is None or induction is None:
        return None
    early, late = head_label(previous.layer, previous.head), head_label(induction.layer, induction.head)
    edge = ("edge", "K", "resample", previous.layer, previous.head, induction.layer, induction.head)
    fields = attrgetter("target", "kind", "method", "early_layer", "early_head", "layer", "head")
    cost = next((a.second_copy_nats for a in cell.rows(AblationRow) if fields(a) == edge), None)
    colour = layer_colour(2)

    def paint(canvas: Canvas) -> None:
        ax = _diagram(canvas, (-0.6, 10.8), (-0.75, 4.5))
        for x, text in ((0.5, "A"), (2.3, "B"), (7.6, "A")):
            _box(ax, x, 0.0, text, INK)
        _text(ax, 4.9, 0.0, "…", 14.0, va="center", color=FAINT)
        _text(ax, 0.5, -0.65, "earlier copy", turned=(0.5, -0.8))
        _text(ax, 7.6, -0.65, "current token", turned=(7.6, -0.8))
        _box(ax, 2.3, 1.7, f"head {early}", colour)
        _arrow(ax, (2.3, 0.35), (2.3, 1.35), FAINT)
        _arrow(ax, (1.75, 1.55), (0.6, 0.38), colour, bend=0.2)
        _text(
            ax,
            0.75,
            1.35,
            f"attends to the\nprevious token:\n{number(previous.previous_token)}",
            9.5,
            turned=(0.75, 2.1),
        )
        _box(ax, 7.6, 3.3, f"head {late}", colour)
        _arrow(ax, (7.6, 0.35), (7.6, 2.95), FAINT)
        _text(ax, 8.25, 1.5, "query:\n“I am A”", 9.5, color=INK)
        _arrow(ax, (3.05, 1.85), (6.8, 3.15), colour, bend=-0.05, lw=3.2)
        cut = "" if cost is None else f"\ncut it: second copy {number(cost)} nats worse"
        _text(ax, 4.15, 3.0, f"key: “the token before me is A”{cut}", 9.5, turned=(4.15, 3.75), color=colour)
        _arrow(ax, (6.85, 3.0), (2.75, 0.3), colour, bend=-0.12, ls="--")
        _text(ax, 5.6, 0.75, f"attends to B: {number(induction.prefix_matching)}", 9.5)
        _box(ax, 10.0, 3.3, "B", INK)
        _text(ax, 10.0, 2.6, "predicted")
        _arrow(ax, (8.35, 3.3), (9.5, 3.3), colour)
        text = f"OV circuit copies\n(positivity {number(induction.copying_positivity)})"
        _text(ax, 8.95, 3.75, text, 9.5, turned=(8.95, 4.15))

    numbers = {
        "cell": cell.name,
        "previous_token_head": early,
        "attention_to_previous_token": previous.previous_token,
        "induction_head": late,
        "prefix_matching": induction.prefix_matching,
        "copying_positivity": induction.copying_positivity,
        "key_edge_second_copy_nats": cost,
        "share_current_by_previous": pair_share(cell, CURRENT, PREVIOUS),
    }
    caption = (
        f"The mechanism in {cell.name}, with mean attention (0 to 1) and the rise of the loss on the second copy of "
        "repeated random tokens (nats per token) under resample ablation of the key edge."
    )
    title = "An induction head reads a previous-token head through its keys"
    return picture("mechanism_two", title, caption, pd.DataFrame([numbers]), (10.4, 4.3), paint, ON_PHONE)


def _word(token: str) -> bool:
    return any(c.isalpha() for c in token)


def _empty(ax: Axes, xlim: tuple[float, float], ylim: tuple[float, float]) -> None:
    ax.set(xlim=xlim, ylim=ylim)
    ax.set_axis_off()


def _diagram(canvas: Canvas, xlim: tuple[float, float], ylim: tuple[float, float]) -> Axes:
    """Return axes for a diagram; turned, so that tokens go down, on a narrow canvas."""
    ax = canvas.subplots()
    if canvas.get_figwidth() < NARROW:
        _empty(ax, (ylim[0] - 0.55, ylim[1] + 0.45), xlim[::-1])
    else:
        _empty(ax, xlim, ylim)
    return ax


def _at(ax: Axes, x: float, y: float) -> tuple[float, float]:
    return (y, x) if ax.yaxis_inverted() else (x, y)


def _text(
    ax: Axes, x: float, y: float, text: str, size: float = 9.0, turned: tuple[float, float] | None = None, **style: str
) -> None:
    """Write ``text``, in a turned diagram at ``turned`` and in short lines."""
    if ax.yaxis_inverted():
        (x, y), style = turned or (x, y), {"va": "center", **style}
        text = "\n".join(textwrap.fill(line, 25) for line in text.split("\n"))
    ax.text(*_at(ax, x, y), text, ha="center", fontsize=size, **style)  # type: ignore[arg-type]


def _box(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    shape = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": colour, "linewidth": 1.6}
    parsed = "$W" in text
    ax.text(*_at(ax, x, y), text, ha="center", va="center", fontsize=11, color=colour, bbox=shape, parse_math=parsed)


def _arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, bend: float = 0.0, lw: float = 1.6,
    ls: str = "-",
) -> None:  # fmt: skip
    shape = {"arrowstyle": "-|>", "color": colour, "lw": lw, "ls": ls, "connectionstyle": f"arc3,rad={bend}"}
    if ax.yaxis_inverted():
        shape |= {"shrinkA": 4, "shrinkB": 9}  # points; boxes are wider than high
    ax.annotate("", xy=_at(ax, *end), xytext=_at(ax, *start), arrowprops=shape)
