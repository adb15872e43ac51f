"""The section on one layer: skip-trigrams (``skip_trigrams.py``), and three kinds of evidence for copying heads."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pathsum.claims.formatting import layers_label, number, span
from pathsum.claims.one_layer import Copying, copying_heads, count, highest_matching
from pathsum.figures.heads import eigenvalues
from pathsum.page.document import HEAD, MODEL, Block, Column, Section, Table, Text
from pathsum.records.copying import SPREADS, CopyingRow
from pathsum.records.heads import COPYING, HeadRow
from pathsum.records.results import Cell, Results
from pathsum.report.agreement import KINDS
from pathsum.report.theme import DetectorText, Figures, Theme, drawn
from pathsum.report.themes import skip_trigrams

TITLE = "One layer"
CONTROLS = {  # notes on controls, by name
    "untrained": " Heads of the control “untrained” can pass only by chance.",
    "shuffled": " The control “shuffled” was trained on windows whose tokens are in random order; copying can help "
    "there too, since the tokens of a window recur.",
}


def section(results: Results, figures: Figures) -> Section:
    """Show skip-trigrams and copying heads."""
    cells = results.with_layers(1)
    text = (_text(cells), *paragraphs(cells), *skip_trigrams.paragraphs(cells))
    blocks: tuple[Block, ...] = (
        *drawn(figures, "eigenvalues"),
        table(results),
        on_text(cells),
        *skip_trigrams.tables(cells),
    )
    return Section.of(TITLE, text, blocks)


def _text(cells: Sequence[Cell]) -> str:
    if not cells:
        return "This sweep has no one-layer model."
    best = span(highest_matching(cells), 3)
    return (
        "Each head of a one-layer model adds a table of skip-trigrams, source … destination → out: attention from a "
        "destination token to an earlier source token raises the logit of an output token. A head sees which tokens "
        "came before, but not what preceded each of them. It therefore cannot do induction, that is, attend to the "
        "token after an earlier occurrence of the current token. The highest prefix matching of any head is "
        f"{best} (mean attention, 0 to 1; range over models)."
    )


def counts(cells: Sequence[Cell]) -> str:
    """State how many heads of ``cells`` copy by each kind of evidence, without a period at the end."""
    found = [c for cell in cells for c in copying_heads(cell)]
    return (
        f"{count(found, 'weights')} heads copy by their weights (eigenvalue positivity of the output–value (OV) "
        f"circuit > {COPYING}), {count(found, 'behaviour')} by their behavior on text and "
        f"{count(found, 'intervention')} by intervention"
    )


def paragraphs(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Describe the three kinds of evidence for copying, and count the heads of ``cells`` that copy by each; empty
    without heads."""
    found = [c for cell in cells for c in copying_heads(cell)]
    if not found:
        return ()
    top1 = [c.head.copying_top1 for c in found if c.weights]
    most = (
        f". In the heads that copy by weights, a share of {span(top1)} of the tokens raise their own logit most (range "
        "over heads)"
        if top1
        else ""
    )
    return (
        f"{counts(cells)}. By weights (AMF's evidence): the OV circuit W_U W_OV W_E has mostly positive eigenvalues. "
        f"Attention to a token then raises the token's own logit on average, but may raise other logits more{most}.",
        "By behavior, on held-out text: the head's output raises the logits of the tokens that it attends to, weighted "
        "by attention, more than the logits of those that it attends to in another window. The 95 % interval of the "
        f"difference must lie above {SPREADS} standard deviations of the same number under random rotations of the "
        f"output. {_others(found)}",
        "By intervention: resample ablation of the head raises the loss on the second copy of repeated random tokens. "
        "The 95 % interval of this rise must lie above 0 and above that of a control, which subtracts a randomly "
        "rotated copy of the head's output. If several heads copy, the others can compensate when one is ablated.",
    )


def table(results: Results) -> Table:
    """Compare the three kinds of evidence for copying, for the models of each depth and for each control."""
    models = {f"grid, {layers_label(n)}": results.with_layers(n) for n in results.layer_counts()}
    models |= {f"control, {name}": [cell] for name, cell in results.controls.items()}
    heads = {name: [c for cell in cells for c in copying_heads(cell)] for name, cells in models.items()}
    return Table.of(
        [(name, found) for name, found in heads.items() if found],
        Text("models", lambda name, _: name),
        *(Column(KINDS[kind], lambda _, found, kind=kind: count(found, kind)) for kind in KINDS),
        Column("all three", lambda _, found: _all_three(found)),
        Column("OV positivity (median over heads)", lambda _, found: median(c.head.copying_positivity for c in found)),
        caption="Number of heads that copy by each kind of evidence, of those measured (grid: the models of the "
        "report; control: see the section “Controls”)."
        + "".join(note for name, note in CONTROLS.items() if name in results.controls),
        csv="heads.csv",
        source="copying_heads",
    )


def _all_three(found: Sequence[Copying]) -> str:
    asked = [c for c in found if c.behaviour is not None and c.intervention is not None]
    return f"{sum(c.weights and bool(c.behaviour) and bool(c.intervention) for c in asked)} of {len(asked)}"


def _others(found: Sequence[Copying]) -> str:
    groups = [[c for c in found if c.weights is weights] for weights in (True, False)]
    copying, others = (count(group, "behaviour") for group in groups)
    return f"This holds for {copying} heads that copy by their weights, and for {others} others."


def on_text(cells: Sequence[Cell]) -> Table:
    """Show how much each head raises the tokens that it attends to on text, beside its OV positivity."""
    return Table.of(
        [(c, {(h.layer, h.head): h for h in c.rows(HeadRow)}, r) for c in cells for r in c.rows(CopyingRow)],
        MODEL,
        HEAD,
        Column("OV positivity", lambda _, heads, r: heads[r.layer, r.head].copying_positivity),
        Column("attended − another window (nats)", ("attended_nats", "attended_low", "attended_high")),
        Column("must exceed", "bar"),
        Column("loss without own OV entries (nats)", lambda _, __, r: number(r.removal_nats, 3)),
        caption="Copying on held-out text, with 95 % intervals over documents. Attended: logit that the head's output "
        "gives to the tokens that it attends to, weighted by attention, minus that of another window's. Must exceed: "
        f"{SPREADS} standard deviations under random rotations. Loss: its rise if each attended token loses what the "
        "head's OV entry (token, token) adds to its logit.",
        csv="copying.csv",
    )


THEME = Theme(
    TITLE,
    section,
    (eigenvalues,),
    {"eigenvalues": ("eigenvalues", "heads"), "copying_heads": ("heads", "copying", "ablations")},
    {
        "skip_trigram": DetectorText(
            "skip-trigrams, by model and text",
            "source … destination → out; entries of the atlas that the text confirms",
        ),
        "skip_trigram_model": DetectorText(
            "skip-trigrams, by the model alone",
            "the same; triples whose source raises the log-probability of the output through a head by at least half a "
            "nat, on documents that were not used to choose them, whether or not the text confirms them",
        ),
    },
    ("skip_trigram", "skip_trigram_model", "copying"),
    tables=("skip_trigrams", "skip_trigram_bugs", "eigenvalues", "copying"),
)
