"""The onset that the law of the other texts expects on each text (docs/framework.md §6.8)."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

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
FIGURE = "onset_forecast"


def facts(results: Results) -> dict[str, Any]:
    """Return, for each text of the grid and of corpora.csv, the onset and its forecast by the law of the others."""
    own = [text_onsets(name, found) for name, found in {results.corpus.name: results, **results.texts}.items()]
    named = {text.text for text in own}
    rows = []
    for text in [*own, *(text for text in results.known if text.text not in named)]:
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
    """Draw the onset of each model against its forecast."""
    if not (found := facts(results)):
        return None
    shown, colour = found["shown"], symbols.layer_colour(2)

    def paint(canvas: Canvas) -> None:
        ax = canvas.subplots()
        for r in shown.itertuples():
            face = colour if r.weight == 1 else "white"
            high = r.trained if pd.isna(r.onset) else r.onset
            ax.plot([r.low / 1e6, r.high / 1e6], [high / 1e6] * 2, color=symbols.FAINT, lw=2, zorder=1)
            ax.plot([r.expected / 1e6] * len(r.onsets), [n / 1e6 for n in r.onsets], "o", ms=5.5, mfc=face, mec=colour)
            if len(r.onsets) < r.models:
                ax.plot(r.expected / 1e6, r.trained / 1e6, "^", ms=7, mfc="white", mec=colour)
            ax.annotate(r.text, (r.high / 1e6, high / 1e6), (4, 0), textcoords="offset points", fontsize=9, va="center")
        ends = [min(shown["low"].min(), *map(min, filter(None, shown["onsets"]))), shown["high"].max()]
        ax.plot([x / 1e6 for x in ends], [x / 1e6 for x in ends], color=symbols.FAINT, lw=0.8, zorder=0)
        ax.set(
            xscale="log", yscale="log", xlabel="onset expected by the other texts (million tokens)",
            ylabel="onset (million tokens)",
        )  # fmt: skip

    caption = (
        "A dot per two-layer model; bars: 95 % prediction intervals, at a text's median onset; triangles: no onset by "
        "the end of training; open dots: trained with a weight of repeats. The law does not know the text itself."
    )
    data = shown.assign(onsets=[" ".join(map(str, onsets)) for onsets in shown["onsets"]])
    return picture(FIGURE, TITLE, caption, data, (7.6, 5.2), paint)


section = told.from_results(TITLE, "forecast", facts, forecasts=table)
THEME = Theme(TITLE, section, figures=(onset_forecast,), sources={FIGURE: ("corpus", "summary")})
