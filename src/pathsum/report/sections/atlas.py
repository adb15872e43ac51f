"""One layer's skip-trigrams: what they are worth on text, what the text says of them, and what their bugs cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pathsum.records import SkipTrigramBugRow, SkipTrigramRow
from pathsum.report.claims.framework import copying_share
from pathsum.report.document import Entry, Table
from pathsum.report.symbols import head_label, number, plural, span, visible
from pathsum.results import Cell

ENTRIES_A_HEAD = 4
BUGS = 8


def paragraphs(cells: Sequence[Cell]) -> tuple[str, ...]:
    """What the tables of ``cells`` say, all of them together."""
    known = [c for c in cells if c.skip_trigrams]
    if not known:
        return ()
    rows = [r for c in known for r in c.skip_trigrams]
    shares = span([s for c in known if (s := copying_share(c)) is not None])
    text = (
        "The atlas ranks each head's skip-trigrams by what they add to the logit of the token that comes next, times "
        "how much more often than by chance it does come next in other windows: a head at rest adds as much to common "
        "tokens, whatever its source. Patterns and norm scales are as they are; with one layer this is exact. The "
        "first position and the destination itself are no sources. Of the "
        f"{plural(len(rows), 'leading skip-trigram')} a share of {shares} copy their source (least to most "
        "copying cell), and the output is likelier to the model with the source than without it for "
        f"{_share(r.change_nats > 0 for r in rows)}. "
        f"The text bears out {_share(r.borne_out for r in rows if r.text_lift is not None)} of those frequent enough "
        "to tell: the output follows the destination more often with the source before it, by three standard errors or "
        "more."
    )
    bugs = [b for c in known for b in c.skip_trigram_bugs]
    if not bugs:
        return (
            text,
            "No crossing of skip-trigrams was found that is frequent enough to judge and not borne out by the text.",
        )
    prices = span([b.price_nats for b in bugs], 3)
    return (
        text,
        "A head's attention hangs on source and destination, its output on the source alone. If it raises one output "
        "after one destination and another after another, both from the same source, it raises the crossed pairs too. "
        f"The dearest crossings that the text holds no more often than chance, {len(bugs)} over all heads, cost "
        f"{prices} nats each time something else follows. With the places where the output does follow, "
        f"{_share(b.balance_nats > 0 for b in bugs)} cost on balance.",
    )


def tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """The atlas of the cell with the lowest loss, and its dearest bugs."""
    known = [c for c in cells if c.skip_trigrams]
    if not known:
        return ()
    best = min(known, key=lambda c: c.summary.val_loss_nats)
    names = ("head", "source", "… destination", "→ out", "places")
    shown = [r for r in sorted(best.skip_trigrams, key=lambda r: (r.layer, r.head, r.rank)) if r.rank <= ENTRIES_A_HEAD]
    atlas = Table(
        f"The skip-trigrams that each head of {best.name} is worth most by on held-out text. Effect and change are "
        "means over places; the change in log P is with the source against without it. Lift: how much more often the "
        "output follows the destination with the source before it (counts: followed by the output, of places with the "
        "source, in other windows); – where too few. Every head of every cell is in the CSV.",
        (*names, "effect (logits)", "change in log P (nats)", "lift of the text"),
        tuple((*_names(r), _n(r.effect_logits), _n(r.change_nats), _lift(r)) for r in shown),
        "skip_trigrams.csv",
    )
    worst = sorted(best.skip_trigram_bugs, key=lambda b: -b.price_nats * b.places)[:BUGS]
    if not worst:
        return (atlas,)
    bugs = Table(
        f"Skip-trigram bugs of {best.name}, dearest over the text first. Price: mean rise of the loss by the head's "
        "effect on the output's logit, at places where something else follows, and on balance over all places. Lift as "
        "above, on the text's other windows.",
        (*names, "price (nats)", "on balance (nats)", "QK (nats)", "OV (logit)", "lift of the text"),
        tuple(
            (*_names(b), _n(b.price_nats, 3), _n(b.balance_nats, 3), _n(b.qk_nats), _n(b.ov_logit), _lift(b))
            for b in worst
        ),
        "skip_trigram_bugs.csv",
    )
    return (atlas, bugs)


def _share(holds: Iterable[bool]) -> str:
    known = list(holds)
    return f"{sum(known)} of {len(known)}"


def _n(value: float, digits: int = 2) -> Entry:
    return Entry(number(value, digits), "number")


def _names(r: SkipTrigramRow | SkipTrigramBugRow) -> tuple[Entry, ...]:
    tokens = (Entry(visible(t), "token") for t in (r.source, r.destination, r.out))
    return (Entry(head_label(r.layer, r.head)), *tokens, Entry(f"{r.places:,}", "number"))


def _lift(r: SkipTrigramRow | SkipTrigramBugRow) -> Entry:
    return Entry(f"{number(r.text_lift)} ({r.text_hits:,} of {r.text_places:,})", "number")
