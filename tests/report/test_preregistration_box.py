"""Both forms of the report state what was tuned, on what, when the claims were frozen, and what has changed since."""

import datetime
from dataclasses import replace
from html import unescape

import pytest

from pathsum.claims.preregistration import Change, Preregistration, Protocol
from pathsum.claims.registry import judge_all, stated
from pathsum.report.page.render import html, markdown
from pathsum.report.story import story
from pathsum.report.verdicts import notes
from tests.report import synthetic

DAY, LATER = datetime.date(2025, 3, 7), datetime.date(2025, 3, 11)
PROTOCOL = Protocol(tuning_seeds=(100, 101), statements={"Tuned on": "Seeds 100 and 101, two heads per layer."})
FROZEN = Preregistration(frozen=DAY, protocol=PROTOCOL, claims=stated(), sha256="0123456789ab")
CHANGED = FROZEN.model_copy(update={"changes": (
    Change(claim="two_layer_induction", date=LATER, what="threshold", why="a typo", old="≥ 0.5", new="≥ 0.4"),
    Change(claim="zero_layer_bigram", date=LATER, what="retrained", why="short of it", old=0.06, new=0.04),
)})  # fmt: skip
TUNED_ON = "Judged on seeds that were tuned on"


@pytest.mark.parametrize(
    ("registered", "seed", "said", "unsaid"),
    [
        (Preregistration(), 0, ["Not frozen: protocol, measures and thresholds may still change."], "SHA-256"),
        (FROZEN, 0, ["frozen on 2025-03-07", "SHA-256 0123456789ab…", "Seeds 100 and 101, two heads"], TUNED_ON),
        (FROZEN, 101, [TUNED_ON, "2 layers · 2 heads · seed 0 (seed 101)"], "Changes of claims after freezing"),
        (
            CHANGED,
            0,
            [
                "2 changes followed, 1 of these after verdicts were seen (models retrained)",
                "The threshold was changed on 2025-03-11, after the claims were frozen; before: ≥ 0.5.",
                "after their verdict had been seen (values before: 0.060; after: 0.040)",
                "1 of 1 model, retrained after a first verdict",
                "a typo",
            ],
            TUNED_ON,
        ),
    ],
    ids=["not frozen", "frozen", "tuned on", "changed"],
)
def test_both_forms_say_what_was_frozen_and_what_has_changed_since(
    registered: Preregistration, seed: int, said: list[str], unsaid: str
) -> None:
    results = synthetic.results(layers=(0, 2), heads=(2,), seeds=(0,))
    cells = {n: replace(c, summary=replace(c.summary, seed=seed)) for n, c in results.cells.items()}
    results = replace(results, cells=cells, calibration=[])
    document = story(results, judge_all(results), {}, registered)
    for text in (unescape(html(document)), unescape(markdown(document))):
        assert [words for words in said if words not in text] == []
        assert unsaid not in text
    assert notes(registered, "previous_token_head") == ()
