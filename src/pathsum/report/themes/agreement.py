"""The section on the agreement of weights, behavior and intervention, for each head and each edge."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pathsum.claims.formatting import number, plural, span
from pathsum.page.document import Column, Section, Table, Text
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
from pathsum.report.theme import Figures, Theme

TITLE = "Agreement of weights, behavior and intervention"
PAIRS = (("weights", "behaviour"), ("weights", "intervention"), ("behaviour", "intervention"))
NAMED = 6  # heads or edges that a table field names per question
METHOD = (
    "For each head and each edge, each kind of evidence is reduced to yes or no by a threshold. The thresholds for "
    "weights and intervention were fixed before any agreement was counted; the composition rule was tuned on synthetic "
    "corpora. The thresholds for behavior were fixed after models of this kind had been seen.",
    f"Evidence from weights. A head copies if the eigenvalue positivity of its OV circuit exceeds {COPYING}. A head "
    "after the first layer does induction if the positivity of its OV circuit and that of its QK matching (with the "
    f"first-layer head that attends most to the previous token) both exceed {COPYING}. A first-layer head counts as a "
    "previous-token head if it K-composes with the best induction head, provided that one has formed; the weights "
    "alone do not show to which positions a head attends. An edge counts if it composes (rule in the section “Two "
    "layers”).",
    "Evidence from behavior. A head copies if, on held-out text, its output raises the tokens that it attends to more "
    "than those that it attends to in another window (rule in the section “One layer”). A head does induction, or is "
    "a previous-token head, if it has that label in the section “What each head does”. A K-edge counts if the early "
    "head has the label previous token or two tokens back and the late head the label induction. A Q-edge counts if "
    "the early head attends to its own position or to the previous token and the late head has the label induction. "
    "V-edges have no behavioral test.",
    "Evidence from intervention: the rise of the loss on the second copy of repeated random tokens under resample "
    "ablation. A head counts as needed if the 95 % interval of this rise lies above 0 and above that of its control "
    f"(subtracting a randomly rotated output); an edge, if the interval lies above {NEEDED} nats per token.",
    "Evidence from weights does not come from weights alone. The previous-token head of QK matching is chosen by its "
    "attention, and the induction head with which a previous-token head must K-compose by its prefix matching. Edges "
    "are judged also by what heads write on held-out text. "
    "Intervention tests a single task, prediction of the second copy. A head or edge that this task does not need may "
    "be needed for another task, and one that it needs may work by a mechanism other than the one in question.",
)


def section(results: Results, _: Figures) -> Section:
    """Count how often the three kinds of evidence agree on heads and edges, and name the largest disagreements."""
    items = [item for cell in results.cells.values() for item in judged(cell)]
    if not items:
        return Section(TITLE, ("This sweep has no heads.",))
    return Section.of(
        TITLE, (*METHOD, _edges(items), _induction(items), _copying(items)), (_counts(items), _named(items))
    )


# ---- text -----------------------------------------------------------------------------------------------------------


def _edges(items: Sequence[Judged]) -> str:
    """State how many edges are needed to predict the second copy, by kind and by whether they compose."""
    edges = [i for i in items if i.question in EDGES and answers([i], "weights", "intervention")]
    counts: list[str] = []
    confirmed: dict[str, list[str]] = {"most": [], "at most half": [], "none": []}
    for question in dict.fromkeys(q for q in EDGES for i in edges if i.question == q):
        claimed, others = _split([i for i in edges if i.question == question])
        needed = _yes(claimed, "intervention")
        counts.append(
            f"{needed} of {plural(len(claimed), question)} that {'composes' if len(claimed) == 1 else 'compose'} and "
            f"{_yes(others, 'intervention')} of {len(others)} that {'does' if len(others) == 1 else 'do'} not"
        )
        if claimed:
            share = "most" if 2 * needed > len(claimed) else "at most half" if needed else "none"
            confirmed[share].append(f"{question}s")
    if not counts:
        return ""
    text = f"Prediction of the second copy needs {'; '.join(counts)}."
    found = [f"{share} of the {' and '.join(kinds)}" for share, kinds in confirmed.items() if kinds]
    if found:
        text += f" Of the edges that compose, intervention confirms {', and '.join(found)}."
    if confirmed["at most half"] or confirmed["none"]:
        text += (
            " A composition score can also be high because two heads share directions of the residual stream that this "
            "task does not use."
        )
    unneeded = _split([i for i in edges if not i.says("intervention")])
    claimed_nats, other_nats = ([i.text_nats for i in part if i.text_nats is not None] for part in unneeded)
    if claimed_nats and other_nats:
        text += (
            " Cutting an edge that is not needed for the second copy raises the held-out loss by a median of "
            f"{number(median(claimed_nats), 3)} nats if the edge composes, and of {number(median(other_nats), 3)} nats "
            "if it does not."
        )
    return text


def _induction(items: Sequence[Judged]) -> str:
    heads = [i for i in items if i.question == INDUCTION]
    if not heads:
        return ""
    weights, behaviour, intervention = (_yes(heads, kind) for kind in KINDS)
    return (
        f"Of {plural(len(heads), 'head')} after the first layer, {weights} do induction by weights, {behaviour} do so "
        f"by behavior, and {intervention} are needed by intervention. All three hold for "
        f"{sum(all(map(i.says, KINDS)) for i in heads)}."
    )


def _copying(items: Sequence[Judged]) -> str:
    """Compare how much the losses on random tokens and on text depend on the heads that copy by their weights."""
    heads = [i for i in items if i.question == COPIES and answers([i], "weights", "intervention")]
    copying, others = _split(heads)
    if not copying:
        return ""
    unneeded = [i for i in copying if not i.says("intervention")]
    text = (
        f"Prediction of the second copy needs {len(copying) - len(unneeded)} of {plural(len(copying), 'head')} that "
        f"copy by their weights and {_yes(others, 'intervention')} of {len(others)} that do not."
    )
    if unneeded:
        repeats = span([i.intervention.value for i in unneeded if i.intervention is not None])
        held_out = span([i.text_nats for i in unneeded if i.text_nats is not None])
        text += (
            f" Ablation of one of the {len(unneeded)} heads that copy by their weights but are not needed changes the "
            f"loss on the second copy by {repeats} nats and the held-out loss by {held_out} nats (ranges over heads). "
            "A rise on the second copy shows need only if its 95 % interval lies above 0 and above that of the head's "
            "control; this holds for none of these heads. A rise of the held-out loss, here without a control, "
            "suggests that the model uses the head on text in a way that repeated random tokens do not test."
        )
    return text


def _split(items: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Separate ``items`` by the evidence from weights: those with yes, and those with no."""
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
        *(Column(f"{KINDS[a]} – {KINDS[b]} (κ; n)", lambda *row, a=a, b=b: _pair(row[-1], a, b)) for a, b in PAIRS),
        caption="Number of heads or edges for which each kind of evidence, and all measured kinds together, say yes. "
        "The last three columns give, for two kinds of evidence, the share of heads or edges on which they agree, and "
        "in parentheses Cohen's κ and the number n of heads or edges. Models of the same depth are pooled. If most "
        "answers are no, the share is high by chance; κ is 0 at chance and 1 at complete agreement (–: all answers of "
        "both kinds are equal).",
        csv="agreement.csv",
    )


