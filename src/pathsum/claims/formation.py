"""The claim that the previous-token head forms before the induction head."""

from pathsum.claims import samples
from pathsum.claims.formatting import millions
from pathsum.claims.judging import Claim, Finding, each
from pathsum.records.formation import ChangePointRow, FormationRow
from pathsum.records.results import Cell


def _previous_token_first(cell: Cell) -> Finding:
    changes = {c.quantity: c for c in cell.rows(ChangePointRow)}
    previous, matching = changes.get("previous_token"), changes.get("prefix_matching")
    if previous is None or matching is None:
        return Finding(None, False, f"no {'previous-token head' if previous is None else 'onset'}")
    note = (
        f"previous-token head at {millions(previous.tokens_seen)}, prefix matching at {millions(matching.tokens_seen)}"
    )
    if previous.high > matching.low:
        note += ", with no evaluation between"
    return Finding(float(matching.tokens_seen - previous.tokens_seen), previous.high <= matching.low, note)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "previous_token_first",
        "The previous-token head forms before the induction head that needs it.",
        "AMF, How Induction Heads Work",
        "tokens from half of the rise of its attention to the token before to half of the rise of prefix matching",
        "> 0, with an evaluation between",
        each(2, _previous_token_first, where=Cell.has_curve),
        needs_induction_head=True,
        digits=0,
        chance=lambda _: "0",
        sample=samples.over(lambda cell: [len(cell.rows(FormationRow))], "checkpoints"),
        unit="tokens earlier",
    ),
)
