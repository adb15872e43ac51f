"""Claims about one-layer models: most heads copy, heads are tables of skip-trigrams, and no head does induction."""

from collections.abc import Iterable, Sequence

from pathsum.claims import samples
from pathsum.claims.controls import NOT_FORMED
from pathsum.claims.formatting import number, span
from pathsum.claims.judging import Claim, Finding, at_least, each
from pathsum.records.heads import COPYING, HeadRow
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramRow, SkipTrigramTallyRow

MOST = 0.5  # half: of a model's heads, or of its skip-trigrams


def _copying_heads(cell: Cell) -> Finding:
    heads = cell.rows(HeadRow)
    if not heads:
        return Finding(None, False, "not measured")
    share = sum(h.copies for h in heads) / len(heads)
    return Finding(share, share > MOST)


def copying_share(cell: Cell) -> float | None:
    """Return the share (0 to 1) of copying skip-trigrams among the listed ones that the judging documents confirm."""
    copying = [row.copies for row in confirmed(cell)]
    return sum(copying) / len(copying) if copying else None


def _copying_skip_trigrams(cell: Cell) -> Finding:
    share = copying_share(cell)
    none = "no listed skip-trigram occurs more often than chance in both halves of the documents"
    return at_least(share, MOST, none if share is None else "")


def _no_induction(cell: Cell) -> Finding:
    best = max(highest_matching([cell]), default=None)
    return Finding(best, best is not None and best <= NOT_FORMED)


def highest_matching(cells: Iterable[Cell]) -> list[float]:
    """Return the highest prefix matching of any head (0 to 1) of each model; models without heads are left out."""
    return [max(h.prefix_matching for h in rows) for c in cells if (rows := c.rows(HeadRow))]


def passing_share(tallies: Sequence[SkipTrigramTallyRow]) -> float | None:
    """Return the share (0 to 1) of copying candidates among those that pass."""
    passing = sum(t.passing for t in tallies)
    return sum(t.passing_copying for t in tallies) / passing if passing else None


def _base_rate(results: Results) -> str:
    tallies = [t for c in results.of_depth(1) for t in c.rows(SkipTrigramTallyRow)]
    if not tallies:
        return samples.UNKNOWN
    drawn = span([t.base_rate for t in tallies if t.base_rate is not None], 3)
    return (
        f"{drawn} (triples sampled from the text that pass the same tests, n = "
        f"{span([t.base_passing for t in tallies], 0)}); for comparison: "
        f"{number(passing_share(tallies))} (all the heads' candidate skip-trigrams that pass them)"
    )


def confirmed(cell: Cell) -> list[SkipTrigramRow]:
    """Return the listed skip-trigrams that the judging documents confirm, sorted by |mean effect| · places, largest
    first."""
    rows = [r for r in cell.rows(SkipTrigramRow) if r.confirmed]
    return sorted(rows, key=lambda r: -abs(r.effect_logits) * r.places)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "one_layer_copying_heads",
        "Most heads of a one-layer model copy, by their weights.",
        "AMF, Copying / Primitive In-Context Learning",
        f"share of heads that copy by their weights (OV eigenvalue positivity > {COPYING}, AMF's criterion)",
        f"> {MOST}",
        each(1, _copying_heads),
        papers="10 of 12 heads",
        sample=samples.over(lambda cell: [cell.summary.n_heads], "heads"),
        unit="share of heads",
    ),
    Claim(
        "one_layer_skip_trigrams",
        "A one-layer head is a table of skip-trigrams, spent mostly on copying.",
        "AMF, Interpretation as Skip-Trigrams",
        "share of skip-trigrams that copy (output = source, up to case and a leading space), of each head's strongest "
        "by summed effect on the next token's logit where they occur, among those that occur more often than chance "
        "both in the documents that chose them and in other documents, which judge",
        f"≥ {MOST}",
        each(1, _copying_skip_trigrams),
        chance=_base_rate,
        sample=samples.over(lambda cell: [len(confirmed(cell))], "skip-trigrams"),
        unit="share of skip-trigrams that copy",
    ),
    Claim(
        "one_layer_no_induction",
        "One layer forms no induction heads.",
        "AMF, Induction Heads",
        "best prefix-matching score of any head",
        f"≤ {NOT_FORMED}",
        each(1, _no_induction),
        digits=3,
        chance=samples.uniform("induction: uniform", lambda results: results.of_depth(1)),
        sample=samples.REPEATS,
        unit="mean attention, 0 to 1",
    ),
)
