"""The claims of the framework and of the induction-heads paper on what trained models are and how they learn."""

from __future__ import annotations

from pathsum.claims import content
from pathsum.claims.formatting import head_label, number
from pathsum.claims.judging import Claim, Finding, at_least, each, within
from pathsum.probes.evaluation import Evaluation
from pathsum.records.composition import CompositionRow
from pathsum.records.formation import FormationRow
from pathsum.records.heads import HeadRow
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramRow

# ---- which cells, which numbers -------------------------------------------------------------------------------------


def _zero_layer_bigram(results: Results) -> dict[str, Finding]:
    found = {}
    for s in (c.summary for c in results.with_layers(0)):
        excess = s.bigram_excess_nats
        if excess is None:
            found[s.cell] = Finding(None, False, "not measured")
            continue
        unsure = within(0.05, s.bigram_excess_low, s.bigram_excess_high)
        found[s.cell] = Finding(excess, abs(excess) <= 0.05, unsure=unsure)
    return found


def _exact(cell: Cell) -> Finding:
    return Finding(cell.summary.exactness, cell.summary.exactness < 1e-10)


def copying_share(cell: Cell) -> float | None:
    """Of the listed skip-trigrams that the judging documents bear out, which share copies its source? None where there
    is none."""
    copying = [row.copies for row in cell.rows(SkipTrigramRow) if row.borne_out]
    return sum(copying) / len(copying) if copying else None


def _copying_skip_trigrams(cell: Cell) -> Finding:
    return at_least(share := copying_share(cell), 0.5, "no skip-trigram that both halves hold" if share is None else "")


def _no_induction(cell: Cell) -> Finding:
    """Ask every head, whichever training's last evaluation chose: the claim is that there is none."""
    best = max((h.prefix_matching for h in cell.rows(HeadRow)), default=None)
    return Finding(best, best is not None and best <= 0.05)


def _loss_drop_gap(results: Results) -> dict[str, Finding]:
    one = max((c.summary for c in results.with_layers(1)), key=lambda s: s.in_context_loss_drop_nats, default=None)
    if one is None:
        return {}
    bar, found = 0.2, {}
    for two in (c.summary for c in results.with_layers(2)):
        gap = two.in_context_loss_drop_nats - one.in_context_loss_drop_nats
        ends = (one.in_context_loss_drop_low, one.in_context_loss_drop_high)
        low, high = (None if end is None else end + bar for end in ends)  # what the two-layer model must reach
        known = low is not None and high is not None and two.in_context_loss_drop_low is not None
        unsure = known and not (two.in_context_loss_drop_low > high or two.in_context_loss_drop_high < low)  # type: ignore[operator]
        found[two.cell] = Finding(gap, gap >= bar, unsure=unsure)
    return found


def strongest_k_partner(cell: Cell) -> CompositionRow | None:
    """Which earlier head K-composes most with the best induction head?"""
    induction = cell.induction_head()
    edges = [
        e
        for e in cell.rows(CompositionRow)
        if induction is not None
        and (e.kind, e.late_layer, e.late_head) == ("K", induction.layer, induction.head)
        and e.composes
    ]
    return max(edges, key=lambda e: e.weight, default=None)


def _k_composition(cell: Cell) -> Finding:
    partner, previous = strongest_k_partner(cell), cell.previous_token_head()
    if partner is None or previous is None:
        return Finding(None, False, "no head K-composes with the best induction head")
    found = (partner.early_layer, partner.early_head)
    note = f"strongest partner {head_label(*found)}, previous-token head {head_label(previous.layer, previous.head)}"
    return Finding(partner.varying - partner.chance, found == (previous.layer, previous.head), note)


def _mostly_k(cell: Cell) -> Finding:
    excess = [(e.kind, e.varying - e.chance) for e in cell.rows(CompositionRow) if e.composes]
    if not excess:
        return Finding(None, False, "no edge composes")
    every = [(e.kind, e.varying - e.chance) for e in cell.rows(CompositionRow) if e.varying > e.chance]
    note = f"of all edges above chance {number(_share_of_keys(every))}; the rule misses more V- than K-edges"
    return at_least(_share_of_keys(excess), 0.5, note)


