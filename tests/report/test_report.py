"""The report can be written for any results, has the same content in both forms, and shows corpus text as text."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest

from pathsum.claims import registry
from pathsum.claims.formatting import number, spelled
from pathsum.claims.metrics import headline, metrics
from pathsum.claims.registry import judge_all
from pathsum.core.storage import write_json
from pathsum.records.heads import HeadRow
from pathsum.records.paths import NormScaleRow
from pathsum.records.results import Results
from pathsum.report import told
from pathsum.report.answer import answer
from pathsum.report.build import write_report
from pathsum.report.chapters import ONE_LAYER, TWO_LAYERS, ZERO_LAYERS
from pathsum.report.figures.symbols import visible
from pathsum.report.page.document import PAPERS, slug
from pathsum.report.page.render import SCRIPTS, TEMPLATES, WIDGETS
from pathsum.report.story import FIRST, contents, draw_all
from pathsum.report.themes import norm_scales
from tests.report import synthetic
from tests.report.conftest import exported_models, made_up_results, rows_of_others

ALL_SCRIPTS = [*SCRIPTS, *chain(*WIDGETS.values())]


class Page(HTMLParser):
    """The page as a browser sees it: tags with their attributes, and text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)
        self.links = self.values("href")
        self.loads = self.values("src", "srcset", "data", "action", "poster")
        (self.policy,) = (content for content in self.values("content") if "default-src" in content)

    def values(self, *attributes: str) -> list[str]:
        return [given[name] or "" for _, given in self.tags for name in attributes if name in given]

    def count(self, tag: str) -> int:
        return [name for name, _ in self.tags].count(tag)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_asks_for_nothing(full: Path) -> None:
    page = Page((full / "index.html").read_text(encoding="utf-8"))
    assert page.policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert page.loads
    assert all(address.startswith("data:image/svg+xml,") for address in page.loads)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.values("id"))
    beside = [link for link in page.links if not link.startswith("#")]
    assert set(beside) <= set(PAPERS)  # a mailed page has no other file beside it
    assert not page.count("link")
    assert not re.search(r"url\(|@import", page.text)


def test_the_policy_names_each_inline_script_and_no_other(full: Path) -> None:
    source = (full / "index.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", source, re.S)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert len(scripts) == len(ALL_SCRIPTS)
    assert "unsafe" not in Page(source).policy
    assert re.search(r"script-src ([^;]*);", Page(source).policy)[1] == " ".join(f"'sha256-{d}'" for d in digests)  # type: ignore[index]


