"""Claims are reproduced where the papers' statements hold, not reproduced where they do not, and not testable without
models."""

import dataclasses
import importlib
import pkgutil
import re
from typing import Any

import pytest

from pathsum import claims
from pathsum.claims import registry, samples
from pathsum.claims.formatting import number
from pathsum.claims.joint_ablation import at_the_end
from pathsum.claims.judging import (
    ABSENT,
    NO_MODEL,
    NOT,
    PARTLY,
    REPRODUCED,
    UNTESTABLE,
    Claim,
    Finding,
    judge,
    remarks,
    within,
)
from pathsum.claims.one_layer import passing_share
from pathsum.claims.registry import judge_all
from pathsum.claims.themes import THEMES
from pathsum.records.ablations import JointAblationRow
from pathsum.records.composition import CompositionRow
from pathsum.records.formation import FormationRow
from pathsum.records.paths import ContentScoreRow
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramRow, SkipTrigramTallyRow
from pathsum.records.tokens import word_of
from pathsum.records.verdicts import ClaimResult
from pathsum.report import told
from pathsum.report.answer import answer, facts
from pathsum.report.chapters import learning_chapter
from pathsum.report.page.document import ClaimCard
from pathsum.report.story import UNFROZEN
from pathsum.report.themes import joint_ablation
from pathsum.report.verdicts import card, tally
from tests.report import synthetic

IDS = [c.id for c in registry.claims().values()]
WORKS, FAILS = synthetic.results(), synthetic.results(works=False)


def claim(name: str) -> Claim:
    return registry.claims()[name]


def printed(judged: ClaimResult, results: Results) -> ClaimCard:
    return card(judged, results, dict.fromkeys(THEMES, "a section"), UNFROZEN)


@pytest.mark.parametrize("name", IDS)
def test_a_claim_is_reproduced_where_it_holds_and_not_where_it_fails(name: str) -> None:
    assert judge(claim(name), WORKS).verdict == REPRODUCED
    assert judge(claim(name), FAILS).verdict == NOT
    if len(claim(name).evaluate(WORKS)) > 1:
        mixed = {k: FAILS.cells[k] if k.endswith("S1") else c for k, c in WORKS.cells.items()}
        assert judge(claim(name), dataclasses.replace(WORKS, cells=mixed)).verdict == PARTLY
    none = dataclasses.replace(WORKS, cells={}, controls={})
    found = judge(claim(name), none)
    assert (found.verdict, found.value, found.values) == (UNTESTABLE, None, {})
    assert claim(name).chance(none)


NEEDS = [name for name in IDS if claim(name).needs_induction_head]


def _without_induction_head(results: Results, *names: str) -> Results:
    """Return ``results`` in which no head of the models ``names`` matches prefixes."""
    cells = dict(results.cells)
    for name in names:
        last = cells[name].log[-1]
        none = dataclasses.replace(last, prefix_matching=[[0.09 for _ in layer] for layer in last.prefix_matching])
        cells[name] = dataclasses.replace(cells[name], log=[*cells[name].log[:-1], none])
    return dataclasses.replace(results, cells=cells)


def test_claims_about_two_layers_are_judged_on_deeper_models() -> None:
    first, *others = WORKS.of_depth(2)
    summary = dataclasses.replace(first.summary, n_layers=4)
    deeper = {first.name: dataclasses.replace(first, summary=summary)}
    found = dataclasses.replace(WORKS, cells={**WORKS.cells, **deeper})
    alone = dataclasses.replace(WORKS, cells=deeper, controls={})
    about_two = [name for name in IDS if [*claim(name).evaluate(WORKS)] == [c.name for c in (first, *others)]]
    assert {*NEEDS, "two_layer_induction", "phase_change_two_layer"} <= {*about_two}
    for name in about_two:
        assert judge(claim(name), found).values == judge(claim(name), WORKS).values
        assert not claim(name).evaluate(alone) or judge(claim(name), alone).verdict == REPRODUCED
    assert "Two or more layers form induction heads in 1 of 1 model" in " ".join(answer(alone))
    learning = learning_chapter(alone, {}, {c.id: c for c in judge_all(alone)})
    assert "Induction heads form in 1 of 1 two-layer model" in " ".join(learning.paragraphs)


