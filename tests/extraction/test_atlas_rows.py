"""The tables of skip-trigrams and of their bugs, of whatever depth."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathsum.extraction.atlas import BUGS, tables
from pathsum.results import TABLES
from tests.extraction.test_cell import HOW, evidence
from tests.extraction.test_weights_side import trained


@pytest.mark.parametrize(("n_layers", "norm"), [(0, "none"), (1, "rms"), (2, "layer")])
def test_every_head_has_its_list_from_the_worthiest_down(tmp_path: Path, n_layers: int, norm: str) -> None:
    subject = trained(tmp_path, n_layers=n_layers, norm=norm)
    found = tables(subject, evidence(), HOW)
    assert set(found) == {"skip_trigrams", "skip_trigram_bugs"} <= set(TABLES)
    assert all(isinstance(row, TABLES[name]) for name, rows in found.items() for row in rows)
    listed = found["skip_trigrams"]
    assert {(r.layer, r.head) for r in listed} == {(layer, h) for layer in range(n_layers) for h in range(2)}
    totals = {(r.layer, r.head, r.rank): r.places * r.effect_logits for r in listed}
    assert all(totals.get((layer, h, k - 1), x) >= x * (1 - 1e-6) > 0 for (layer, h, k), x in totals.items())
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
