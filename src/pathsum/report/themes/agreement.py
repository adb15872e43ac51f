"""Agreement of weights, behavior and intervention, head by head and edge by edge."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pathsum.claims.formatting import number, plural, span
from pathsum.records.composition import COMPOSITION_RULE
from pathsum.records.heads import COPYING
from pathsum.records.results import Results
from pathsum.report.agreement import (
    COPIES,
    EDGES,
    INDUCTION,
    KINDS,
    NEEDED,
    QUESTIONS,
    Judged,
    agreement,
    answers,
    judged,
)
from pathsum.report.document import Column, Section, Table, Text
from pathsum.report.theme import Figures, Theme

TITLE = "Do they agree?"
PAIRS = (("weights", "behaviour"), ("weights", "intervention"), ("behaviour", "intervention"))
NAMED = 6  # heads or edges of a question that are named in a row
METHOD = (
    "Each kind of evidence is reduced to yes or no by a threshold. The thresholds for weights and intervention were "
    "fixed before anything was counted (the composition rule on synthetic corpora); those for behavior were fixed "
    "after such models had been seen.",
    f"Weights. Copying: the eigenvalue positivity of OV exceeds {COPYING}. Induction: that of OV and that of QK "
    "matching do. Previous token: the head K-composes with the best induction head, if one has formed; the weights "
    f"alone contain no positions. Edge: the two heads compose, that is, {COMPOSITION_RULE}.",
    "Behavior. A head has the label that the section on what each head does gives it; for copying, the interval of its "
    "copying score lies above chance. A K-edge counts if the early head has the label previous token or two tokens "
    "back and the late head is an induction head. A Q-edge counts if the early head attends to itself or to the "
    "previous token and the late head is an induction head. V-edges have no behavioral test.",
    "Intervention. The rise of the loss on the second copy of repeated random tokens under resample ablation. For a "
    f"head, the 95 % interval must lie above 0 and above its control's; for an edge, above {NEEDED} nats.",
    "The evidence from weights uses behavior in one place only: the induction head whose keys the previous-token "
    "question concerns is chosen by its prefix-matching score. Predicting the second copy is one task. A head or edge "
    "that this task does not need may be needed for another, and one that it does need may work by a different "
    "mechanism from the one in question.",
)


def section(results: Results, _: Figures) -> Section:
    """Count how often three kinds of evidence agree on heads and edges, and name the widest disagreements."""
    items = [item for cell in results.cells.values() for item in judged(cell)]
    if not items:
        return Section(TITLE, ("This sweep has no heads.",))
    return Section.of(
        TITLE, (*METHOD, _edges(items), _induction(items), _copying(items)), (_counts(items), _named(items))
    )


# ---- text -----------------------------------------------------------------------------------------------------------


def _edges(items: Sequence[Judged]) -> str:
    """Count the composing edges that the second copy needs, by kind of edge."""
    edges = [i for i in items if i.question in EDGES and answers([i], "weights", "intervention")]
    counts: list[str] = []
    confirmed: dict[bool, list[str]] = {True: [], False: []}
    for question in dict.fromkeys(q for q in EDGES for i in edges if i.question == q):
        claimed, others = _split([i for i in edges if i.question == question])
        needed = _yes(claimed, "intervention")
        counts.append(
            f"{needed} of {plural(len(claimed), question)} that {'composes' if len(claimed) == 1 else 'compose'}, "
            f"{_yes(others, 'intervention')} of {len(others)} other{'' if len(others) == 1 else 's'}"
        )
        if claimed:
            confirmed[2 * needed >= len(claimed)].append(f"{question}s")
    if not counts:
        return ""
    text = f"The second copy needs {'; '.join(counts)}."
    if holds := confirmed[True]:
        text += f" Most {' and '.join(holds)} that compose are confirmed."
    if fails := confirmed[False]:
        text += (
            f" Most {' and '.join(fails)} that compose are not confirmed: heads share directions that repeats do not "
            "depend on."
        )
    unneeded = _split([i for i in edges if not i.says("intervention")])
    claimed_nats, other_nats = ([i.text_nats for i in part if i.text_nats is not None] for part in unneeded)
    if claimed_nats and other_nats:
        text += (
            f" Of edges that it does not need, the held-out loss rises at the median by "
            f"{number(median(claimed_nats), 3)} nats without one that composes, by {number(median(other_nats), 3)} "
            "without another."
        )
    return text


def _induction(items: Sequence[Judged]) -> str:
    heads = [i for i in items if i.question == INDUCTION]
    if not heads:
        return ""
    weights, behaviour, intervention = (_yes(heads, kind) for kind in KINDS)
    return (
        f"Of {plural(len(heads), 'head')} past the first layer, {weights} do induction by weights, {behaviour} by "
        f"behavior, {intervention} are needed by the second copy, and all three hold for "
        f"{sum(all(map(i.says, KINDS)) for i in heads)}."
    )


def _copying(items: Sequence[Judged]) -> str:
    """Compare the need for copying heads on random tokens and on text."""
    heads = [i for i in items if i.question == COPIES and answers([i], "weights", "intervention")]
    copying, others = _split(heads)
    if not copying:
        return ""
    unneeded = [i for i in copying if not i.says("intervention")]
    text = (
        f"The second copy needs {len(copying) - len(unneeded)} of {plural(len(copying), 'head')} that copy by their "
        f"weights and {_yes(others, 'intervention')} of {len(others)} that do not."
    )
    if unneeded:
        repeats = span([i.intervention.value for i in unneeded if i.intervention is not None])
        held_out = span([i.text_nats for i in unneeded if i.text_nats is not None])
        text += (
            f" Without one of the {len(unneeded)} that copy and are not needed, the loss there changes by {repeats} "
            f"nats, the held-out loss by {held_out}: where the latter rises, text uses the head, and repeated random "
            "tokens are the wrong task to test it on."
        )
    return text


def _split(items: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Separate those of which weights say yes from the others."""
    return [i for i in items if i.says("weights")], [i for i in items if not i.says("weights")]