def test_scripts_add_no_markup() -> None:
    for name in ALL_SCRIPTS:
        source = (TEMPLATES / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|</script", source), name


def test_the_contents_lead_to_every_section(full: Path) -> None:
    source = (full / "index.html").read_text(encoding="utf-8")
    contents = re.search(r"<nav.*?</nav>", source, re.S)[0]  # type: ignore[index]
    assert re.findall(r'href="#([^"]*)"', contents) == re.findall(r'<section id="([^"]*)"', source)


def test_every_verdict_leads_to_the_place_where_its_numbers_are_printed(full: Path, results: Results) -> None:
    """Each claim has one card, with value, unit, threshold, chance and the value of every model; the first screen
    leads there, and the card to the section with the records."""
    source = (full / "index.html").read_text(encoding="utf-8")
    cards = dict(re.findall(r'<article class="claim" id="([^"]*)">(.*?)</article>', source, re.S))
    assert set(cards) == {slug(c.claim) for c in registry.claims().values()}
    assert "<b>0.00</b> (does not pass; top-1 accuracy 0.07)</li>" in source
    twin = (full / "README.md").read_text(encoding="utf-8")
    assert "**0.00** (does not pass; top-1 accuracy 0.07)\n" in twin
    for form in (source, twin):  # names of heads are spelled out
        assert "(does not pass; composes most with head 0.1, not with the previous-token head 0.0)" in form
    for judged, stated in zip(judge_all(results), registry.claims().values(), strict=True):
        text = unescape(re.sub("<[^>]*>", "", cards[slug(judged.claim)]))
        for printed in (stated.unit, judged.threshold, stated.chance(results), stated.papers, judged.section):
            assert spelled(printed) in text, (judged.id, printed)
        for name, value in judged.values.items():
            assert f"{spelled(name)}: {number(value, stated.digits)}" in text, (judged.id, name)
        assert number(judged.value, stated.digits) in text
        assert re.search(r'Evidence: <a href="#[^"]+">', cards[slug(judged.claim)])
    first = re.search(r'<ul class="verdicts">.*?</ul>', source, re.S)[0]  # type: ignore[index]
    assert [link for link in re.findall(r'href="#([^"]*)"', first) if link in cards] == [
        slug(registry.claims()[name].claim) for name in FIRST
    ]


def test_hostile_tokens_are_text_on_the_page(full: Path) -> None:
    page = Page((full / "index.html").read_text(encoding="utf-8"))
    blocks = 3 + 1 + 5 + 2 + 3  # of data: explored models, the lab's tokenizers and models, maps, watched ones
    blocks += page.text.count('{"points":')
    assert page.count("script") == blocks + len(ALL_SCRIPTS)
    assert page.count("img") + page.count("source") == len(page.loads)
    for token in synthetic.HOSTILE:
        assert visible(token) in page.text
    assert "\u202e" not in page.text
    names = {name for _, given in page.tags for name in given}
    assert not [name for name in names if name.startswith("on") or name in ("autofocus", "srcdoc")]
    assert not [link for link in page.links if link.strip().lower().startswith(("javascript:", "data:", "vbscript:"))]


def test_hostile_tokens_are_text_in_markdown(full: Path) -> None:
    source = (full / "README.md").read_text(encoding="utf-8")
    tags = set(re.findall(r"<[^>]*>", source))
    assert tags == {"<code>", "</code>", "<!-- Generated by the report stage; do not edit. -->"}
    away = re.findall(r"\]\((?!#|figures/|tables/|\.\./src/pathsum/)([^)]*)\)", source)
    assert away == list(PAPERS)
    assert "\u202e" not in source
    assert "$" not in source
    shown = {
        "".join(chr(int(e[2:-1])) if e[0] == "&" else e for e in re.findall(r"&#\d+;|.", cell))
        for cell in re.findall(r"<code>(.*?)</code>", source)
    }
    assert {visible(token) for token in synthetic.HOSTILE} <= shown


def test_every_row_of_a_markdown_table_has_as_many_fields_as_its_head(full: Path) -> None:
    widths: list[int] = []
    for line in (full / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            widths.append(line.count("|"))
            assert widths[-1] == widths[0], line
        else:
            widths = []


def test_every_file_that_the_markdown_names_exists(full: Path) -> None:
    names = re.findall(r"\]\(((?:figures|tables)/[^)]*)\)", (full / "README.md").read_text(encoding="utf-8"))
    assert len(names) > 20
    assert [n for n in names if not (full / n).is_file()] == []
    drawn = sum(len(figures) for figures, _ in contents().values()) - 1  # heads of one width have no figure of widths
    page = (full / "index.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == len(list((full / "figures").glob("*.svg"))) == drawn


def test_equal_records_give_equal_bytes_and_a_file_of_an_earlier_report_is_removed(full: Path, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "old.svg").write_text("")
    results = made_up_results()
    figures = draw_all(results, 1, 2) | draw_all(results, 0, 2)  # the shares of two processes
    write_report(results, judge_all(results), figures, tmp_path, exported=exported_models(), texts=rows_of_others())
    first, second = ({p.relative_to(d): p.read_bytes() for d in [f] for p in f.rglob("*.*")} for f in (full, tmp_path))
    assert first == second  # nor is the old file there


def test_tokens_survive_the_tables(full: Path) -> None:
    table = pd.read_csv(full / "tables" / "bigrams.csv", keep_default_na=False)
    assert set(synthetic.HOSTILE) == set(table["token"])


@pytest.mark.parametrize("layers", [(), (0, 1), (2,)])
def test_a_sweep_without_some_depth_still_makes_a_report(layers: tuple[int, ...], tmp_path: Path) -> None:
    results = synthetic.results(layers=layers, heads=(2,), seeds=(0,))
    write_report(results, judge_all(results), draw_all(results), tmp_path)
    source = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "– not testable here" in (tmp_path / "index.html").read_text(encoding="utf-8")
    absent = re.findall(rf"^## (.*)\n\n{told.absent('').paragraphs[0]}", source, re.M)
    chapters = enumerate((ZERO_LAYERS, ONE_LAYER, TWO_LAYERS))
    assert absent[: 3 - len(layers)] == [title for n, title in chapters if n not in layers]


def test_a_weight_of_repeats_is_said_on_the_first_screen() -> None:
    results = synthetic.results(layers=(2,), heads=(2,), seeds=(0,))
    assert all("a weight of" not in sentence for sentence in answer(results))
    cell = next(iter(results.cells.values()))
    led = replace(cell.summary, cell="L2H2S1", repeat_weight=3.0, repeat_tokens=2_400_000)
    both = replace(results, cells=results.cells | {"L2H2S1": replace(cell, summary=led)})
    assert "a weight of 3 in the loss, which fell to 1 by 2.4 M tokens" in answer(both)[-1]


def test_the_headline_has_verdict_counts_and_medians_over_the_models_of_a_depth() -> None:
    results = synthetic.results(heads=(2,), seeds=(0, 1, 2), missing=("L2H2S9",))
    onsets = {"L2H2S0": 500_000, "L2H2S1": None, "L2H2S2": 900_000}
    for seed, (name, loss) in enumerate(zip(onsets, (2.0, 4.0, 2.5), strict=True)):
        cell = results.cells[name]
        summary = replace(cell.summary, val_loss_nats=loss, onset_tokens=onsets[name], prefix_matching=0.1 * seed)
        results.cells[name] = replace(cell, summary=summary)
    claims = judge_all(results)
    found = headline(results, claims)
    assert sum(value for key, value in found.items() if key.startswith("claims_")) == len(claims)
    assert found["claims_reproduced"] == sum(claim.verdict == "reproduced" for claim in claims)
    assert found["models_missing"] == 1
    assert found["loss_2_layers_nats_per_token"] == 2.5
    assert found["prefix_matching_2_layers"] == 0.1
    assert found["onset_2_layers_tokens"] == 900_000  # the model without an onset counts as the latest


def test_metrics_are_strict_json_with_rounded_values(tmp_path: Path) -> None:
    results = synthetic.results(seeds=(0,))
    results = replace(results, corpus=replace(results.corpus, bigram_loss_nats=123 + 1 / 3))
    write_json(tmp_path / "metrics.json", metrics(results, judge_all(results)))
    found = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert {frozenset(c) for c in found["claims"].values()} == {frozenset({"value", "threshold", "verdict"})}
    assert found["corpus"]["bigram_loss_nats"] == 123.333
    assert found["cells"]["L1H2S0"]["onset_tokens"] is None
    assert found["cells"]["L0S0"]["prefix_matching"] is None
    assert found["provenance"] == results.provenance


def test_the_short_answer_and_the_highest_prefix_matching_are_about_all_heads_of_one_layer() -> None:
    """Guards against reporting only the head that was chosen on other data."""
    results = synthetic.results()
    assert answer(results)[0].startswith("Largely")
    name = next(name for name, c in results.cells.items() if c.summary.n_layers == 1)
    cell = results.cells[name]
    *others, last = cell.rows(HeadRow)
    found = cell.having(heads=[*others, replace(last, prefix_matching=0.31)])
    said = answer(replace(results, cells=results.cells | {name: found}))
    assert not said[0].startswith("Largely")
    assert "some induction: the highest prefix matching of any head" in said[1]
    assert "is 0.310" in said[1]


def test_equal_loss_reductions_have_no_rank_correlation() -> None:
    results = synthetic.results(layers=(2,), heads=(4,), seeds=(0,))
    ((name, cell),) = results.cells.items()
    rows = [replace(r, frozen_nats=float(i), own_nats=float(i**2)) for i, r in enumerate(cell.rows(NormScaleRow))]
    equal = [replace(r, own_nats=0.5) for r in rows]
    for norms, said in ((rows, "1.00"), (equal, "–")):
        found = replace(results, cells={name: cell.having(norm_scales=norms)})
        assert f"over the heads of a model is {said} (range" in norm_scales.section(found, {}).paragraphs[1]
