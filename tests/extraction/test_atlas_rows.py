"""The tables of skip-trigrams and of their bugs, for models of any depth."""

import pytest
import torch
from torch import Tensor

from pathsum.extraction.atlas import BUGS, tables
from pathsum.extraction.inputs import EvalData, trace_model
from pathsum.records.skip_trigrams import SkipTrigramRow, SkipTrigramTallyRow
from tests import handmade
from tests.calibration.synthetic import transformer
from tests.extraction.small import HOW, taken_apart
from tests.training.small import D_VOCAB, MODEL


@pytest.mark.parametrize(("n_layers", "norm"), [(0, "none"), (1, "rms"), (2, "layer")])
def test_every_head_has_its_list_from_the_worthiest_down(n_layers: int, norm: str) -> None:
    found = taken_apart(n_layers=n_layers, norm=norm).tables
    listed = found["skip_trigrams"]
    heads = [(layer, h) for layer in range(n_layers) for h in range(2)]
    assert [(t.layer, t.head) for t in found["skip_trigram_tallies"]] == heads
    assert {(r.layer, r.head) for r in listed} <= set(heads)
    total_effect = {(r.layer, r.head, r.rank): r.effect_logits * r.places for r in listed}
    assert all(total_effect.get((layer, h, k - 1), x) >= x - 1e-6 * abs(x) for (layer, h, k), x in total_effect.items())
    assert all(r.effect_logits > 0 and r.places > 0 for r in listed)


def test_a_bug_costs_something_and_the_text_does_not_bear_it_out() -> None:
    """In a cycle with steps of one and two, most crossed triples of what a head raises never occur."""
    found = taken_apart(n_layers=1, norm="rms").tables
    bugs, listed = found["skip_trigram_bugs"], found["skip_trigrams"]
    assert 0 < len(bugs) <= BUGS * 2
    assert all(b.price_nats > 0 and b.places > 0 and b.text_hits <= b.text_expected for b in bugs)
    assert all(b.qk_nats > 0 and b.ov_logit > 0 for b in bugs)
    assert not {(b.head, b.source, b.destination, b.out) for b in bugs} & {
        (r.head, r.source, r.destination, r.out) for r in listed
    }


REST, OFTEN, NEXT, KEEP, IN, MIND = 1, 2, 3, 4, 5, 6
LONG = MODEL.model_copy(update={"n_ctx": 29})


def resting_text() -> Tensor:
    """Return text of three frequent tokens, none of which predicts another. A fifth of the windows contain "in"."""
    shares = torch.ones(D_VOCAB)
    shares[[0, KEEP, IN, MIND]], shares[[REST, OFTEN, NEXT]] = 0, 9
    windows = shares.multinomial(451 * (LONG.n_ctx + 1), True, generator=torch.Generator().manual_seed(0))
    windows = windows.view(451, LONG.n_ctx + 1)
    windows[:, 0], windows[1::5, 5] = 0, IN
    return windows


def keeping(windows: Tensor, every: slice) -> Tensor:
    """Insert "keep … in mind" into some of the windows."""
    windows[every, 3] = KEEP
    windows[every, 5:7] = torch.tensor([IN, MIND])
    return windows


def tabled(held_out: Tensor) -> tuple[list[SkipTrigramRow], SkipTrigramTallyRow]:
    """Return the tables of a head that attends from "in" to "keep" and raises "mind", and elsewhere attends to a
    frequent token and raises another one. Every window is a document, so every second window judges."""
    qk, ov = torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    qk[:, REST], qk[IN, REST], qk[IN, KEEP] = 5, 0, 5
    ov[NEXT, REST], ov[MIND, KEEP] = 2, 2
    words = [f"w{i}" for i in range(D_VOCAB)]
    counts, windows = torch.zeros(D_VOCAB, D_VOCAB), held_out[:101]
    data = EvalData(held_out, torch.arange(len(held_out)), windows, windows, torch.ones(D_VOCAB), counts, words, "w")
    model = transformer(handmade.skip_trigram_head(qk, ov), LONG, (), None)
    found = tables(trace_model(model, LONG.n_ctx, data, HOW), data, HOW)
    (tally,) = found["skip_trigram_tallies"]
    return found["skip_trigrams"], tally


KEEP_IN_MIND, BIAS = ("w4", "w5", "w6"), ("w1", "w2", "w3")


def by_rank(rows: list[SkipTrigramRow]) -> list[tuple[str, str, str]]:
    return [(r.source, r.destination, r.out) for r in sorted(rows, key=lambda r: r.rank)]


def test_a_bias_is_a_candidate_and_not_listed() -> None:
    """What a head without a matching key writes is no skip-trigram, however often it occurs."""
    rows, tally = tabled(keeping(resting_text(), slice(0, None, 5)))
    assert by_rank(rows)[0] == KEEP_IN_MIND
    assert BIAS not in by_rank(rows)
    assert rows[0].confirmed
    assert rows[0].text_lift is not None
    assert rows[0].text_lift > 1.5
    assert tally.candidates > tally.tested > tally.confirmed >= 1
    assert tally.confirmed >= tally.passing >= 1
    assert tally.copying == tally.passing_copying == 0


def test_the_base_rate_passes_the_same_tests_as_what_is_listed() -> None:
    """Many triples repeat their source by chance, but none of the triples beyond chance does."""
    rows, tally = tabled(keeping(resting_text(), slice(0, None, 5)))
    assert rows[0].confirmed
    assert tally.base_rate == 0
    assert tally.base_passing > 0
    copied = keeping(resting_text(), slice(0, None, 5))
    copied[copied == MIND] = KEEP  # "keep … in keep"
    _, tally = tabled(copied)
    assert tally.base_rate is not None
    assert tally.base_rate > 0.1
    half = keeping(resting_text(), slice(0, None, 10))  # even windows alone: the judging documents hold nothing
    tally = tabled(half)[1]
    assert (tally.base_rate, tally.base_passing) == (None, 0)


def test_what_only_the_choosing_documents_hold_is_not_confirmed_and_what_only_the_judging_hold_is_not_listed() -> None:
    rows, _ = tabled(keeping(resting_text(), slice(0, None, 10)))  # even windows alone
    assert by_rank(rows)[0] == KEEP_IN_MIND
    assert rows[0].text_places == rows[0].text_hits == 0
    assert not rows[0].confirmed
    rows, tally = tabled(keeping(resting_text(), slice(5, None, 10)))
    assert KEEP_IN_MIND not in by_rank(rows)
    assert tally.candidates > 0