def test_claims_about_an_induction_head_are_not_judged_where_there_is_none() -> None:
    """Guards against a verdict, or a share of 1.7, on the induction head of a model with prefix matching 0.004."""
    assert {"circuit_suffices", "induction_scores_k", "k_composition", "joint_ablation"} <= set(NEEDS)
    two = [cell.name for cell in WORKS.of_depth(2)]
    none, some = _without_induction_head(WORKS, *two), _without_induction_head(WORKS, two[0])
    for name in NEEDS:
        found = judge(claim(name), none)
        assert (found.verdict, found.value, found.values, found.absent) == (ABSENT, None, {}, two)
        rest = judge(claim(name), some)
        assert (rest.verdict, list(rest.values), rest.absent) == (REPRODUCED, two[1:], two[:1])
        made = printed(rest, some)
        assert f"No induction head here, so not judged: {two[0]}." in made.note
        assert made.passing == f"{len(two) - 1} of {len(two) - 1} models"


def test_without_two_layer_models_two_layer_claims_are_not_testable_here() -> None:
    verdicts = {c.id: c.verdict for c in judge_all(synthetic.results(layers=(0, 1)))}
    two = ("two_layer_induction", "previous_token_head", "k_composition", "phase_change_two_layer", "loss_drop_gap")
    assert {verdicts[name] for name in two} == {UNTESTABLE}
    assert verdicts["one_layer_no_induction"] == REPRODUCED


def alone(name: str, cell: Cell) -> ClaimResult:
    return judge(claim(name), dataclasses.replace(WORKS, cells={cell.name: cell}))


def detail_of(name: str, cell: Cell) -> str:
    return alone(name, cell).detail


def _with_summary(results: Results, name: str, **changes: Any) -> Results:
    cell = results.cells[name]
    changed = dataclasses.replace(cell, summary=dataclasses.replace(cell.summary, **changes))
    return dataclasses.replace(results, cells=results.cells | {name: changed})


@pytest.mark.parametrize(
    ("excess", "verdict", "unsure"),
    [
        (-0.07, PARTLY, []),
        (-0.05, REPRODUCED, ["L0S0"]),
        (0.0, REPRODUCED, []),
        (0.05, REPRODUCED, ["L0S0"]),
        (0.07, PARTLY, []),
    ],
)
def test_a_zero_layer_loss_far_below_the_bigram_model_is_as_suspect_as_one_above(
    excess: float, verdict: str, unsure: list[str]
) -> None:
    ends = {"bigram_excess_low": excess - 0.01, "bigram_excess_high": excess + 0.01}
    found = judge(claim("zero_layer_bigram"), _with_summary(WORKS, "L0S0", bigram_excess_nats=excess, **ends))
    assert (found.verdict, found.unsure) == (verdict, unsure)


def test_the_excess_over_the_bigram_model_is_the_paired_one_in_answer_and_verdict_alike() -> None:
    """Guards against differences of two means that are computed on different windows."""
    moved = _with_summary(_with_summary(WORKS, "L0S0", bigram_excess_nats=-0.2), "L0S1", bigram_excess_nats=0.01)
    assert judge(claim("zero_layer_bigram"), moved).values == {"L0S0": -0.2, "L0S1": 0.01}
    assert "0.200 nats per token below that of the best smoothed bigram model" in answer(moved)[0]
    unknown = _with_summary(_with_summary(WORKS, "L0S0", bigram_excess_nats=None), "L0S1", bigram_excess_nats=None)
    assert judge(claim("zero_layer_bigram"), unknown).verdict == NOT
    assert facts(unknown)["excess"].empty
    assert answer(unknown)[0].startswith("One layer")


