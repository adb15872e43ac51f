"""CITATION.cff states the version of the package and cites the two papers."""

from __future__ import annotations

import tomllib

import yaml

from pipelines.paths import ROOT


def test_the_citation_has_the_version_and_the_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["version"] == project["version"]
    assert cited["authors"] == [{"name": "pathsum contributors"}]
    papers = {paper["title"]: (paper["authors"][0]["family-names"], paper["year"]) for paper in cited["references"]}
    assert papers == {
        "A Mathematical Framework for Transformer Circuits": ("Elhage", 2021),
        "In-context Learning and Induction Heads": ("Olsson", 2022),
    }
