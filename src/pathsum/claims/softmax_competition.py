"""The claim that in one layer a match does not raise the attention to the token after it (docs/framework.md §5.14)."""

from pathsum.claims import samples
from pathsum.claims.formatting import head_label
from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.heads import SoftmaxCompetitionRow
from pathsum.records.results import Cell

NONE = 0.5  # nats; largest preference that counts as none; a head with prefix matching 0.4 has one of about 5 nats


def _no_preference(cell: Cell) -> Finding:
    """Judge the head whose preference for the key after the match has the highest upper end of its interval."""
    rows = [r for r in cell.rows(SoftmaxCompetitionRow) if r.place == "after"]
    if not rows:
        return Finding(None, False, "not measured")
    best = max(rows, key=lambda r: r.preference_high)
    return Finding(best.preference_nats, best.preference_high <= NONE, f"head {head_label(best.layer, best.head)}")


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "one_layer_no_successor",
        "In one layer, a repeated token makes no head prefer the token after its earlier occurrence.",
        "AMF, Induction Heads",
        "largest preference of any head for the token after the match over keys near it, in windows that repeat minus "
        "windows that do not (nats of log attention)",
        f"upper end of its interval ≤ {NONE} nats",
        each(1, _no_preference),
        sample=samples.over(lambda cell: [r.windows for r in cell.rows(SoftmaxCompetitionRow)], "windows of each kind"),
        unit="nats of log attention",
    ),
)