def test_a_unigram_model_holds_no_bigram_statistics() -> None:
    """Guards against accepting a correlation of 0.56 as bigram statistics where a unigram model has 0.55."""
    alike = {"bigram_correlation": 0.56, "unigram_correlation": 0.55, "beyond_unigram_low": -0.02}
    assert judge(claim("direct_path_bigram"), _with_summary(WORKS, "L0S0", **alike)).verdict == PARTLY
    beyond = alike | {"beyond_unigram_low": 0.005}
    assert judge(claim("direct_path_bigram"), _with_summary(WORKS, "L0S0", **beyond)).verdict == REPRODUCED


def test_a_second_copy_no_better_than_guessing_is_not_predicted() -> None:
    """Guards against a gain of 3 nats for a model that guesses the second copy and is worse than guessing on the
    first."""
    guesses = {"repeat_first_loss_nats": 9.8, "repeat_second_loss_nats": 6.8, "repeat_guessing_nats": 6.86}
    assert judge(claim("repeat_loss"), _with_summary(WORKS, "L2H2S0", **guesses)).verdict == PARTLY


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("zero_layer_bigram", "2.550 (unigram model)"),
        ("direct_path_bigram", "0.40 (unigram model)"),
        ("repeat_loss", "0 (guessing)"),
        ("two_layer_induction", "0.010 (uniform attention)"),
        ("k_composition", "0 for the value; 1 in 2 to 4 for naming the right head"),
        ("induction_scores_k", "0.04 (all pairs of offsets equal)"),  # of 10 pairs of paths 2, of 26 pairs 4
        (
            "one_layer_skip_trigrams",
            "0.016 (triples sampled from the text that pass the same tests, n = 250); for comparison: 0.40 (all "
            "the heads' candidate skip-trigrams that pass them)",
        ),
        ("path_expansion_exact", "–"),
    ],
)
def test_chance_levels_come_from_the_records(name: str, level: str) -> None:
    """Guards against a chance level of 0 where a unigram model scores 0.4."""
    assert claim(name).chance(WORKS) == level


def test_chance_over_no_candidates_is_unknown() -> None:
    """Guards against printing 0 of 0 as 0.00."""
    cell = WORKS.cells["L1H2S0"]
    nothing: dict[str, Any] = {"passing": 0, "passing_copying": 0, "base_rate": None, "base_passing": 0}
    tallies = [dataclasses.replace(t, **nothing) for t in cell.rows(SkipTrigramTallyRow)]
    assert passing_share(tallies) is None
    changed = dataclasses.replace(WORKS, cells={cell.name: cell.having(skip_trigram_tallies=tallies)})
    assert claim("one_layer_skip_trigrams").chance(changed) == (
        "– (triples sampled from the text that pass the same tests, n = 0); for comparison: – (all the "
        "heads' candidate skip-trigrams that pass them)"
    )


def test_what_is_printed_over_models_is_called_a_range() -> None:
    assert "; range over models 1.9" in judge(claim("induction_key_edge"), WORKS).detail
    assert "the range over models (not a confidence interval)" in told.paragraphs("chapters/claims", {})[0]


def test_an_onset_with_one_layer_spoils_the_phase_change_claim() -> None:
    found = judge(claim("phase_change_two_layer"), _with_summary(WORKS, "L1H2S0", onset_tokens=1_000_000))
    assert found.verdict == NOT
    assert "an onset with one layer in L1H2S0" in found.detail