def _share_of_keys(excess: list[tuple[str, float]]) -> float:
    return sum(x for kind, x in excess if kind == "K") / sum(x for _, x in excess)


def _corner(cell: Cell) -> Finding:
    head = cell.induction_head()
    if head is None or head.qk_matching_positivity is None:
        return Finding(None, False, "the best prefix-matching head is in the first layer")
    pair = content.matching(cell, head.layer, head.head)
    value = min(head.qk_matching_positivity if pair is None else pair.positivity, head.copying_positivity)
    by_path = "" if pair is None else f" on {pair.query} × {pair.key}"
    return Finding(value, value > 0.5, f"{head_label(head.layer, head.head)}{by_path}")


def _onset_only_with_two(results: Results) -> dict[str, Finding]:
    one, two = results.with_layers(1), results.with_layers(2)
    early = [c.name for c in one if c.summary.onset_tokens is not None]
    found = {c.name: c.summary.onset_tokens for c in two} if one else {}
    return {
        name: Finding(
            None if tokens is None else float(tokens),
            tokens is not None and not early,
            f"an onset with one layer in {', '.join(early)}" if early else "no onset" if tokens is None else "",
        )
        for name, tokens in found.items()
    }


def across_onset(cell: Cell) -> tuple[Evaluation, Evaluation] | None:
    """Find the evaluations before and after the phase change: the last where the best prefix-matching score is under a
    tenth of its last value, and the first from which on it is over nine tenths. None without an onset."""
    if cell.summary.onset_tokens is None:
        return None
    scores = [max(s for layer in e.prefix_matching for s in layer) for e in cell.log]
    before = max((i for i, s in enumerate(scores) if s < 0.1 * scores[-1]), default=0)
    after = 1 + max(i for i, s in enumerate(scores) if s < 0.9 * scores[-1])
    return cell.log[before], cell.log[after]


def formed_across_onset(cell: Cell) -> tuple[FormationRow, FormationRow] | None:
    """Take what verdict documents say at the evaluations of ``across_onset``; None where there is no such row."""
    if (around := across_onset(cell)) is None:
        return None
    rows = {f.step: f for f in cell.rows(FormationRow)}
    before, after = (rows.get(e.step) for e in around)
    return (before, after) if before and after else None


def icl_loss_drop_before_onset(cell: Cell) -> float | None:
    """Take the loss drop at ICL's positions at the evaluation before the phase change; None where there is none."""
    around = formed_across_onset(cell)
    return around[0].icl_loss_drop_nats if around else None


def _coincides(cell: Cell) -> Finding:
    around = formed_across_onset(cell)
    if around is None:
        return Finding(None, False, "no onset")
    bars = (0.15, 0.3)
    before, after = (f.loss_drop_nats for f in around)
    unsure = any(within(bar, f.loss_drop_low, f.loss_drop_high) for bar, f in zip(bars, around, strict=True))
    note = f"{number(before)} before, {number(after)} after"
    return Finding(after - before, before < bars[0] and after > bars[1], note, unsure)


def repeat_gain(cell: Cell) -> float:
    """Subtract the loss on the second copy of repeated random tokens from that of guessing among them, nats."""
    return cell.summary.repeat_guessing_nats - cell.summary.repeat_second_loss_nats


def _repeat_gain(cell: Cell) -> Finding:
    return at_least(repeat_gain(cell), 1.0, f"right {number(cell.summary.repeat_top1)} of the time")


def _direct_path(cell: Cell) -> Finding:
    s = cell.summary
    note = (
        f"unigram alone {number(s.unigram_correlation)}, excess from {number(s.beyond_unigram_low)} to "
        f"{number(s.beyond_unigram_high)}"
    )
    return Finding(s.bigram_correlation, s.bigram_correlation >= 0.5 and s.beyond_unigram_low > 0, note)