def _yes(items: Sequence[Judged], kind: str) -> int:
    return sum(i.says(kind) for i in items)


# ---- tables ---------------------------------------------------------------------------------------------------------


def _counts(items: Sequence[Judged]) -> Table:
    groups = sorted({(i.question, i.n_layers) for i in items}, key=lambda group: (QUESTIONS.index(group[0]), group[1]))
    return Table.of(
        [(*group, [i for i in items if (i.question, i.n_layers) == group]) for group in groups],
        Text("question", lambda question, *_: question),
        Column("layers", lambda _, n_layers, __: n_layers),
        *(Column(f"{KINDS[kind]}: yes", lambda *row, kind=kind: _measured(row[-1], kind)) for kind in KINDS),
        Column("all: yes", lambda *row: f"{sum(i.agreed for i in row[-1])} of {len(row[-1])}"),
        *(Column(f"{KINDS[a]} – {KINDS[b]} (κ)", lambda *row, a=a, b=b: _pair(row[-1], a, b)) for a, b in PAIRS),
        caption="How many heads or edges each kind of evidence says yes of, how many all that were measured do, and "
        "the share of which two say the same, all models of a depth together. Where most are no, the share is high by "
        "chance: Cohen's κ is 0 at chance and 1 where both always say the same (–: both give one answer for all).",
        csv="agreement.csv",
    )


def _measured(items: Sequence[Judged], kind: str) -> str:
    n = sum(i.of(kind) is not None for i in items)
    return f"{_yes(items, kind)} of {n}" if n else "–"


def _pair(items: Sequence[Judged], first: str, second: str) -> str:
    found = agreement(answers(items, first, second))
    return "–" if found is None else f"{number(found.share)} of {found.n} ({number(found.kappa)})"


def _named(items: Sequence[Judged]) -> Table:
    return Table.of(
        [(cell, [i for i in items if i.cell == cell]) for cell in dict.fromkeys(i.cell for i in items)],
        Text("model", lambda cell, _: cell),
        Text("all say yes", lambda _, some: _agreed(some)),
        Text("claimed by weights, not needed", lambda _, some: _widest(some, "weights", "intervention")),
        Text("needed, not claimed by weights", lambda _, some: _widest(some, "intervention", "weights")),
        caption="The heads and edges of which all evidence that was measured says yes, and the widest disagreements: "
        "the largest excess of the weights' number over its threshold that intervention does not confirm, and the "
        "largest rise of the loss on the second copy where weights say no, among edges (with one layer, among heads).",
        csv="agreement.csv",
    )


def _agreed(items: Sequence[Judged]) -> str:
    parts = []
    for question in QUESTIONS:
        if names := [i.name for i in items if i.question == question and i.agreed]:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            parts.append(f"{question} {', '.join(names[:NAMED])}{more}")
    return "; ".join(parts) or "none"


def _widest(items: Sequence[Judged], yes: str, no: str) -> str:
    """Name the edge, or with one layer the head, that exceeds the bar of one kind of evidence most, of those of which
    the other says no."""
    compared = [i for i in items if i.question in EDGES] or items
    found = [(e.value - e.bar, i) for i in compared if (e := i.of(yes)) and e.says and i.of(no) and not i.says(no)]
    if not found:
        return "none"
    _, item = max(found, key=lambda pair: pair[0])
    assert item.weights is not None
    assert item.intervention is not None
    return (
        f"{item.question} {item.name}: weights {number(item.weights.value)} against {number(item.weights.bar)}, rise "
        f"{number(item.intervention.value)} nats"
    )


THEME = Theme(
    TITLE,
    section,
    sources={"agreement": ("heads", "labels", "composition", "ablations")},
    relies_on=(
        *("copying", "previous_token", "induction"),
        *("composition_q", "composition_k", "composition_v", "composition"),
    ),
    tables=("agreement",),
)