def _measured(items: Sequence[Judged], kind: str) -> str:
    n = sum(i.of(kind) is not None for i in items)
    return f"{_yes(items, kind)} of {n}" if n else "–"


def _pair(items: Sequence[Judged], first: str, second: str) -> str:
    found = agreement(answers(items, first, second))
    return "–" if found is None else f"{number(found.share)} ({number(found.kappa)}; {found.n})"


def _named(items: Sequence[Judged]) -> Table:
    return Table.of(
        [(cell, [i for i in items if i.cell == cell]) for cell in dict.fromkeys(i.cell for i in items)],
        Text("model", lambda cell, _: cell),
        Text("all say yes", lambda _, some: _agreed(some)),
        Text("yes by weights, no by intervention", lambda _, some: _widest(some, "weights", "intervention")),
        Text("yes by intervention, no by weights", lambda _, some: _widest(some, "intervention", "weights")),
        caption="All say yes: heads and edges with yes from all measured evidence. Last columns: the largest "
        "disagreements among edges (with one layer, among heads). Yes by weights, no by intervention: the edge whose "
        "composition score most exceeds chance (the head whose positivity most exceeds its threshold). Yes by "
        "intervention, no by weights: the edge with the largest rise of the loss on the second copy (the head whose "
        "rise most exceeds its control). Composition scores here include the mean write, which the composition rule "
        "leaves out. An edge that does not compose can therefore have a score above chance.",
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
    """Name the largest disagreement of two kinds of evidence, or "none"."""
    compared = [i for i in items if i.question in EDGES] or items
    found = [(e.value - e.bar, i) for i in compared if (e := i.of(yes)) and e.says and i.of(no) and not i.says(no)]
    if not found:
        return "none"
    _, item = max(found, key=lambda pair: pair[0])
    assert item.weights is not None
    assert item.intervention is not None
    bar = "chance" if item.question in EDGES else "threshold"
    return (
        f"{item.question} {item.name}: weights {number(item.weights.value)} ({bar} {number(item.weights.bar)}), rise "
        f"of the loss {number(item.intervention.value)} nats"
    )


THEME = Theme(
    TITLE,
    section,
    sources={"agreement": ("heads", "labels", "composition", "ablations")},
    relies_on=(
        *("copying", "previous_token", "induction"),
        *("composition_q", "composition_k", "composition_v", "composition"),
    ),
    few_windows=True,
    tables=("agreement",),
)
