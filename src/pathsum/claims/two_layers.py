"""Claims about two-layer models: induction heads, and the composition that makes them."""

from pathsum.claims import samples
from pathsum.claims.formatting import head_label, number, span
from pathsum.claims.judging import Claim, Finding, at_least, each
from pathsum.records.composition import KEYS_COMPOSE, CompositionRow
from pathsum.records.paths import MatchingRow
from pathsum.records.results import Cell, Results

PREFIX_MATCHING, PREVIOUS_TOKEN = 0.4, 0.7  # mean attention of the two heads of the mechanism, 0..1
GAIN = 1.0  # nats per token, over guessing
MOST = 0.5  # half of the composition
POSITIVITY = 0.5  # of eigenvalues, above which a circuit matches or copies


def _k_composition(cell: Cell) -> Finding:
    """Judge the edge with the highest ``weight`` among those that lead into the induction head's keys and compose."""
    into, previous = [e for e in _into_keys(cell) if e.composes], cell.previous_token_head()
    if not into or previous is None:
        return Finding(None, False, "no head K-composes with the best induction head")
    partner = max(into, key=lambda e: e.weight)
    found = (partner.early_layer, partner.early_head)
    expected = (previous.layer, previous.head)
    note = f"composes most with head {head_label(*found)}, not with the previous-token head {head_label(*expected)}"
    return Finding(partner.varying - partner.chance, found == expected, note)


def _into_keys(cell: Cell) -> list[CompositionRow]:
    """Return the edges into the keys of the best induction head: one from each head of an earlier layer."""
    head = cell.induction_head()
    place = (head.layer, head.head) if head else None
    return [e for e in cell.rows(CompositionRow) if e.kind == "K" and (e.late_layer, e.late_head) == place]


def _mostly_k(cell: Cell) -> Finding:
    edges = cell.rows(CompositionRow)
    if not any(e.composes for e in edges):
        return Finding(None, False, "no edge composes")
    every = _share_of_keys([e for e in edges if e.varying > e.chance])
    note = f"share among all edges above chance {number(every)}"
    return at_least(_share_of_keys([e for e in edges if e.composes]), MOST, note)


def _share_of_keys(edges: list[CompositionRow]) -> float:
    return sum(e.varying - e.chance for e in edges if e.kind == "K") / sum(e.varying - e.chance for e in edges)


def _matches_and_copies(cell: Cell) -> Finding:
    head = cell.induction_head()
    if head is None or head.qk_matching_positivity is None:
        return Finding(None, False, "the best prefix-matching head is in the first layer")
    matching, note = head.qk_matching_positivity, f"head {head_label(head.layer, head.head)}"
    for pair in cell.of_induction_head(MatchingRow):
        matching, note = pair.positivity, f"{note}, query path {pair.query}, key path {pair.key}"
    value = min(matching, head.copying_positivity)
    return Finding(value, value > POSITIVITY, note)


def repeat_gain(cell: Cell) -> float:
    """Return the loss of a uniform guess minus the loss on the second copy, in nats per token."""
    return cell.summary.repeat_guessing_nats - cell.summary.repeat_second_loss_nats


def _repeat_gain(cell: Cell) -> Finding:
    return at_least(repeat_gain(cell), GAIN, f"top-1 accuracy {number(cell.summary.repeat_top1)}")


def _one_head_of(results: Results) -> str:
    heads = [len(_into_keys(c)) for c in results.of_depth(2) if c.has_induction_head()]
    return samples.or_unknown(span(heads, 0), " for naming the right head", before="0 for the value; 1 in ")


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "two_layer_induction",
        "Two-layer models form induction heads.",
        "AMF, Induction Heads",
        "prefix-matching score of the induction head, chosen at training's last evaluation",
        f"≥ {PREFIX_MATCHING}",
        each(2, lambda c: at_least(c.summary.prefix_matching, PREFIX_MATCHING)),
        chance=samples.uniform("induction: uniform", lambda results: results.of_depth(2)),
        papers="–; public two-layer checkpoints: 0.68–0.75",
        sample=samples.REPEATS,
        unit="mean attention, 0 to 1",
    ),
    Claim(
        "previous_token_head",
        "The first layer of a two-layer model has a previous-token head.",
        "AMF, How Induction Heads Work",
        "mean attention to the previous token of the first-layer head chosen at training's last evaluation",
        f"≥ {PREVIOUS_TOKEN}",
        each(2, lambda c: at_least(c.summary.previous_token, PREVIOUS_TOKEN)),
        chance=samples.uniform("previous token", lambda results: results.of_depth(2)),
        papers="–; public two-layer checkpoints: ≈ 1.0",
        sample=samples.TEXT,
        unit="mean attention, 0 to 1",
    ),
    Claim(
        "repeat_loss",
        "Two-layer models predict repeated random tokens.",
        "AMF, Induction Heads",
        "loss of a uniform guess among the sampled tokens, minus loss on the second copy (nats per token)",
        f"≥ {GAIN:g} nat",  # over guessing; the first copy's loss is higher, so a gain over it is easier
        each(2, _repeat_gain),
        chance=lambda _: "0 (guessing)",
        sample=samples.REPEATS,
        unit="nats per token below guessing",
    ),
    Claim(
        "k_composition",
        "The induction head reads the previous-token head through its keys.",
        "AMF, Three Kinds of Composition",
        "early head of the edge with the highest composition score times size, among those into the best induction "
        f"head's keys that compose, which needs a score of at least {KEYS_COMPOSE} times chance; value: that score "
        "minus chance, all without the early head's mean write",
        "is the previous-token head",
        each(2, _k_composition),
        needs_induction_head=True,
        chance=_one_head_of,
        sample=samples.over(lambda cell: [len(_into_keys(cell))], "edges into the head's keys"),
        unit="composition score (0 to 1) minus chance, of the strongest edge",
    ),
    Claim(
        "composition_mostly_k",
        "Heads of a two-layer model compose mostly through keys.",
        "AMF, Three Kinds of Composition",
        f"K's share of the excess over chance of all edges that compose (into keys: score of at least {KEYS_COMPOSE} "
        "times chance), without the early heads' mean writes",
        f"≥ {MOST}",
        each(2, _mostly_k),
        chance=lambda _: "1/3",
        sample=samples.over(lambda cell: [sum(e.composes for e in cell.rows(CompositionRow))], "edges that compose"),
        unit="share of composition",
    ),
    Claim(
        "induction_corner",
        "An induction head matches in its QK circuit and copies in its OV circuit.",
        "AMF, How Induction Heads Work",
        "smaller of QK matching and OV copying positivity, best induction head; matching on the pair of paths that "
        "carries the largest part of its preference",
        f"> {POSITIVITY}",
        each(2, _matches_and_copies),
        needs_induction_head=True,
        sample=lambda *_: "one head",
        unit="eigenvalue positivity, −1 to 1",
    ),
)