def test_k_composition_with_another_head_or_by_an_edge_that_may_be_chance_does_not_count() -> None:
    cell = WORKS.cells["L2H4S0"]
    rows = cell.rows(CompositionRow)
    moved = [dataclasses.replace(e, early_head=(e.early_head + 1) % 4) for e in rows]
    said = detail_of("k_composition", cell.having(composition=moved))
    assert said.startswith("0 of 1 model")
    assert "composes most with head L0H1, not with the previous-token head L0H0" in said
    weak = [dataclasses.replace(e, varying_q_value=0.1) for e in rows]
    assert "no head K-composes" in detail_of("k_composition", cell.having(composition=weak))


@pytest.mark.parametrize(
    ("source", "out", "same"),
    [
        ("self", "␣self", True),
        ("Ġgant", "ġgant", True),  # a letter of Maltese; no space is printed so
        ("Ġself", "self", False),
        ("Čas", "␣čas", True),
        ("c\u030cas", "čas", True),  # decomposed and composed
        ("İstanbul", "istanbul", True),
        ("STRASSE", "Straße", True),
        ("ΛΌΓΟΣ", "λόγος", True),
        ("čas", "cas", False),
        ("##as", "as", True),
        ("čas</w>", "Čas", True),
        ("##", "␣", False),
        ("</w>", "␣", False),
        ("self", "selfish", False),
        ("␣", "␣␣", False),
        ("␣", "␣", True),
    ],
)
def test_copying_ignores_case_and_a_leading_space_only(source: str, out: str, same: bool) -> None:
    assert (word_of(source) == word_of(out)) is same


def test_a_threshold_within_the_interval_is_said_so_whatever_the_verdict() -> None:
    assert within(0.05, 0.04, 0.06)
    assert not within(0.05, None, None)
    assert not within(0.05, 0.051, 0.06)
    findings = {"a": Finding(0.3, True, "no note where it passes", unsure=True), "b": Finding(0.1, False, "why")}
    bounded = Claim(
        "id", "claim", "section", "measure", "≥ 0.2", lambda _: findings, unit="nats", sample=samples.held_out
    )
    found = judge(bounded, WORKS)
    assert found.notes == {"b": "why"}
    assert found.unsure == ["a"]
    assert found.detail == (
        "1 of 2 models pass; range over models 0.10 to 0.30. Models that do not pass: b: 0.10 (why). "
        "In a, a threshold lies within a 95 % interval."
    )
    assert remarks(["a", "b", "c"], 9, [])[0].startswith("In a, b and c, ")
    assert remarks(["a", "b"], 2, [])[0].startswith("In every model, ")
    assert remarks([], 2, []) == []
    assert remarks([], 0, []) == [NO_MODEL]


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("results", [WORKS, FAILS])
def test_a_card_prints_the_value_of_every_model_and_marks_those_that_miss(name: str, results: Results) -> None:
    judged = judge(claim(name), results)
    made = printed(judged, results)
    assert made.values == {n: number(v, claim(name).digits) for n, v in judged.values.items()}
    assert made.passing.startswith(f"{len(judged.values) - len(judged.short)} of ")
    assert number(judged.value, claim(name).digits) == made.value.split(" (")[0]
    assert made.unit
    assert re.match(r"\d|one ", made.sample) or not judged.values


def test_a_card_prints_what_the_value_of_one_model_rests_on() -> None:
    """Only the models of the claim count: the heads of one layer, and the last checkpoint."""

    def sample(name: str) -> str:
        return printed(judge(claim(name), WORKS), WORKS).sample

    corpus = WORKS.corpus
    assert sample("loss_drop_gap") == (
        f"{corpus.judged_windows} held-out windows of {corpus.judged_documents} documents"
    )
    assert sample("one_layer_copying_heads") == "2 to 4 heads"
    assert sample("two_layer_induction") == "32 windows of repeated random tokens"
    assert sample("k_composition") == "2 to 4 edges into the head's keys"
    assert sample("composition_mostly_k") == "1 edges that compose"
    assert sample("phase_change_coincides") == "32 held-out windows"
    assert sample("previous_token_head") == "64 held-out windows"
    ends = {r.windows for c in WORKS.of_depth(2) for r in at_the_end(c)}
    assert sample("joint_ablation") == f"{ends.pop()} held-out windows"
    assert not ends


