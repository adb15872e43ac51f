"""The claim that smeared keys make the onset of induction earlier."""

from pathsum.claims import samples
from pathsum.claims.formatting import millions
from pathsum.claims.judging import Claim, Finding
from pathsum.records.results import Cell, Results

SMEARED, CLAMPED = "smeared_two", "clamped_previous"  # names of the controls


def twin(control: Cell, results: Results) -> Cell | None:
    """Return the model of the grid with the seed and the numbers of layers and heads of ``control``, or None."""
    shape = (control.summary.n_layers, control.summary.n_heads, control.summary.seed)
    plain = results.cells.values()
    return next((c for c in plain if (c.summary.n_layers, c.summary.n_heads, c.summary.seed) == shape), None)


def onset(cell: Cell) -> str:
    """Format the tokens seen at the onset, and in brackets those at the evaluations around it, or "none"."""
    s = cell.summary
    if s.onset_tokens is None or s.onset_low is None or s.onset_high is None:
        return "none"
    return f"{millions(s.onset_tokens)} [{millions(s.onset_low)}, {millions(s.onset_high)}]"


def _earlier(results: Results) -> dict[str, Finding]:
    control = results.controls.get(SMEARED)
    plain = None if control is None else twin(control, results)
    if control is None or plain is None:
        return {}
    ours, theirs = control.summary, plain.summary
    if ours.onset_tokens is None or ours.onset_high is None or theirs.onset_tokens is None or theirs.onset_low is None:
        return {SMEARED: Finding(None, False, "no onset in one of the two")}
    note = f"{onset(control)}, without smeared keys {onset(plain)}; in brackets: evaluations around the onset"
    return {SMEARED: Finding(float(theirs.onset_tokens - ours.onset_tokens), ours.onset_high <= theirs.onset_low, note)}


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "smeared_keys_earlier",
        "Keys that see the previous token move the onset of induction earlier.",
        "ICL, Argument 2",
        "tokens seen at the onset of the same two-layer model without smeared keys, minus those at the onset of the "
        "control with smeared keys",
        "> 0, and the evaluation after the control's onset is not later than the one before the other onset",
        _earlier,
        digits=0,
        sample=samples.EVALUATIONS,
        unit="tokens earlier",
    ),
)
