"""One layer: skip-trigrams (``skip_trigrams.py``), and three kinds of evidence for copying heads."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high

from pathsum.claims.formatting import layers_label, plural, span
from pathsum.claims.one_layer import Copying, copying_heads, count
from pathsum.records.heads import COPYING
from pathsum.records.results import Cell, Results
from pathsum.report.agreement import KINDS
from pathsum.report.document import Column, Section, Table, Text
from pathsum.report.figures.heads import eigenvalues
from pathsum.report.theme import DetectorText, Figures, Theme, drawn
from pathsum.report.themes import skip_trigrams

TITLE = "One layer"


def section(results: Results, figures: Figures) -> Section:
    """Show skip-trigrams and copying heads."""
    cells = results.with_layers(1)
    text = (_text(cells), paragraph(cells), *skip_trigrams.paragraphs(cells))
    return Section.of(TITLE, text, (*drawn(figures, "eigenvalues"), table(results), *skip_trigrams.tables(cells)))


def _text(cells: Sequence[Cell]) -> str:
    if not cells:
        return "This sweep has no one-layer model."
    best = span([c.summary.prefix_matching for c in cells if c.summary.prefix_matching is not None], 3)
    return (
        "One layer adds a table of skip-trigrams for each head: a source, seen from a destination, raises an output. A "
        "head of one layer sees which tokens came before but not what preceded them, so it cannot attend to what "
        f"followed the current token last time: best prefix matching {best}."
    )


def counts(cells: Sequence[Cell]) -> str:
    """Say how many heads of ``cells`` pass each kind of evidence."""
    found = [c for cell in cells for c in copying_heads(cell)]
    return (
        f"{count(found, 'weights')} heads pass for copying by weights (OV eigenvalue positivity > {COPYING}), "
        f"{count(found, 'behaviour')} by behavior and {count(found, 'intervention')} by intervention"
    )


def paragraph(cells: Sequence[Cell]) -> str:
    """Describe the three kinds of evidence and their agreement, for one-layer models."""
    found = [c for cell in cells for c in copying_heads(cell)]
    if not found:
        return ""
    by_weights = [c for c in found if c.weights]
    top1 = span([c.head.copying_top1 for c in by_weights])
    return (
        f"{counts(cells)}; weights and behavior agree on {sum(c.shown for c in found)} of "
        f"{plural(len(found), 'head')}. A positive trace means that attending to a token raises its own logit on "
        "average, not that it raises it most: among the heads that pass by weights, the share of tokens that raise "
        f"their own logit most is {top1} (range over heads). By behavior: on repeated random tokens the head's output "
        "raises the next token's logit, 95 % interval of the mean sign above that for tokens of another window. By "
        "intervention: the loss on the second copy rises without the head (resample ablation), interval above 0 and "
        "above the control's; where several heads copy, ablating one understates its part."
    )


def table(results: Results) -> Table:
    """Compare the three kinds of evidence by depth, with each control as a check."""
    models = {f"grid, {layers_label(n)}": results.with_layers(n) for n in results.layer_counts()}
    models |= {f"control, {name}": [cell] for name, cell in results.controls.items()}
    heads = {name: [c for cell in cells for c in copying_heads(cell)] for name, cells in models.items()}
    return Table.of(
        [(name, found) for name, found in heads.items() if found],
        Text("models", lambda name, _: name),
        *(Column(KINDS[kind], lambda _, found, kind=kind: count(found, kind)) for kind in KINDS),
        Column("weights and behavior", lambda _, found: f"{sum(c.shown for c in found)} of {len(found)}"),
        Column("all three", lambda _, found: _all_three(found)),
        Column(
            "positivity (median over heads)", lambda _, found: median_high(c.head.copying_positivity for c in found)
        ),
        caption="Heads that copy, by each kind of evidence, of the heads that it was measured on. A control without "
        "order or without training shows how many pass where copying is of no use.",
        csv="heads.csv",
        source="copying",
    )


def _all_three(found: Sequence[Copying]) -> str:
    asked = [c for c in found if c.behaviour is not None and c.intervention is not None]
    return f"{sum(c.shown and bool(c.intervention) for c in asked)} of {len(asked)}"


THEME = Theme(
    TITLE,
    section,
    (eigenvalues,),
    {"eigenvalues": ("eigenvalues", "heads"), "copying": ("heads", "labels", "ablations")},
    {
        "skip_trigram": DetectorText(
            "skip-trigrams, by model and text",
            "source … destination → out; entries of the atlas that the text confirms",
        ),
        "skip_trigram_model": DetectorText(
            "skip-trigrams, by the model alone",
            "the same; triples whose log-probability a head raises by half a nat, on documents that did not choose "
            "them, whether or not the text confirms them",
        ),
    },
    ("skip_trigram", "skip_trigram_model", "copying"),
    opens_part=True,
    tables=("skip_trigrams", "skip_trigram_bugs", "eigenvalues"),
)
