"""Both forms of the report state what was tuned, on what, when the claims were frozen, and what has changed since."""

from __future__ import annotations

import datetime
from dataclasses import replace
from html import unescape

from pathsum.claims.preregistration import Change, Preregistration, Protocol
from pathsum.claims.registry import judge_all, stated
from pathsum.report.page.render import html, markdown
from pathsum.report.story import story
from pathsum.report.verdicts import PREREGISTRATION, notes
from tests.report import synthetic

DAY, LATER = datetime.date(2025, 3, 7), datetime.date(2025, 3, 11)
PROTOCOL = Protocol(
    tuning_seeds=(100, 101),
    statements={"Tuned on": "Seeds 100 and 101, two heads per layer.", "What was tuned": "Rates."},
)
FROZEN = Preregistration(frozen=DAY, protocol=PROTOCOL, claims=stated(), sha256="0123456789ab")
CHANGES = (
    Change(claim="two_layer_induction", date=LATER, what="threshold", why="a typo", old="≥ 0.5", new="≥ 0.4"),
    Change(claim="loss_drop_gap", date=LATER, what="computation", why="a wrong window", old=0.61, new=0.38),
)


def both(registered: Preregistration, seed: int = 0) -> tuple[str, str]:
    """Return the text of the page and of the Markdown report, without figures."""
    results = synthetic.results(layers=(2,), heads=(2,), seeds=(0,))
    cells = {n: replace(c, summary=replace(c.summary, seed=seed)) for n, c in results.cells.items()}
    results = replace(results, cells=cells, calibration=[])
    document = story(results, judge_all(results), {}, registered)
    return unescape(html(document)), unescape(markdown(document))


def test_date_hash_and_protocol_have_a_section_to_which_the_setup_leads() -> None:
    for text in both(FROZEN):
        assert "The claims were frozen on 2025-03-07; 0 changes followed" in text[: text.rindex(PREREGISTRATION)]
        said = text[text.rindex(PREREGISTRATION) :]
        assert "frozen on 2025-03-07, before the grid ran; nothing has changed since" in said
        assert "(conf/claims.yaml, SHA-256 0123456789ab…)" in said
        assert "Seeds 100 and 101, two heads per layer." in said
        assert "Changes of claims after freezing" not in text
        assert "Judged on seeds that were tuned on" not in text


def test_listed_changes_stand_beside_the_verdict_with_the_old_value() -> None:
    for text in both(FROZEN.model_copy(update={"changes": CHANGES})):
        assert "2 changes since" in text
        cards = text[text.rindex("All claims, with the evidence") : text.rindex("Appendix: every analysis")]
        assert "The threshold was changed on 2025-03-11, after the claims were frozen; before: ≥ 0.5." in cards
        changed = "The computation was changed on 2025-03-11, after the claims were frozen"
        assert f"{changed} (values before: 0.610; after: 0.380)." in cards
        table = text[text.index("Changes of claims after freezing.") :]
        assert table.index("≥ 0.5") < table.index("a typo") < table.index("0.610") < table.index("a wrong window")


def test_models_trained_again_after_their_verdict_are_named_everywhere() -> None:
    again = Change(
        claim="zero_layer_bigram", date=LATER, what="retrained", why="short of the threshold", old=0.06, new=0.04
    )
    results = replace(synthetic.results(layers=(0, 2), heads=(2,), seeds=(0,)), calibration=[])
    document = story(results, judge_all(results), {}, FROZEN.model_copy(update={"changes": (again,)}))
    for text in (unescape(html(document)), unescape(markdown(document))):
        assert "after their verdict had been seen (values before: 0.060; after: 0.040)" in text
        assert "1 of 1 model, retrained after a first verdict" in text
        assert "1 changes followed, 1 of these after verdicts were seen (models retrained)" in text


def test_an_unchanged_claim_has_no_note_and_a_report_before_freezing_says_so() -> None:
    assert notes(FROZEN.model_copy(update={"changes": CHANGES}), "previous_token_head") == ()
    for text in both(Preregistration()):
        assert "Not frozen: protocol, measures and thresholds may still change." in text
        assert "SHA-256" not in text


def test_models_of_seeds_that_were_tuned_on_are_named() -> None:
    for text in both(FROZEN, seed=101):
        assert "Judged on seeds that were tuned on" in text
        assert "2 layers · 2 heads · seed 0 (seed 101)" in text
