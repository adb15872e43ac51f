"""The onset that the law of the other texts expects on each text (docs/framework.md §6.8)."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from pathsum.claims.formatting import millions
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.corpora import text_onsets
from pathsum.report.figures import symbols
from pathsum.report.figures.base import Figure, picture
from pathsum.report.page.document import Table
from pathsum.report.theme import Theme
from pathsum.text.onset_law import fit, forecast

TITLE = "A forecast of the onset"
FIGURE, GREY = "onset_forecast", "#d0d0d0"


def facts(results: Results) -> dict[str, Any]:
    """Return, for each text of the grid and of corpora.csv, the onset and its forecast by the law of the others."""
    own = [text_onsets(name, found) for name, found in {results.corpus.name: results, **results.texts}.items()]
    rows = []
    for text in [*own, *(text for text in results.known if not any(map(text.is_alike, own)))]:
        if text.onset_tokens and (found := forecast(text, results.known)):
            rows.append(
                {
                    "text": text.text,
                    "saving": text.saving_nats,
                    "weight": text.repeat_weight,
                    "expected": found.tokens,
                    "low": found.low,
                    "high": found.high,
                    "trained": text.tokens,
                    "onsets": [tokens for tokens in text.onset_tokens if tokens],
                    "models": len(text.onset_tokens),
                    "onset": text.onset,
                    "held": found.holds(text),
                }
            )
    if not rows:
        return {}
    shown = pd.DataFrame(rows).astype({"onset": float})
    plain = shown[shown["weight"] == 1]
    off = (plain["expected"] / plain["onset"]).dropna()
    law = fit(results.known)
    return {"shown": shown, "plain": plain, "off": pd.concat([off, 1 / off], axis=1).max(axis=1), "law": law}


def table(found: dict[str, Any]) -> Table:
    rows = [
        {
            "text": r.text,
            "an ideal induction head could save (nats per token)": r.saving,
            "weight of repeats": f"{r.weight:g}",
            "expected onset (95 % interval)": f"{millions(r.expected)} ({millions(r.low)} to {millions(r.high)})",
            "tokens of training": millions(r.trained),
            "onsets": ", ".join(map(millions, r.onsets)) or "none",
            "models with an onset": f"{len(r.onsets)} of {r.models}",
            "as forecast": "yes" if r.held else "no",
        }
        for r in found["shown"].itertuples()
    ]
    words = ["text", "weight of repeats", "expected onset (95 % interval)", "tokens of training", "onsets"]
    caption = "The onset on each text, and its forecast by the other texts."
    return told.table(pd.DataFrame(rows), caption, texts=[*words, "models with an onset", "as forecast"], source=FIGURE)


def onset_forecast(results: Results) -> Figure | None:
    """Draw the onset of each model over its forecast, a line per text."""
    if not (found := facts(results)):
        return None
    shown, colour = found["shown"].sort_values("expected", ascending=False), symbols.layer_colour(2)

    def paint(canvas: Canvas) -> None:
        ax = canvas.subplots()
        for y, r in enumerate(shown.itertuples()):
            face = colour if r.weight == 1 else "white"
            ax.plot([r.low / 1e6, r.high / 1e6], [y, y], color=GREY, lw=8, solid_capstyle="butt", zorder=1)
            ax.plot(r.expected / 1e6, y, "|", ms=14, mew=2, color=symbols.ACCENT)
            ax.plot([n / 1e6 for n in r.onsets], [y] * len(r.onsets), "o", ms=6, mfc=face, mec=colour)
            if len(r.onsets) < r.models:
                ax.plot(r.trained / 1e6, y, ">", ms=8, mfc="white", mec=colour)
        ax.set(xscale="log", xlabel=symbols.TOKENS_SEEN, yticks=range(len(shown)))
        ax.set_yticklabels(shown["text"])
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_locator(NullLocator())

    caption = (
        "Bar and line: the onset that the other texts expect, with its 95 % prediction interval. Dots: two-layer "
        "models (open: trained with a weight of repeats); triangles: models without an onset by the end of training."
    )
    data = shown.assign(onsets=[" ".join(map(str, onsets)) for onsets in shown["onsets"]])
    return picture(FIGURE, TITLE, caption, data, (7.6, 0.9 + 0.42 * len(shown)), paint)


section = told.from_results(TITLE, "forecast", facts, forecasts=table)
THEME = Theme(TITLE, section, figures=(onset_forecast,), sources={FIGURE: ("corpus", "summary")})