def test_a_sample_counts_what_there_is() -> None:
    """Not more windows than the text has, models without any unit, and thousands with a comma."""
    few = dataclasses.replace(WORKS, corpus=dataclasses.replace(WORKS.corpus, judged_windows=20))
    assert samples.TEXT(few, []) == "20 held-out windows"
    assert samples.TEXT(dataclasses.replace(WORKS, provenance={}), []) == "–"
    assert samples.over(lambda _: [0, None, 1024], "tokens")(WORKS, WORKS.of_depth(0)[:1]) == "0 to 1,024 tokens"
    assert samples.over(lambda _: [None], "tokens")(WORKS, WORKS.of_depth(0)) == "–"


def test_the_suite_s_own_claims_are_not_counted_as_the_papers() -> None:
    judged = {c.id: c for c in judge_all(WORKS)}
    counted = tally([judged["repeat_loss"], judged["two_token_matching"], judged["two_token_edges"]])
    assert counted == "Of 1 claim of the papers: 1 reproduced. Of 2 claims of our own: 2 reproduced."
    assert tally([judged["repeat_loss"]]) == "Of 1 claim of the papers: 1 reproduced."


def test_what_hangs_on_its_windows_is_marked() -> None:
    """Guards against reporting a share of 0.52 ± 0.1, or a loss drop of 0.14 ± 0.05, without marking it as unsure."""
    cell = WORKS.cells["L2H4S0"]
    for error, unsure in ((0.2, [cell.name]), (0.001, [])):
        scores = [
            dataclasses.replace(r, share_low=0.52 - error, share_high=0.52 + error) for r in cell.rows(ContentScoreRow)
        ]
        drops = [
            dataclasses.replace(r, loss_drop_low=r.loss_drop_nats - error, loss_drop_high=r.loss_drop_nats + error)
            for r in cell.rows(FormationRow)
        ]
        assert alone("induction_scores_k", cell.having(content_scores=scores)).unsure == unsure
        assert alone("phase_change_coincides", cell.having(formation=drops)).unsure == unsure
    unrecorded = cell.having(formation=cell.rows(FormationRow)[-1:])
    assert "an onset, but no record of the evaluations around it" in detail_of("phase_change_coincides", unrecorded)


def test_fewer_other_heads_are_no_control() -> None:
    """Guards against a claim without control: the model is left out, beside others it does not count."""
    cell = WORKS.cells["L2H2S0"]
    pair: dict[str, Any] = {"heads": "L1H0 L1H2", "n_heads": 2}
    two = [dataclasses.replace(r, **pair) if r.ablated == "induction" else r for r in cell.rows(JointAblationRow)]
    none = [r for r in two if r.ablated == "induction"]
    resampled = [r for r in cell.rows(JointAblationRow) if (r.ablated, r.method) != ("others", "zero")]
    for rows in (two, none, resampled):
        changed = cell.having(joint_ablation=rows)
        assert alone("joint_ablation", changed).verdict == UNTESTABLE
        beside = judge(claim("joint_ablation"), dataclasses.replace(WORKS, cells={**WORKS.cells, cell.name: changed}))
        assert beside.verdict == REPRODUCED
        assert cell.name not in beside.values
    fewer = dataclasses.replace(WORKS, cells={cell.name: cell.having(joint_ablation=two)})
    (table,) = joint_ablation.section(fewer, {}).blocks
    assert any("L1H1 (control, 1 of 2)" in entry.text for row in table.rows for entry in row)  # type: ignore[union-attr]


