"""Which heads copy: three kinds of evidence side by side."""

from __future__ import annotations

from collections.abc import Sequence

from pathsum.claims.formatting import layers_label, number, plural, span
from pathsum.claims.one_layer import Copying, copying_heads, count
from pathsum.records.results import Cell, Results
from pathsum.report.document import Entry, Table

KINDS = ("weights", "behaviour", "intervention")


def counts(cells: Sequence[Cell]) -> str:
    """Say how many heads of ``cells`` pass each kind of evidence."""
    found = [c for cell in cells for c in copying_heads(cell)]
    return (
        f"{count(found, 'weights')} heads pass for copying by weights (OV eigenvalue positivity > 0.5), "
        f"{count(found, 'behaviour')} by behaviour and {count(found, 'intervention')} by intervention"
    )


def paragraph(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Say what the three kinds of evidence mean, and how far they agree, for one-layer models."""
    found = [c for cell in cells for c in copying_heads(cell)]
    if not found:
        return ()
    by_weights = [c for c in found if c.weights]
    top1 = span([c.head.copying_top1 for c in by_weights])
    return (
        f"{counts(cells)}; weights and behaviour agree on {sum(c.shown for c in found)} of "
        f"{plural(len(found), 'head')}. A positive trace means that attending to a token raises its own logit on "
        "average, not that it raises it most: among the heads that pass by weights, the share of tokens that raise "
        f"their own logit most is {top1} (range over heads). By behaviour: on repeated random tokens the head's output "
        "raises the next token's logit, 95 % interval of the mean sign above that for another window's tokens. By "
        "intervention: the loss on the second copy rises without the head (another window's writes in its place), "
        "interval above 0 and above the control's; where several heads copy, ablating one understates its part.",
    )


def table(results: Results) -> tuple[Table, ...]:
    """The three kinds of evidence side by side, by depth, with each control as a check."""
    groups: list[tuple[str, list[Cell]]] = [
        *((f"grid, {layers_label(n)}", results.with_layers(n)) for n in results.layer_counts()),
        *((f"control, {name}", [cell]) for name, cell in results.controls.items()),
    ]
    fields = [_row(name, found) for name, cells in groups if (found := [c for m in cells for c in copying_heads(m)])]
    if not fields:
        return ()
    columns = ("models", *KINDS, "weights and behaviour", "all three", "positivity (median over heads)")
    caption = (
        "Heads that copy, by each kind of evidence, of the heads that it was measured on. A control without order or "
        "without training shows how many pass where there is nothing to copy for."
    )
    return (Table(caption, columns, tuple(fields), "heads.csv", source="copying"),)


def _row(name: str, found: Sequence[Copying]) -> tuple[Entry, ...]:
    positivity = sorted(c.head.copying_positivity for c in found)
    everything = [c for c in found if c.behaviour is not None and c.intervention is not None]
    return (
        Entry(name),
        *(Entry(count(found, kind), "number") for kind in KINDS),
        Entry(f"{sum(c.shown for c in found)} of {len(found)}", "number"),
        Entry(f"{sum(c.shown and bool(c.intervention) for c in everything)} of {len(everything)}", "number"),
        Entry(number(positivity[len(positivity) // 2]), "number"),
    )
