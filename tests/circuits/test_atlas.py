"""Skip-trigrams: their effect on text, their lift in text, and the cost of skip-trigram bugs."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from pathsum.circuits.atlas import (
    Occurrences,
    effects,
    loss_reduction,
    occurrences,
    source_weight,
    spurious_cost,
    spurious_triples,
    strongest,
)
from pathsum.circuits.paths import path_logits
from pathsum.circuits.qk_ov import ov_circuit
from pathsum.core.lowrank import LowRank
from pathsum.core.weights import Weights
from pathsum.text.lift import Counts, Text, counts
from tests import handmade

D_VOCAB, POS, BATCH = 19, 13, 37
KEEP, IN, AT, MIND, BAY, BY = 2, 3, 4, 5, 6, 7
PHRASES = ((IN, MIND), (AT, BAY))


def text(seed: int, *, planted: bool) -> Tensor:
    """Return windows of BOS and random tokens 8 to 18. If planted, they contain KEEP, a gap of one, and "in mind" or
    "at bay"."""
    g = torch.Generator().manual_seed(seed)
    windows = torch.randint(8, D_VOCAB, (BATCH, POS + 1), generator=g)
    windows[:, 0] = 0
    if planted:
        windows[:, 4] = KEEP
        windows[:, 6:8] = torch.tensor(PHRASES)[torch.arange(BATCH) % 2]
        windows[:5, 11] = IN  # with KEEP before, and a random token after
    return windows


def keeping() -> Weights:
    """Return a head that attends from "in" and "at" to "keep" by 5 nats, and raises both endings by 3 logits."""
    qk, ov = torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    qk[[IN, AT], KEEP] = 5
    ov[[MIND, BAY], KEEP] = 3
    return handmade.skip_trigram_head(qk, ov)


def seen(weights: Weights, windows: Tensor) -> tuple[LowRank, Tensor, Tensor, Occurrences]:
    """Return the OV circuit, the logits, the source weights and the occurrences of a model without positions or
    norm."""
    head, tokens = weights.layers[0][0], windows[:, :-1]
    pattern = handmade.content_pattern(head, weights.W_E.mT[tokens])
    scales = torch.ones(tokens.shape, dtype=torch.float64)
    logits = sum(path_logits(weights, p, tokens, [pattern[:, None]], [scales] * 2) for p in ((), ((0, 0),)))
    at = occurrences(windows)
    return ov_circuit(weights, head.W_OV), logits, source_weight(pattern, scales, scales, at), at  # type: ignore[return-value]


def test_synthetic_skip_trigrams_come_first_with_their_places() -> None:
    """Calibration: at "in", position 6, the attention to "keep" is e⁵ / (e⁵ + 6), times 3 logits above the mean."""
    circuit, _, weight, at = seen(keeping(), text(0, planted=True))
    found = strongest(effects(circuit, weight, at), at, 2)
    assert [(f.triple, f.places) for f in found] == [((KEEP, IN, MIND), 19), ((KEEP, AT, BAY), 18)]
    each = math.exp(5) / (math.exp(5) + 6) * 3 * (1 - 2 / 19)
    assert [f.total for f in found] == pytest.approx([19 * each, 18 * each], abs=1e-10)


def test_the_lift_of_a_synthetic_skip_trigram_is_that_of_the_text() -> None:
    """Of 24 "in" after a "keep", 5 are not followed by "mind". Neither are 7 further "in" before any "keep"."""
    windows = text(0, planted=True)
    windows[:7, 1] = IN
    (found,) = counts(Text.of(windows), [(KEEP, IN, MIND)])
    assert (found.places, found.hits, found.all_places, found.all_hits) == (24, 19, 31, 19)
    assert found.lift == pytest.approx(31 / 24)
    (rare,) = counts(Text.of(windows[:8]), [(KEEP, IN, MIND)])
    assert (rare.hits, rare.lift) == (4, None)


def test_position_0_and_the_destination_itself_are_no_sources() -> None:
    windows = torch.tensor([[0, 5, 5, 0, 7]])
    found = occurrences(windows)
    assert [*zip(found.source.tolist(), found.destination.tolist(), found.out.tolist(), strict=True)] == [(5, 5, 0)]
    told = counts(Text.of(windows), [(0, 5, 0), (5, 0, 7), (5, 5, 0), (5, 5, 5)])
    assert [(c.places, c.hits) for c in told] == [(0, 0), (0, 0), (1, 1), (1, 0)]


def counted_by_hand(windows: Tensor, triple: tuple[int, int, int]) -> Counts:
    """Count place by place: a destination at position 1 or later, and the token that follows it."""
    source, destination, out = triple
    there, all_places = [], []
    for window in windows.tolist():
        for at in (at for at in range(1, len(window) - 1) if window[at] == destination):
            all_places.append(window[at + 1] == out)
            begin = max(i for i in range(at + 1) if i == 0 or window[i] == window[0])
            there += [window[at + 1] == out] * (source in window[max(1, begin) : at])
    return Counts(len(there), sum(there), len(all_places), sum(all_places))


def test_what_is_counted_is_what_is_counted_place_by_place() -> None:
    """Identity over all triples: one token occurs at the end only, one at position 0 only, and one not at all."""
    windows = torch.randint(1, 4, (7, 11), generator=torch.Generator().manual_seed(0))
    windows[:, 0], windows[::2, -1], windows[1::3, 6] = 0, 5, 0  # some run over the end of a document
    triples = list(product(range(7), repeat=3))
    assert counts(Text.of(windows), triples) == [counted_by_hand(windows, t) for t in triples]
    assert counts(Text.of(windows[:0]), triples) == [Counts(0, 0, 0, 0)] * len(triples)
    assert counts(Text.of(windows[:, :2]), triples) == [Counts(0, 0, 0, 0)] * len(triples)


def test_the_lift_of_a_source_that_tells_nothing_is_one_and_of_few_places_none() -> None:
    assert Counts(places=20, hits=10, all_places=40, all_hits=20).lift == 1
    assert Counts(places=20, hits=0, all_places=40, all_hits=20).lift == 0
    assert Counts(places=8, hits=4, all_places=40, all_hits=20).lift is None  # four hits, four expected
    assert Counts(places=8, hits=5, all_places=40, all_hits=20).lift == 1.25
    assert Counts(places=0, hits=0, all_places=0, all_hits=0).lift is None


def test_effects_add_up_to_what_the_head_adds_to_the_next_token() -> None:
    """Identity for a random head with frozen scales: the sum over all sources, position 0 and the destination
    itself."""
    g = torch.Generator().manual_seed(1)
    weights = handmade.random_weights(seed=2, n_layers=1, d_vocab=D_VOCAB)
    windows = torch.randint(1, 5, (BATCH, POS + 1), generator=g)
    windows[:, 0] = 0
    tokens, nexts = windows[:, :-1], windows[:, 1:, None]
    scales = [torch.rand(BATCH, POS, generator=g, dtype=torch.float64) for _ in range(2)]
    pattern = torch.rand(BATCH, 3, POS, POS, generator=g, dtype=torch.float64).tril()
    logits = path_logits(weights, ((0, 1),), tokens, [pattern], scales)
    at, circuit = occurrences(windows), ov_circuit(weights, weights.layers[0][1].W_OV)
    effect = effects(circuit, source_weight(pattern[:, 1], *scales, at), at)
    summed = torch.zeros(BATCH, POS, dtype=torch.float64).index_put_((at.window, at.query), effect, accumulate=True)
    mixing = scales[1][:, :, None] * pattern[:, 1] * scales[0][:, None]
    others = mixing.diagonal(dim1=1, dim2=2).clone()
    others[:, 1:] *= circuit.dense()[nexts[:, 1:, 0], tokens[:, 1:]]
    others[:, 0] *= circuit.dense()[nexts[:, 0, 0], tokens[:, 0]]
    others[:, 1:] += mixing[:, 1:, 0] * circuit.dense()[nexts[:, 1:, 0], tokens[:, :1]]
    whole = (logits - logits.mean(-1, keepdim=True)).gather(-1, nexts)[..., 0]
    torch.testing.assert_close(summed + others, whole, rtol=1e-10, atol=1e-12)


def test_the_change_in_log_probability_is_that_of_a_model_without_the_head() -> None:
    """Identity: "keep" is the only source that the head moves."""
    weights = keeping()
    circuit, logits, weight, at = seen(weights, text(0, planted=True))
    without = path_logits(weights, (), at.windows[:, :-1], [torch.zeros(BATCH, 1, POS, POS).double()],
                          [torch.ones(BATCH, POS).double()] * 2)  # fmt: skip
    change = (logits.log_softmax(-1) - without.log_softmax(-1))[::2, 6, MIND].mean()
    assert loss_reduction(circuit, logits, weight, at, (KEEP, IN, MIND)) == pytest.approx(change.item(), abs=1e-12)
    assert change > 1


def test_a_head_without_preference_lists_nothing_that_another_text_bears_out() -> None:
    """Negative control: its list holds chance successions of one text. The list of the synthetic head holds in another
    text."""
    random = handmade.random_weights(seed=2, n_layers=1, n_heads=1, d_vocab=D_VOCAB)
    circuit, _, weight, at = seen(random, text(0, planted=False))
    there = torch.cat([text(seed, planted=False) for seed in range(1, 60)])
    found = strongest(effects(circuit, weight, at), at, 20)
    told = counts(Text.of(there), [f.triple for f in found])
    hits, expected = sum(c.hits for c in told), sum(c.expected for c in told)
    assert len(found) == 20
    assert abs(hits - expected) < 4 * math.sqrt(expected)
    here = counts(Text.of(text(0, planted=False)), [f.triple for f in found])
    assert sum(c.hits for c in here) > 1.4 * sum(c.expected for c in here)  # by selection: a text flatters its own list


def test_a_head_that_writes_nothing_has_no_skip_trigrams_and_the_list_needs_room() -> None:
    circuit, _, weight, at = seen(handmade.copying_head(D_VOCAB, strength=0.0), text(0, planted=True))
    assert strongest(effects(circuit, weight, at), at, 5) == []
    with pytest.raises(ValueError, match="expected k ≥ 1 skip-trigrams, got 0"):
        strongest(effects(circuit, weight, at), at, 0)


def test_keep_in_mind_and_keep_at_bay_force_keep_in_bay_and_keep_at_mind() -> None:
    true = [(KEEP, IN, MIND), (KEEP, AT, BAY)]
    assert set(spurious_triples(true)) == {(KEEP, IN, BAY), (KEEP, AT, MIND)}
    assert spurious_triples([(KEEP, IN, MIND), (BY, IN, BAY)]) == []  # another source has an output of its own


def test_a_synthetic_bug_is_priced_by_the_loss_of_a_model_with_and_without_that_logit() -> None:
    """Identity, against the cross-entropy at each place. A triple whose source gets no attention has price 0."""
    circuit, logits, weight, at = seen(keeping(), text(0, planted=True))
    bug = (KEEP, AT, MIND)
    found = spurious_cost(circuit, logits.log_softmax(-1), weight, at, bug)
    z, nexts = logits[1::2, 6], torch.full((18,), BAY)
    without = z.clone()
    without[:, MIND] -= math.exp(5) / (math.exp(5) + 6) * 3 * (1 - 2 / 19)
    cost = torch.nn.functional.cross_entropy(z, nexts) - torch.nn.functional.cross_entropy(without, nexts)
    assert (found.places, found.loss_nats) == (18, pytest.approx(cost.item(), abs=1e-12))
    assert cost > 0.3
    assert counts(Text.of(at.windows), [bug])[0].hits == 0
    assert found.balance_nats == found.loss_nats  # it never follows
    assert spurious_cost(circuit, logits.log_softmax(-1), weight, at, (KEEP, IN, BAY)).places == 24
    assert spurious_cost(circuit, logits.log_softmax(-1), weight, at, (KEEP, BY, MIND)).places == 0


def test_a_true_skip_trigram_pays_on_balance_though_it_costs_where_it_is_wrong() -> None:
    """Identity, against the cross-entropy at all 24 places with "in", of which 5 are not before "mind"."""
    circuit, logits, weight, at = seen(keeping(), text(0, planted=True))
    t = (KEEP, IN, MIND)
    found, here = spurious_cost(circuit, logits.log_softmax(-1), weight, at, t), at.slice(KEEP, IN)
    z, nexts = logits[at.window[here], at.query[here]], at.out[here]
    without = z.clone()
    without[:, MIND] -= weight[here] * 3 * (1 - 2 / 19)
    rise = [torch.nn.functional.cross_entropy(x, nexts, reduction="none") for x in (z, without)]
    assert found.places == 5
    assert found.loss_nats == pytest.approx((rise[0] - rise[1])[nexts != MIND].mean().item(), abs=1e-12)
    assert found.balance_nats == pytest.approx((rise[0] - rise[1]).mean().item(), abs=1e-12)
    assert found.balance_nats < 0 < found.loss_nats


def test_a_source_is_of_the_destination_s_document() -> None:
    """The first 5 is in another document than the destination; the second one is a source."""
    windows = torch.tensor([[0, 5, 6, 0, 5, 7, 8, 9]])
    found = occurrences(windows)
    triples = [*zip(found.source.tolist(), found.destination.tolist(), found.out.tolist(), strict=True)]
    assert triples == [(5, 6, 0), (5, 7, 8), (5, 8, 9), (7, 8, 9)]
    assert found.first.tolist() == [[0, 1, 2, 0, 4, 5, 6]]
    assert found.key.tolist() == [1, 4, 4, 5]
    (six,) = counts(Text.of(windows), [(6, 7, 8)])
    assert (six.places, six.all_places) == (0, 1)
