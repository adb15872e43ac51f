"""Controls: models beside the grid in which induction must form, or must not."""

from __future__ import annotations

from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.formatting import millions, number
from pathsum.records.results import FORMED, Cell, Results
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures.controls import controls
from pathsum.report.theme import Figures, Theme, drawn

TITLE = "Controls"
KINDS = {  # what is said of each, and whether induction must form
    "smeared": (
        "One layer with smeared keys, which mix in the key before, can do induction without a previous-token head.",
        True,
    ),
    "shuffled": ("A model trained on windows without order has nothing to match.", False),
    "untrained": ("Untrained weights have learnt nothing.", False),
}


def section(results: Results, figures: Figures) -> Section:
    """What the controls are, and whether each came out as it must."""
    if not results.controls:
        return Section(TITLE, ("This sweep has no controls.",), ())
    kinds = list(dict.fromkeys(kind for c in results.controls.values() if (kind := _kind(c)) is not None))
    text = " ".join(["A measurement that cannot fail shows nothing.", *(KINDS[kind][0] for kind in kinds)])
    shown = drawn(figures, "controls")
    columns = (
        "control",
        "layers",
        "expected",
        "prefix matching",
        "previous token",
        "loss drop (nats)",
        "tokens",
        "verdict",
    )
    rows = tuple(_row(c) for c in results.controls.values())
    table = Table("Each control against what it must show.", columns, rows, "controls.csv")
    return Section(TITLE, (text,), (*shown, table))


def _kind(cell: Cell) -> str | None:
    """By what was changed; None where nothing that has a known outcome was."""
    s = cell.summary
    if s.tokens_seen == 0:
        return "untrained"
    if s.shuffled:
        return "shuffled"
    return "smeared" if s.smeared_keys and s.n_layers == 1 else None


def _row(cell: Cell) -> tuple[Entry, ...]:
    s, kind = cell.summary, _kind(cell)
    expected, verdict = "–", "–"
    if kind is not None and s.prefix_matching is not None:
        formed = KINDS[kind][1]
        expected = f"prefix matching {f'≥ {FORMED}' if formed else f'≤ {NOT_FORMED}'}"
        holds = s.prefix_matching >= FORMED if formed else s.prefix_matching <= NOT_FORMED
        verdict = "as expected" if holds else "not as expected"
    return (
        Entry(s.cell),
        Entry(str(s.n_layers), "number"),
        Entry(expected),
        Entry(number(s.prefix_matching, 3), "number"),
        Entry(number(s.previous_token), "number"),
        Entry(number(s.in_context_loss_drop_nats), "number"),
        Entry(millions(s.tokens_seen), "number"),
        Entry(verdict),
    )


THEME = Theme(TITLE, section, figures=(controls,), sources={"controls": ("log", "summary")}, tables=("controls",))
