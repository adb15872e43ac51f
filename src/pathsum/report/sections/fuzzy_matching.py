"""Whether induction heads match tokens that are alike but not equal, and what a copy with other names is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pathsum.records import FuzzyMatchingRow
from pathsum.report.document import Entry, Section, Table
from pathsum.report.figures import Figure
from pathsum.report.symbols import head_label, interval, plural, span
from pathsum.results import Cell, Results

TITLE = "Matching tokens that are alike"
VARIANTS = {"case": "that differs by case alone", "leading space": "that differs by a leading space alone"}
OVER, CONTRAST = "attention over unrelated", "renamed − another"
KEPT, AFTER, NEW = "gain after a kept token", "gain after a renamed token", "gain of a renamed token"


def section(results: Results, figures: Mapping[str, Figure]) -> Section:
    """Variants by case and by leading space, and renamed copies."""
    cells = [c for c in results.cells.values() if c.fuzzy_matching]
    if not cells:
        return Section(TITLE, ("This sweep has no model of two layers to ask.",), ())
    drawn = (figures["fuzzy_matching"],) if "fuzzy_matching" in figures else ()
    text = (_variants(cells), _renamed(cells))
    return Section(TITLE, tuple(t for t in text if t), (*drawn, _table(cells)))


def found(cells: Sequence[Cell], kind: str, measure: str) -> list[FuzzyMatchingRow]:
    """The row of each model that has it."""
    return [r for c in cells for r in c.fuzzy_matching if (r.kind, r.measure) == (kind, measure)]


def _values(cells: Sequence[Cell], kind: str, measure: str) -> str:
    return span([r.value for r in found(cells, kind, measure)])


def _said(rows: Sequence[FuzzyMatchingRow], does: str, does_not: str) -> str:
    """One of two statements where all intervals lie above 0 or none does, else for how many models the first holds."""
    above = sum(r.low > 0 for r in rows)
    return does_not if above == 0 else does if above == len(rows) else f"{does} in {above} of {len(rows)} models"


def _variants(cells: Sequence[Cell]) -> str:
    told = (
        "Does the induction head match tokens that are alike but not equal? This is a finding without a verdict: the "
        "claims had been frozen before it was measured. In sequences of random tokens that differ, the last token is "
        "the query, and before an earlier token, the follower, stands a token equal to the query, a variant of it, or "
        "an unrelated token of the variant's form and frequency (the control). All are of letters, single letters "
        "included."
    )
    shown = [kind for kind in VARIANTS if found(cells, kind, OVER)]
    for kind in shown:
        does = _said(found(cells, kind, OVER), "matches", "does not match")
        told += (
            f" The induction head {does} a token {VARIANTS[kind]}: the follower of such a token gets "
            f"{_values(cells, kind, OVER)} more attention than that of an unrelated token, and the model's "
            f"log-probability of it is {_values(cells, kind, 'log-probability')} nats higher."
        )
    if not shown:
        return told + " This vocabulary has too few pairs of such tokens to ask."
    told += (
        f" An equal token is worth {_values(cells, 'equal', OVER)} of attention and "
        f"{_values(cells, 'equal', 'log-probability')} nats."
    )
    if found(cells, "equal", "match score"):
        scores = [f"{kind} {_values(cells, kind, 'match score')}" for kind in ("equal", *shown, "unrelated")]
        told += (
            " By weights, the score of current token × previous token, in standard deviations over all pairs of "
            f"tokens: {'; '.join(scores)}."
        )
    return told


def _renamed(cells: Sequence[Cell]) -> str:
    if not found(cells, CONTRAST, AFTER):
        return ""
    after, new = found(cells, CONTRAST, AFTER), found(cells, CONTRAST, NEW)
    told = (
        "In text, a passage is followed by itself with every name replaced, one for one, by another of like frequency. "
        f"After tokens that keep their name the first copy lowers the loss by {_values(cells, 'renamed copy', KEPT)} "
        f"nats per token (exact copy {_values(cells, 'exact copy', KEPT)}). After a renamed token it "
        f"{_said(after, 'helps', 'does not help')}: {_values(cells, CONTRAST, AFTER)} nats more than another passage "
        f"does, where an exact copy gains {_values(cells, 'exact copy', AFTER)} "
        "(matches of the tokens before it count, too)."
    )
    if new:
        low = " The first copy makes it less likely." if all(r.high < 0 for r in new) else ""
        told += (
            f" A new name that the copy has had before {_said(new, 'is predicted better', 'is not predicted better')} "
            f"for the first copy: {_values(cells, CONTRAST, NEW)} nats against another passage.{low}"
        )
    return told


def _table(cells: Sequence[Cell]) -> Table:
    asked = {
        **{f"{kind}: attention": (kind, OVER) for kind in ("equal", *VARIANTS)},
        **{f"{kind}: match score": (kind, "match score") for kind in ("equal", *VARIANTS, "unrelated")},
        "after a kept token (nats per token)": (CONTRAST, KEPT),
        "after a renamed token (nats per token)": (CONTRAST, AFTER),
        "of a renamed token (nats per token)": (CONTRAST, NEW),
    }
    rows = []
    for c in cells:
        by = {(r.kind, r.measure): r for r in c.fuzzy_matching}
        head = next((head_label(r.layer, r.head or 0) for r in c.fuzzy_matching if r.layer is not None), "–")
        values = ((by[key].value, by[key].low, by[key].high) if key in by else None for key in asked.values())
        rows.append((Entry(c.name), Entry(head), *(Entry(interval(*v) if v else "–", "number") for v in values)))
    every = [r for c in cells for r in c.fuzzy_matching]
    families, documents = (span([r.n for r in every if (r.layer is None) == gain], 0) for gain in (False, True))
    caption = (
        "A variant with attention above 0 is matched, fully where it has as much as an equal token: attention to the "
        "follower minus that of an unrelated token (−1..1), and the score by weights in standard deviations over all "
        "pairs of tokens. Then the gain from a first copy whose names differ minus that from another passage. "
        f"{plural(len(cells), 'model')}; 95 % bootstrap over {families} families of alike tokens "
        f"or {documents} documents in brackets."
    )
    return Table(caption, ("model", "head", *asked), tuple(rows), "fuzzy_matching.csv")