def test_a_joint_ablation_that_hangs_on_its_windows_is_marked() -> None:
    """Guards against unmarked findings: a lost share of 0.5 ± 0.2, or a control that equals the ablation of induction
    heads."""
    cell = WORKS.cells["L2H2S0"]
    mark = "In L2H2S0, a threshold lies within a 95 % interval"
    assert mark not in detail_of("joint_ablation", cell)
    trials: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("induction", "resample", {"share_low": 0.4}),
        ("others", "zero", {"behind_low": -0.1}),
        ("induction", "rotated", {"behind_low": -0.1}),
    )
    for ablated, method, bounds in trials:
        rows = [
            dataclasses.replace(r, **bounds) if (r.ablated, r.method) == (ablated, method) else r
            for r in cell.rows(JointAblationRow)
        ]
        assert mark in detail_of("joint_ablation", cell.having(joint_ablation=rows))


def test_mean_ablation_decides_neither_the_share_nor_the_controls() -> None:
    """Guards against comparing zero and resample ablation with controls by mean ablation."""
    cell = WORKS.cells["L2H2S0"]
    rows = [
        dataclasses.replace(r, share=0.0 if r.ablated == "induction" else 1.0, behind_low=-0.1)
        if r.method == "mean"
        else r
        for r in cell.rows(JointAblationRow)
    ]
    found = alone("joint_ablation", cell.having(joint_ablation=rows))
    assert (found.verdict, found.value) == (REPRODUCED, 0.9)
    assert "95 %" not in found.detail


def test_every_random_rotation_is_a_control_and_no_clear_loss_drop_is_no_share() -> None:
    """Guards against a verdict by the rotation that is listed first, and against a share of nothing."""
    cell = WORKS.cells["L2H2S0"]
    rows = cell.rows(JointAblationRow)
    (rotated,) = (r for r in at_the_end(cell) if r.method == "rotated")
    others = [r for r in rows if r is not rotated]
    near = dataclasses.replace(rotated, behind_low=-0.002)
    for turned in ([rotated] * 3 + [near], [near] + [rotated] * 3):
        found = alone("joint_ablation", cell.having(joint_ablation=[*others, *turned]))
        assert (found.verdict, found.unsure) == (NOT, ["L2H2S0"])
    assert alone("joint_ablation", cell.having(joint_ablation=[*others, *[rotated] * 4])).verdict == REPRODUCED
    none = [dataclasses.replace(r, share=None, share_low=None, share_high=None) for r in rows]
    found = alone("joint_ablation", cell.having(joint_ablation=none))
    assert (found.verdict, found.value) == (NOT, None)
    assert "no clear loss drop" in found.notes["L2H2S0"]


def test_what_the_judging_documents_do_not_hold_is_neither_copying_nor_not() -> None:
    """Guards against counting copying skip-trigrams that only the choosing documents contain."""
    cell = WORKS.cells["L1H2S0"]
    (first, *others) = cell.rows(SkipTrigramRow)
    rows = [dataclasses.replace(first, out="other"), *(dataclasses.replace(r, text_hits=10) for r in others)]
    found = alone("one_layer_skip_trigrams", cell.having(skip_trigrams=rows))
    assert (found.value, found.verdict) == (0, NOT)
    none = cell.having(skip_trigrams=rows[1:])
    assert "no listed skip-trigram occurs more often than chance in both halves of the documents" in detail_of(
        "one_layer_skip_trigrams", none
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0.00"),
        (-0.5, "−0.50"),
        (0.003, "0.003"),
        (-4e-15, "−4e−15"),
        (99_999, "99999.00"),
        (-300_000, "−0.3 M"),
    ],
)
def test_numbers_of_every_size_and_sign_are_printed_as_a_reader_expects_them(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_no_two_claims_have_the_same_id() -> None:
    """The later one would replace the other."""
    modules = [importlib.import_module(f"pathsum.claims.{m.name}") for m in pkgutil.iter_modules(claims.__path__)]
    stated = [claim.id for module in modules for claim in getattr(module, "CLAIMS", ())]
    assert sorted(stated) == sorted(registry.claims())
