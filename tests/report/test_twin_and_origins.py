"""The page and the Markdown report have the same content. Every number links to its record, and every record to its
code."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd

from pathsum.claims.registry import judge_all
from pathsum.records import registry
from pathsum.records.results import Results
from pathsum.report.figures.base import Figure
from pathsum.report.page.document import anchor
from pathsum.report.story import story
from pathsum.report.theme import sources
from pipelines.paths import ROOT


class Told(HTMLParser):
    """The content of the page, paragraph by paragraph and field by field, without links and elements that only the page
    has."""

    SAID, ELSEWHERE = ("p", "figcaption", "td", "th", "h1", "h2", "h3"), ("files", "from", "widget")

    def __init__(self, source: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[tuple[str, bool]] = []  # tag, and whether it is to be passed over
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "img", "input", "br"):
            return
        kind = (dict(attrs).get("class") or "").split()
        passed = tag in ("script", "style", "nav", "noscript") or any(k in self.ELSEWHERE for k in kind)
        self.open.append((tag, passed or any(p for _, p in self.open)))
        if tag in self.SAID:
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(tag in self.SAID for tag, _ in self.open) and not self.open[-1][1]:
            self.texts[-1] += data


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_both_forms_say_the_same_in_the_same_order(full: Path) -> None:
    """Every paragraph, caption and field of the page is in the Markdown report, in the same order."""
    source = (full / "README.md").read_text(encoding="utf-8")
    twin = squeezed(html.unescape(re.sub(r"\]\([^)]*\)|</?code>|[\[|*]|^#+ ", "", source, flags=re.M)))
    said = [squeezed(text) for text in Told((full / "index.html").read_text(encoding="utf-8")).texts]
    at = 0
    for text in said:
        found = twin.find(text, at)
        assert found >= 0, (text, twin[at : at + 200])
        at = found + len(text)
    assert len("".join(said)) > 0.7 * len(twin)


def test_every_figure_and_table_leads_to_its_records_and_each_record_to_its_code(full: Path, results: Results) -> None:
    source = (full / "index.html").read_text(encoding="utf-8")
    names = set(registry.origins())
    assert {*registry.tables(), "summary", "log", "corpus", "claims", "calibration"} <= names
    assert {record for shown in sources().values() for record in shown} <= names
    assert {anchor(name) for name in names} <= set(re.findall(r'<td[^>]* id="([^"]*)"', source))
    assert all((ROOT / "src" / "pathsum" / o.code).is_file() for o in registry.origins().values())
    drawn = [path.stem for path in (full / "figures").glob("*.svg")]
    assert drawn
    figures = {name: Figure(name, "", "", b"", b"", pd.DataFrame(), False) for name in drawn}
    told = story(results, judge_all(results), figures)
    blocks = [*told.headline, *(b for s in told.sections for b in s.blocks)]
    bare = [b.name for b in blocks if not told.sources.get(b.name)]
    assert bare == ["", "", ""]  # the terms, provenance, and the table of records itself
