"""The tables of skip-trigrams and of their bugs, of whatever depth."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from pathsum.extraction.atlas import BUGS, tables
from pathsum.extraction.evidence import Evidence, show
from pathsum.records import SkipTrigramRow
from pathsum.results import TABLES
from tests import handmade
from tests.calibration.grown import transformer
from tests.extraction.test_cell import HOW, evidence
from tests.extraction.test_weights_side import trained
from tests.training.small import D_VOCAB, MODEL


@pytest.mark.parametrize(("n_layers", "norm"), [(0, "none"), (1, "rms"), (2, "layer")])
def test_every_head_has_its_list_from_the_worthiest_down(tmp_path: Path, n_layers: int, norm: str) -> None:
    subject = trained(tmp_path, n_layers=n_layers, norm=norm)
    found = tables(subject, evidence(), HOW)
    assert set(found) == {"skip_trigrams", "skip_trigram_bugs"} <= set(TABLES)
    assert all(isinstance(row, TABLES[name]) for name, rows in found.items() for row in rows)
    listed = found["skip_trigrams"]
    assert {(r.layer, r.head) for r in listed} == {(layer, h) for layer in range(n_layers) for h in range(2)}
    worth = {(r.layer, r.head, r.rank): r.effect_logits * (r.text_hits - r.text_expected) for r in listed}
    assert all(worth.get((layer, h, k - 1), x) >= x - 1e-6 * abs(x) for (layer, h, k), x in worth.items())
    assert all(r.effect_logits > 0 and r.places > 0 for r in listed)
    assert tables(subject, evidence(), HOW) == found


def test_a_bug_costs_something_and_the_text_does_not_bear_it_out(tmp_path: Path) -> None:
    """Of a cycle with steps of one and two, most crossings of what a head raises never occur."""
    found = tables(trained(tmp_path, n_layers=1), evidence(), HOW)
    bugs, listed = found["skip_trigram_bugs"], found["skip_trigrams"]
    assert 0 < len(bugs) <= BUGS * 2
    assert all(b.price_nats > 0 and b.places > 0 and b.text_hits <= b.text_expected for b in bugs)
    assert all(b.qk_nats > 0 and b.ov_logit > 0 for b in bugs)
    assert not {(b.head, b.source, b.destination, b.out) for b in bugs} & {
        (r.head, r.source, r.destination, r.out) for r in listed
    }


REST, OFTEN, NEXT, KEEP, IN, MIND = 1, 2, 3, 4, 5, 6
LONG = MODEL.model_copy(update={"n_ctx": 29})


def keeping_and_resting_text() -> Tensor:
    """Three tokens that make up most of the text, none of which tells of another; in a fifth of the windows "keep … in
    mind", and in another fifth "in" alone, before whatever comes."""
    shares = torch.ones(D_VOCAB)
    shares[[0, KEEP, IN, MIND]], shares[[REST, OFTEN, NEXT]] = 0, 9
    windows = shares.multinomial(151 * (LONG.n_ctx + 1), True, generator=torch.Generator().manual_seed(0))
    windows = windows.view(151, LONG.n_ctx + 1)
    windows[:, 0], windows[::5, 3] = 0, KEEP
    windows[::5, 5:7] = torch.tensor([IN, MIND])
    windows[1::5, 5] = IN
    return windows


def listed(windows: Tensor, held_out: Tensor) -> list[SkipTrigramRow]:
    """Of a head that looks for "keep" from "in", which raises "mind", and elsewhere rests on a common token, which
    raises another common one."""
    qk, ov = torch.zeros(D_VOCAB, D_VOCAB), torch.zeros(D_VOCAB, D_VOCAB)
    qk[:, REST], qk[IN, REST], qk[IN, KEEP] = 5, 0, 5
    ov[NEXT, REST], ov[MIND, KEEP] = 2, 2
    words = [f"w{i}" for i in range(D_VOCAB)]
    counts = torch.zeros(D_VOCAB, D_VOCAB)
    documents = torch.arange(len(held_out))
    seen = Evidence(held_out, documents, windows, windows, torch.ones(D_VOCAB), counts, words, "words")
    model = transformer(handmade.skip_trigram_head(qk, ov), LONG, (), None)
    rows: list[SkipTrigramRow] = tables(show(model, LONG.n_ctx, seen, HOW), seen, HOW)["skip_trigrams"]
    return rows


def by_rank(rows: list[SkipTrigramRow]) -> list[tuple[str, str, str]]:
    return [(r.source, r.destination, r.out) for r in sorted(rows, key=lambda r: r.rank)]


KEEP_IN_MIND, BIAS = ("w4", "w5", "w6"), ("w1", "w2", "w3")


def test_a_skip_trigram_ranks_above_a_bias_whose_sum_of_effects_is_larger() -> None:
    """A head with nothing to look for rests somewhere, and what it writes there is no skip-trigram, however often."""
    held_out = keeping_and_resting_text()
    rows = listed(held_out[:51], held_out)
    assert by_rank(rows)[0] == KEEP_IN_MIND
    told, alone = rows[0], listed(held_out[:51], held_out[:51])
    assert told.text_lift is not None and told.text_lift > 1.5  # noqa: PT018
    sums = {(r.source, r.destination, r.out): r.places * r.effect_logits for r in alone}
    assert sums[BIAS] > 2 * told.places * told.effect_logits > 0


def test_where_no_other_text_is_held_out_the_sum_of_effects_ranks() -> None:
    """So it would be everywhere, if the text were not asked: the bias comes first."""
    windows = keeping_and_resting_text()[:51]
    alone = listed(windows, windows)
    assert by_rank(alone).index(BIAS) < by_rank(alone).index(KEEP_IN_MIND)
    assert [r.places * r.effect_logits for r in alone] == sorted(
        (r.places * r.effect_logits for r in alone), reverse=True
    )
    assert all(r.text_places == 0 and r.text_lift is None for r in alone)
