"""Skip-trigrams, a part of the section on one layer (docs/framework.md §3.8 to §3.10)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from scipy.special import stdtrit

from pathsum.claims.formatting import number, plural, span
from pathsum.claims.one_layer import copying_share, passing_share
from pathsum.figures.symbols import visible
from pathsum.page.document import HEAD, Column, Table, Text
from pathsum.records.heads import DistanceRow, HeadRow
from pathsum.records.results import Cell
from pathsum.records.skip_trigrams import SkipTrigramBugRow, SkipTrigramRow, SkipTrigramTallyRow

ENTRIES_A_HEAD = 4  # skip-trigrams that the table shows per head
BUGS = 8  # rows of the table of skip-trigram bugs
NEAR = 8  # tokens back; a long-range head has less than half of its attention within them

METHOD = (
    "How the atlas, a list of skip-trigrams, is made. Half of the held-out documents that serve the verdicts are the "
    "choosing documents. In some windows of these, the effect of each skip-trigram on the logit of its output is "
    "summed over the places where it occurs. The skip-trigrams of each head with the largest sums are candidates. A "
    "sum can also be large because the head raises common tokens, whatever the source. The atlas therefore lists, for "
    "each head, the strongest candidates that the choosing documents contain more often than chance: after the source, "
    "the output follows the destination more often than overall, by more than three standard errors. Effects are "
    "measured with attention patterns and norm scales fixed; with one layer they are exact. Neither the first position "
    "(BOS, the beginning-of-sequence token) nor the destination itself counts as a source."
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
    """Describe the atlas and the skip-trigram bugs of one-layer models; empty without skip-trigrams."""
    known = [c for c in cells if c.rows(SkipTrigramRow)]
    if not known:
        return ()
    text = (METHOD, _confirmed(known), _copying(known))
    bugs = [b for c in known for b in c.rows(SkipTrigramBugRow)]
    if not bugs:
        return (
            *text,
            "No skip-trigram bug was found. A bug would combine the source and destination of one skip-trigram of a "
            "head with the output of another that has the same source, raise the loss, and be frequent enough to judge "
            "but no more frequent than chance.",
        )
    prices = span([b.price_nats for b in bugs], 3)
    return (
        *text,
        "Skip-trigram bugs. A head's attention depends on source and destination, but its output on the source alone. "
        "If, after one source, a head raises out 1 at destination 1 and out 2 at destination 2, it also raises out 1 "
        "at destination 2 and out 2 at destination 1. Such a crossed skip-trigram is a bug if the judging documents "
        "contain it no more often than chance and it raises the loss where its output does not follow. The mean rise "
        "there is its price. The bugs of each head that cost most in total (price × number of these places; "
        f"{len(bugs)} are listed) have prices of {prices} nats. Averaged over all places of source and destination, "
        f"{_share(b.balance_nats > 0 for b in bugs)} raise the loss (on balance).",
    )


def _copying(cells: Sequence[Cell]) -> str:
    """State the share of copying skip-trigrams among those beyond chance in both halves of the documents: of the listed
    ones, of all candidates, of triples sampled from the text, and of the listed ones of long-range copying heads."""
    shares = span([s for c in cells if (s := copying_share(c)) is not None])
    tallies = [t for c in cells for t in c.rows(SkipTrigramTallyRow)]
    text = (
        "How many copy. A skip-trigram copies if its output is its source, up to case and a leading space. It passes "
        "both tests if both halves of the documents contain it more often than chance. Of the skip-trigrams that pass, "
        f"the share that copies is {shares} for the listed ones (range over models)"
    )
    if tallies:
        before = sum(t.copying for t in tallies) / max(1, sum(t.candidates for t in tallies))
        base = [t.base_rate for t in tallies if t.base_rate is not None]
        n = span([t.base_passing for t in tallies], 0)
        text += (
            f", {number(passing_share(tallies))} for all candidates, and {span(base, 3)} for triples sampled from the "
            f"text, whatever the heads do there (n = {n}). Of all candidates, passing or not, a share of "
            f"{number(before)} copies"
        )
    far = [
        [r.copies for r in c.rows(SkipTrigramRow) if (r.layer, r.head) == place and r.confirmed]
        for c in cells
        for place in _far(c)
    ]
    if far:
        alone = span([sum(f) / len(f) for f in far if f])
        text += (
            f". Among the listed ones that pass, of long-range copying heads alone ({plural(len(far), 'head')}: "
            f"copying by weights, less than half of the attention within {NEAR} tokens), the share is "
            f"{alone}"
        )
    return f"{text}."


def _far(cell: Cell) -> list[tuple[int, int]]:
    """Return (layer, head) of each head that copies by its weights and has less than half of its attention within NEAR
    tokens. Attention to key 0 does not count as near."""
    near: defaultdict[tuple[int, int], float] = defaultdict(float)
    for d in cell.rows(DistanceRow):
        near[d.layer, d.head] += d.attention if d.distance <= NEAR else 0.0
    return [place for h in cell.rows(HeadRow) if h.copies and near[place := (h.layer, h.head)] < 0.5]


def _confirmed(cells: Sequence[Cell]) -> str:
    """State how many skip-trigrams the judging documents confirm, of the listed and of all candidates, with intervals
    over heads."""
    rows = [(c.name, r) for c in cells for r in c.rows(SkipTrigramRow) if r.text_lift is not None]
    heads = [(c.name, h.layer, h.head) for c in cells for h in c.rows(HeadRow)]
    listed = [[r.confirmed for name, r in rows if (name, r.layer, r.head) == head] for head in heads]
    tallies = [(t.confirmed, t.tested) for c in cells for t in c.rows(SkipTrigramTallyRow)]
    helped = _share(r.change_nats > 0 for c in cells for r in c.rows(SkipTrigramRow))
    text = (
        "The same test is repeated on the other half of the documents, the judging documents. Of the listed "
        "skip-trigrams that are frequent enough to test, the judging documents confirm "
        f"{_share(r.confirmed for _, r in rows)} ({_clustered([(sum(b), len(b)) for b in listed])})"
    )
    if tallies:
        text += (
            f". Of all candidates that are frequent enough, they confirm {sum(b for b, _ in tallies):,} of "
            f"{sum(n for _, n in tallies):,} ({_clustered(tallies)})"
        )
    return (
        f"{text}. By the model itself, what the head moves from the source makes the output more probable on average "
        f"for {helped} listed skip-trigrams (choosing documents)."
    )


def _clustered(counts: Sequence[tuple[int, int]]) -> str:
    """Format a share with its 95 % t-interval by the ratio estimator. ``counts`` holds (hits, trials) per head; the
    skip-trigrams of a head are one cluster. With fewer than two heads with trials, return "one head"."""
    known = [(hits, n) for hits, n in counts if n]
    total = sum(n for _, n in known)
    if len(known) < 2:
        return "one head"
    share = sum(hits for hits, _ in known) / total
    spread = sum((hits - share * n) ** 2 for hits, n in known) * len(known) / (len(known) - 1)
    error = float(stdtrit(len(known) - 1, 0.975)) * spread**0.5 / total
    return (
        f"{number(share)} [{number(max(0.0, share - error))}, {number(min(1.0, share + error))}], interval over heads"
    )


def tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """Show the atlas and the most expensive bugs of the model with the lowest held-out loss, as two tables. The second
    is left out without bugs, and both without skip-trigrams."""
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
        caption=f"Atlas of {best.name}, the one-layer model with the lowest held-out loss: for each head, the "
        f"{ENTRIES_A_HEAD} skip-trigrams with the largest summed effect that occur more often than chance in the "
        "choosing documents. Places: occurrences of the skip-trigram in some windows of these documents. Effect: on "
        "the logit of the output, above the mean over outputs; change in log P: log-probability of the output with "
        "minus without what the head moves from the source (both are means over places). Lift: how many times as often "
        "as overall the output follows the destination if the source stands before it; in parentheses, places where "
        "the output follows, of places with source and destination (judging documents; –: too few). The CSV has every "
        "head of every model.",
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
        caption=f"Skip-trigram bugs of {best.name} that raise the loss most in total: price × places where "
        "another token follows. Price: mean rise of the loss at these places, due to the head's effect on the logit of "
        "the output. On balance: the mean rise over all places, those where the output follows included. QK and "
        "OV: entries of the head's query–key and output–value circuits, above the mean over keys and over outputs. "
        "Lift: as in the table above.",
        csv="skip_trigram_bugs.csv",
    )
    return (atlas, bugs) if bugs.rows else (atlas,)


def _share(holds: Iterable[bool]) -> str:
    known = list(holds)
    return f"{sum(known)} of {len(known)}"
