"""Each cited section of the documents exists, and each link between documents has a target."""

import importlib.util
import os
import re
from pathlib import Path

import pytest

from pipelines.paths import ROOT

FRAMEWORK = ROOT / "docs" / "framework.md"
SUFFIXES = {".py", ".md", ".yaml"}
GENERATED = {"data", "models", "circuits", "imported", "runs", "wandb", "outputs", "multirun", "build", "dvc_plots"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? ", re.M)
LIST = r"§\d+(?:\.\d+)*(?:(?:,| and|;| to| or)\s+§\d+(?:\.\d+)*)*"  # one section or several
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def sections(text: str) -> set[str]:
    """Return the numbers of all headings of a document."""
    return set(HEADING.findall(text))


def cited(text: str) -> list[str]:
    """Return the numbers of all sections of docs/framework.md that a text cites, in order. A citation may run over the
    end of a line."""
    lists = re.findall(r"docs/framework\.md[\s#*]+(" + LIST + ")", text)
    return [number for some in lists for number in re.findall(r"§([\d.]*\d)", some)]


def own(text: str) -> list[str]:
    """Return the sections that a document in docs/ cites without a path: its own or those of the framework."""
    return re.findall(r"§(\d+(?:\.\d+)*)", text)


def anchors(text: str) -> set[str]:
    """Return the anchors of a Markdown document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def dead_links(page: Path) -> list[str]:
    """Return the links of a page whose file or heading does not exist. Links to other sites are not followed."""
    dead = []
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        known = target.exists() and (
            not anchor or target.suffix != ".md" or anchor in anchors(target.read_text(encoding="utf-8"))
        )
        dead += [] if known else [link]
    return dead


def files() -> list[Path]:
    """List all files of the repository that may cite: no hidden folders, and none that stages write."""
    found = []
    for folder, inside, names in os.walk(ROOT):
        at_top = Path(folder) == ROOT
        inside[:] = [name for name in inside if not name.startswith(".") and not (at_top and name in GENERATED)]
        found += [Path(folder, name) for name in names if Path(name).suffix in SUFFIXES]
    return sorted(found)


def test_every_citation_names_a_section() -> None:
    known = sections(FRAMEWORK.read_text(encoding="utf-8"))
    wrong, count = [], 0
    for path in files():
        if path == Path(__file__):
            continue
        numbers = cited(path.read_text(encoding="utf-8"))
        count += len(numbers)
        wrong += [f"{path.relative_to(ROOT)}: §{number}" for number in numbers if number not in known]
    assert not wrong
    assert count > 30, "the citations are found"


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "README.md"], ids=lambda p: p.name)
def test_sections_that_the_documents_cite_exist(page: Path) -> None:
    known = sections(FRAMEWORK.read_text(encoding="utf-8"))
    assert [number for number in own(page.read_text(encoding="utf-8")) if number not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_the_glossary_is_in_order() -> None:
    terms = re.findall(r"^\*\*(.+?)\.\*\*", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M)
    keys = [re.sub(r"[^a-z0-9]", "", term.lower()) for term in terms]
    assert keys == sorted(keys)
    assert len(keys) == len(set(keys)) > 100


def test_each_module_that_the_framework_names_exists() -> None:
    table = (ROOT / "docs" / "framework.md").read_text(encoding="utf-8").split("## Where each quantity is computed")[1]
    named = re.findall(r"`([a-z_.]+)`", table)
    assert len(named) > 40
    missing = [name for name in named if importlib.util.find_spec(f"pathsum.{name}") is None]
    assert missing == []