# ---- the claims -----------------------------------------------------------------------------------------------------

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "zero_layer_bigram",
        "A zero-layer transformer is a bigram model.",
        "AMF, Zero-Layer Transformers",
        "held-out loss minus that of the best smoothed bigram model (nats)",
        "within 0.05 nats",
        _zero_layer_bigram,
        digits=3,
    ),
    Claim(
        "direct_path_bigram",
        "At every depth the direct path W_U W_E holds bigram statistics.",
        "AMF, The Path Expansion Trick",
        "correlation of W_U W_E with the corpus log P(next | token), by frequency; a unigram model correlates too",
        "≥ 0.5, and above the unigram's (95 % interval over current tokens)",  # the first bar stays; chance is not 0
        each(None, _direct_path),
    ),
    Claim(
        "path_expansion_exact",
        "The logits are exactly the sum over paths, attention patterns and norm scales fixed.",
        "AMF, The Path Expansion Trick",
        "largest relative error of the path sum over all checkpoints, float64",
        "< 1e-10",
        each(None, _exact),
    ),
    Claim(
        "one_layer_skip_trigrams",
        "A one-layer head is a table of skip-trigrams, spent mostly on copying.",
        "AMF, Interpretation as Skip-Trigrams",
        "share of skip-trigrams that copy (output = source, up to case and a leading space), of each head's strongest "
        "by summed effect on the next token's logit where they occur, among those that occur more often than chance "
        "both in the documents that chose them and in other documents, which judge",
        "≥ 0.5",
        each(1, _copying_skip_trigrams),
    ),
    Claim(
        "one_layer_no_induction",
        "One layer cannot form induction heads.",
        "AMF, Induction Heads",
        "best prefix-matching score of any head",
        "≤ 0.05",
        each(1, _no_induction),
        digits=3,
    ),
    Claim(
        "two_layer_induction",
        "Two-layer models form induction heads.",
        "AMF, Induction Heads",
        "prefix-matching score of the induction head, chosen at training's last evaluation",
        "≥ 0.4",
        each(2, lambda c: at_least(c.summary.prefix_matching, 0.4)),
    ),
    Claim(
        "previous_token_head",
        "The first layer of a two-layer model has a previous-token head.",
        "AMF, How Induction Heads Work",
        "mean attention to the previous token of the first-layer head chosen at training's last evaluation",
        "≥ 0.7",
        each(2, lambda c: at_least(c.summary.previous_token, 0.7)),
    ),
    Claim(
        "repeat_loss",
        "Two-layer models predict repeated random tokens.",
        "AMF, Induction Heads",
        "loss of a uniform guess among the sampled tokens, minus loss on the second copy (nats per token)",
        "≥ 1 nat",  # guessing is the baseline: the first copy costs more than guessing and would be too easy to beat
        each(2, _repeat_gain),
    ),
    Claim(
        "loss_drop_gap",
        "Two layers learn more from context than one.",
        "ICL, Argument 1",
        "in-context loss drop minus the largest of the one-layer cells (nats)",
        "≥ 0.2 nats",
        _loss_drop_gap,
    ),
    Claim(
        "k_composition",
        "The induction head reads the previous-token head through its keys.",
        "AMF, Three Kinds of Composition",
        "early head of the edge with the highest composition score times size, among those into the best induction "
        "head's keys that compose; value: that score minus chance, both without the early head's mean write",
        "is the previous-token head",
        each(2, _k_composition),
    ),
    Claim(
        "composition_mostly_k",
        "Heads of a two-layer model compose mostly through keys.",
        "AMF, Three Kinds of Composition",
        "K's share of the excess over chance of all edges that compose, without the early heads' mean writes",
        "≥ 0.5",
        each(2, _mostly_k),
    ),
    Claim(
        "induction_corner",
        "An induction head matches in its QK circuit and copies in its OV circuit.",
        "AMF, How Induction Heads Work",
        "smaller of QK matching and OV copying positivity, best induction head; matching on the pair of paths that "
        "carries the largest part of its preference",
        "> 0.5",
        each(2, _corner),
    ),
    Claim(
        "phase_change_two_layer",
        "Induction appears in a phase change, with two layers and not with one.",
        "ICL, Argument 1",
        "tokens seen at the onset",
        "an onset in each two-layer cell, none in a one-layer cell",
        _onset_only_with_two,
        digits=0,
    ),
    Claim(
        "phase_change_coincides",
        "In-context learning appears at the phase change.",
        "ICL, Argument 1",
        "rise of the loss drop while prefix matching goes from a tenth to nine tenths of its last value (nats)",
        "< 0.15 nats before, > 0.3 after",
        each(2, _coincides),
    ),
)
