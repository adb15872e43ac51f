"""Skip-trigrams, a part of the theme of one layer: their effect on text, its confirmation of them, and bugs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pathsum.claims.formatting import number, plural, span
from pathsum.claims.one_layer import copying_heads, copying_share, passing_share
from pathsum.records.heads import DistanceRow, HeadRow
from pathsum.records.results import Cell
from pathsum.records.skip_trigrams import SkipTrigramBugRow, SkipTrigramRow, SkipTrigramTallyRow
from pathsum.report.document import HEAD, Column, Table, Text
from pathsum.report.symbols import visible

ENTRIES_A_HEAD = 4
BUGS = 8
NEAR = 8  # tokens back, within which a long-range head has under half of its attention

METHOD = (
    "The atlas ranks each head's skip-trigrams by what they add to the logit of the token that comes next, summed over "
    "the places where they occur. Of those with the largest sums on half of the held-out documents, the atlas lists "
    "the ones that occur there more often than chance: a head without a match raises common tokens as much, whatever "
    "the source. They are judged on the other half of the documents. Patterns and norm scales are fixed; with one "
    "layer this is exact. The first position and the destination itself do not count as sources."
)
NAMES = (
    HEAD,
    Text("source", lambda r: visible(r.source), kind="token"),
    Text("… destination", lambda r: visible(r.destination), kind="token"),
    Text("→ out", lambda r: visible(r.out), kind="token"),
    Column("places", "places"),
)
LIFT = Column("lift of the text", lambda r: f"{number(r.text_lift)} ({r.text_hits:,} of {r.text_places:,})")


def paragraphs(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Summarize the tables of ``cells``."""
    known = [c for c in cells if c.rows(SkipTrigramRow)]
    if not known:
        return ()
    text = f"{METHOD} {_copying(known)} {_confirmed(known)}"
    bugs = [b for c in known for b in c.rows(SkipTrigramBugRow)]
    if not bugs:
        return (
            text,
            "No crossing of skip-trigrams was found that is frequent enough to judge and that the text refutes.",
        )
    prices = span([b.price_nats for b in bugs], 3)
    return (
        text,
        "A head's attention depends on source and destination, its output on the source alone. If it raises one output "
        "after one destination and another after another, both from the same source, it raises the crossed pairs too. "
        f"The most expensive crossings that the text holds no more often than chance, {len(bugs)} over all heads, cost "
        f"{prices} nats each time something else follows. With the places where the output does follow, "
        f"{_share(b.balance_nats > 0 for b in bugs)} cost on balance.",
    )


def _copying(cells: Sequence[Cell]) -> str:
    """Give the share that copies: of those listed and confirmed, of all candidates, of triples drawn from the text, and
    of long-range copying heads."""
    shares = span([s for c in cells if (s := copying_share(c)) is not None])
    tallies = [t for c in cells for t in c.rows(SkipTrigramTallyRow)]
    text = f"Of those listed that both halves hold, a share of {shares} copy their source (range over models)"
    if tallies:
        before = sum(t.copying for t in tallies) / max(1, sum(t.candidates for t in tallies))
        base = [t.base_rate for t in tallies if t.base_rate is not None]
        n = span([t.base_passing for t in tallies], 0)
        text += (
            f"; of all candidates that both halves hold, {number(passing_share(tallies))}; of triples drawn from the "
            f"text that both halves hold, whatever heads add there, {span(base, 3)} (n = {n}); of all candidates "
            f"before either test, {number(before)}"
        )
    far = [
        [r.copies for r in c.rows(SkipTrigramRow) if (r.layer, r.head) == place and r.borne_out]
        for c in cells
        for place in _far(c)
    ]
    if far:
        alone = span([sum(f) / len(f) for f in far if f])
        text += (
            f". For long-range copying heads alone ({plural(len(far), 'head')}; copying by weights and behavior, "
            f"under half of the attention within {NEAR} tokens): {alone}"
        )
    return f"{text}."


