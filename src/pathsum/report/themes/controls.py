"""Controls: models beside the grid in which induction must form, or must not."""

from __future__ import annotations

from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.formatting import millions
from pathsum.records.results import FORMED, Cell, Results
from pathsum.report.document import Column, Section, Table, Text
from pathsum.report.figures.controls import controls
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Controls"
KINDS = {  # what is said of each, and whether induction must form
    "smeared": (
        "One layer with smeared keys, which mix in the previous key, can do induction without a previous-token head.",
        True,
    ),
    "shuffled": ("A model trained on windows without order has nothing to match.", False),
    "untrained": ("An untrained model has learned nothing.", False),
}


def section(results: Results, figures: Figures) -> Section:
    """The controls, and whether each has the expected outcome."""
    if not results.controls:
        return Section(TITLE, ("This sweep has no controls.",))
    kinds = list(dict.fromkeys(kind for c in results.controls.values() if (kind := _kind(c)) is not None))
    text = " ".join(["Controls show that the measurements can also be negative.", *(KINDS[kind][0] for kind in kinds)])
    table = Table.of(
        results.controls.values(),
        Text("control", "name"),
        Column("layers", "summary.n_layers"),
        Text("expected", lambda c: _outcome(c)[0]),
        Column("prefix matching", "summary.prefix_matching", 3),
        Column("previous token", "summary.previous_token"),
        Column("loss drop (nats)", "summary.in_context_loss_drop_nats"),
        Column("tokens", lambda c: millions(c.summary.tokens_seen)),
        Text("verdict", lambda c: _outcome(c)[1]),
        caption="The outcome of each control and the expected one.",
        csv="controls.csv",
    )
    return Section(TITLE, (text,), (*drawn(figures, "controls"), table))


def _kind(cell: Cell) -> str | None:
    """By what was changed; None where nothing that has a known outcome was."""
    s = cell.summary
    if s.tokens_seen == 0:
        return "untrained"
    if s.shuffled:
        return "shuffled"
    return "smeared" if s.smeared_keys and s.n_layers == 1 else None


def _outcome(cell: Cell) -> tuple[str, str]:
    """What a control must show, and whether it does."""
    matching, kind = cell.summary.prefix_matching, _kind(cell)
    if kind is None or matching is None:
        return "–", "–"
    formed = KINDS[kind][1]
    holds = matching >= FORMED if formed else matching <= NOT_FORMED
    expected = f"prefix matching {f'≥ {FORMED}' if formed else f'≤ {NOT_FORMED}'}"
    return expected, "as expected" if holds else "not as expected"


THEME = Theme(TITLE, section, figures=(controls,), sources={"controls": ("log", "summary")}, tables=("controls",))