def _far(cell: Cell) -> list[tuple[int, int]]:
    """Find the long-range copying heads."""
    near: defaultdict[tuple[int, int], float] = defaultdict(float)
    for d in cell.rows(DistanceRow):
        near[d.layer, d.head] += d.attention if d.distance <= NEAR else 0.0
    return [place for c in copying_heads(cell) if c.shown and near[place := (c.head.layer, c.head.head)] < 0.5]


def _confirmed(cells: Sequence[Cell]) -> str:
    """Say how much the judging documents confirm, of the listed and of all candidates, with intervals over heads."""
    rows = [(c.name, r) for c in cells for r in c.rows(SkipTrigramRow) if r.text_lift is not None]
    heads = [(c.name, h.layer, h.head) for c in cells for h in c.rows(HeadRow)]
    listed = [[r.borne_out for name, r in rows if (name, r.layer, r.head) == head] for head in heads]
    tallies = [(t.borne_out, t.told) for c in cells for t in c.rows(SkipTrigramTallyRow)]
    helped = _share(r.change_nats > 0 for c in cells for r in c.rows(SkipTrigramRow))
    text = (
        f"The judging documents confirm {_share(r.borne_out for _, r in rows)} "
        f"({_clustered([(sum(b), len(b)) for b in listed])}) of the listed ones that are frequent enough to test: the "
        "output follows the destination more often with the source before it, by three standard errors or more"
    )
    if tallies:
        text += (
            f". Of all candidates, without selection, they confirm {sum(b for b, _ in tallies):,} of "
            f"{sum(n for _, n in tallies):,} ({_clustered(tallies)})"
        )
    return f"{text}. With the source, the model finds the output more probable in {helped} (choosing documents)."


def _clustered(counts: Sequence[tuple[int, int]]) -> str:
    """Print a share with its 95 % interval by the ratio estimator; the skip-trigrams of a head are one cluster."""
    known = [(hits, n) for hits, n in counts if n]
    total = sum(n for _, n in known)
    if len(known) < 2:
        return "one head"
    share = sum(hits for hits, _ in known) / total
    spread = sum((hits - share * n) ** 2 for hits, n in known) * len(known) / (len(known) - 1)
    error = 1.96 * spread**0.5 / total
    return (
        f"{number(share)} [{number(max(0.0, share - error))}, {number(min(1.0, share + error))}], interval over heads"
    )


def tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """Show the atlas of the model with the lowest loss, and its most expensive bugs; none without skip-trigrams."""
    known = [c for c in cells if c.rows(SkipTrigramRow)]
    best = min(known, key=lambda c: c.summary.val_loss_nats, default=None)
    if best is None:
        return ()
    ranked = sorted(best.rows(SkipTrigramRow), key=lambda r: (r.layer, r.head, r.rank))
    atlas = Table.of(
        [r for r in ranked if r.rank <= ENTRIES_A_HEAD],
        *NAMES,
        Column("effect (logits)", "effect_logits"),
        Column("change in log P (nats)", "change_nats"),
        LIFT,
        caption=f"Each head's skip-trigrams with the largest summed effect on held-out text in {best.name}, among "
        "those that occur more often than chance in the choosing documents. Effect and change are means over places; "
        "the change in log P is with the source against without it. Lift: how much more often the output follows the "
        "destination with the source before it (counts: followed by the output, of places with the source, in the "
        "judging documents); – where too few. Every head of every model is in the CSV.",
        csv="skip_trigrams.csv",
    )
    bugs = Table.of(
        sorted(best.rows(SkipTrigramBugRow), key=lambda b: -b.price_nats * b.places)[:BUGS],
        *NAMES,
        Column("price (nats)", "price_nats", 3),
        Column("on balance (nats)", "balance_nats", 3),
        Column("QK (nats)", "qk_nats"),
        Column("OV (logit)", "ov_logit"),
        LIFT,
        caption=f"Skip-trigram bugs of {best.name}, most expensive over the text first. Price: mean rise of the loss "
        "by the head's effect on the output's logit, at places where something else follows, and on balance over all "
        "places. Lift as above, of the judging documents.",
        csv="skip_trigram_bugs.csv",
    )
    return (atlas, bugs) if bugs.rows else (atlas,)


def _share(holds: Iterable[bool]) -> str:
    known = list(holds)
    return f"{sum(known)} of {len(known)}"
