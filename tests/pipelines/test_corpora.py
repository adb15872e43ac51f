"""`make corpora`: the corpora that it uses, the rows that it writes, and one run on a tiny text."""

import csv
import random
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pathsum.claims import registry
from pathsum.claims.registry import judge_all
from pathsum.report.corpora import row, write_rows
from pipelines import corpora as module
from pipelines.corpora import arguments, corpora, sweep
from pipelines.paths import ROOT
from pipelines.scratch import choose_profile, copy_tree
from tests.pipelines.workspace import edit, run, started
from tests.report import synthetic


def asked(monkeypatch: pytest.MonkeyPatch, text: str | None, *more: str) -> dict[str, dict[str, Any]]:
    monkeypatch.chdir(ROOT)
    return corpora(arguments([*([] if text is None else ["--text", text]), *more]))


def test_texts_come_beside_the_listed_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(monkeypatch, "a=/texts/**.txt b=rest/**.rst a=/more.txt a@prose='/with space.txt' and=/x [1]/y")
    assert list(found) == ["python", "synthetic", "a", "b", "a@prose", "and"]
    assert found["and"]["corpus"]["paths"] == ["/x [1]/y"]  # a path with blanks needs no quotes
    assert found["a"]["corpus"]["paths"] == ["/texts/**.txt", "/more.txt"]
    assert found["b"]["corpus"]["paths"] == [str(ROOT / "rest" / "**.rst")]
    assert found["a"]["defaults"] == ["corpora", "_self_", {"override /corpus": "text"}]
    assert found["a@prose"]["defaults"][0] == "prose"
    assert found["a@prose"]["corpus"]["paths"] == ["/with space.txt"]
    assert found["synthetic"]["tokenizer"] == {"d_vocab": 400}
    assert list(asked(monkeypatch, "a=x", "--only", "--profile", "smoke")) == ["a@smoke"]
    assert list(asked(monkeypatch, None, "--only", "python", "--profile", "sinusoidal")) == ["python@sinusoidal"]


LISTED = r"expected NAME=GLOB or NAME@PROFILE=GLOB, NAME not of \['python', 'synthetic'\], got"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((None, "--only", "pyton"), "--only: pyton: no such corpus in conf/corpora.yaml; did you mean python"),
        (("essays/*.txt",), LISTED),
        (("python=a",), LISTED),
        (("../a=b",), LISTED),
        (("a@nope=x", "--only"), "nope: no such profile in conf/profile/; known: corpora, gpu"),
        ((None, "--only"), "expected a corpus, got none; give TEXT='NAME=GLOB', or names after --only"),
    ],
)
def test_what_names_no_corpus_is_refused(monkeypatch: pytest.MonkeyPatch, given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        asked(monkeypatch, *given)


@pytest.mark.parametrize("content", ["../up: {}", "a: [1", "a: {}\na: {}", "[]"])
def test_a_list_of_corpora_that_names_no_folders_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "corpora.yaml").write_text(content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"conf/corpora.yaml: expected"):
        corpora(arguments([]))


def test_a_text_without_files_is_refused_before_any_corpus_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(module, "made", lambda *_: pytest.fail("a corpus was made"))
    with pytest.raises(ValueError, match=r"TEXT: a=.*docs/\*\.nope: matches no file; quote it"):
        sweep(arguments(["--text", "b=docs/*.md a=docs/*.nope", "--only"]))


@pytest.mark.parametrize("line", ["profile: laptop # last", "profile:  'a'", "{profile: a}", "/profile: a"])
def test_a_copy_has_its_profile_however_the_project_spells_its_own(tmp_path: Path, line: str) -> None:
    (tmp_path / "conf").mkdir()
    config = tmp_path / "conf" / "config.yaml"
    config.write_text(f"defaults:\n  - sweep: grid # of a profile\n  - {line}\n")
    choose_profile(tmp_path, "smoke")
    assert config.read_text() == "defaults:\n  - sweep: grid # of a profile\n  - profile: smoke\n"
    config.write_text("defaults: [sweep: grid, profile: laptop]\n")
    with pytest.raises(ValueError, match="expected one line `- profile: NAME` in `defaults`, got 0"):
        choose_profile(tmp_path, "smoke")


def read(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "corpora.csv").open(newline="") as file:
        return {r["corpus"]: r for r in csv.DictReader(file)}


def test_a_row_has_the_corpus_and_every_verdict(tmp_path: Path) -> None:
    works, fails = synthetic.results(heads=(2,)), synthetic.results(heads=(2,), works=False, missing=("L2H2S9",))
    cells = {n: replace(c, summary=replace(c.summary, repeat_weight=3.0)) for n, c in works.cells.items()}
    works = replace(works, cells=cells)
    write_rows([row("b", works, judge_all(works))], tmp_path)
    write_rows([row("a|x", fails, judge_all(fails))], tmp_path)
    found = read(tmp_path)
    assert list(found) == ["a|x", "b"]  # a row stays when another corpus is run
    about = ("corpus_hash", "train_tokens", "repeat_weight", "seeds", "onsets", "missing")
    assert [found["b"][k] for k in about] == ["c0ffee", "9000000", "3", "0 1", "2 of 2", ""]
    assert [found["a|x"][k] for k in about] == ["c0ffee", "9000000", "1", "0 1", "0 of 2", "L2H2S9"]
    for claim in judge_all(works):
        assert found["b"][claim.id] == claim.verdict
        assert found["b"][f"{claim.id}_median"] == f"{claim.value:.6g}"
    assert int(found["b"]["reproduced"]) == len(registry.claims())
    lines = (tmp_path / "corpora.md").read_text().splitlines()
    assert "| claim | a|x | b | reproduced if |" not in lines  # a name is no markup
    assert sum("✗ not" in line and "✓ reproduced" in line for line in lines) == len(registry.claims())
    assert write_rows([row("b", fails, judge_all(fails))], tmp_path) == []
    assert read(tmp_path)["b"]["missing"] == "L2H2S9"
    assert write_rows([{**found["b"], "a_new_claim": "partly"}], tmp_path) == ["a|x"]  # judged on other claims
    assert list(read(tmp_path)) == ["b"]


def test_each_corpus_has_a_row_of_its_own_results_and_one_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No model is trained here: the results of a folder are made up."""
    monkeypatch.chdir(ROOT)
    made = {"a": synthetic.results(heads=(2,)), "c": synthetic.results(heads=(2,), works=False)}
    prepared: dict[str, Any] = {}
    locks: list[Path] = []
    monkeypatch.setattr(module, "REPORTS", tmp_path)
    monkeypatch.setattr(module, "SCRATCH", tmp_path / "scratch")
    monkeypatch.setattr(module, "prepare", lambda folder, profile: prepared.update({folder.name: profile["corpus"]}))
    monkeypatch.setattr(module, "run", lambda folder, *_: folder.name in made)
    monkeypatch.setattr(module, "read_results", lambda folder: made[folder.name])
    monkeypatch.setattr(module, "held", lambda path, work: nullcontext(locks.append(path)))
    with pytest.raises(ValueError, match="no verdicts on b, whose errors are above"):
        module.sweep(arguments(["--text", "a=Makefile b=README.md c=LICENSE", "--only"]))
    assert locks == [tmp_path / "scratch" / "lock"]  # two calls would replace each other's copies
    assert [corpus["paths"] for corpus in prepared.values()] == [
        [str(ROOT / n)] for n in ("Makefile", "README.md", "LICENSE")
    ]
    assert {name: r["onsets"] for name, r in read(tmp_path).items()} == {"a": "2 of 2", "c": "0 of 2"}


def prose(path: Path) -> None:
    """Write two thousand short documents."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghij", k=5)) for _ in range(80)]
    path.write_text("\n\n".join(" ".join(rng.choices(words, k=400)) for _ in range(2000)))


def test_a_text_gives_a_row_and_a_second_run_makes_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    project = tmp_path / "project"
    copy_tree(project)
    edit(project / "conf" / "config.yaml", "tracking: wandb #", "tracking: none #")
    edit(project / "conf" / "profile" / "smoke.yaml", "n_heads: [2]", "n_layers: [2]\n  n_heads: [2]")
    prose(project / "a.txt")
    command = (sys.executable, "-m", "pipelines.corpora", "--profile", "smoke", "--only", "--separator", r"\n\n")
    command += ("--text", "a=a.txt", "--jobs", "1")
    done = run(project, *command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = (rows := read(project / "reports"))["a@smoke"]
    assert rows.keys() == {"a@smoke", *read(ROOT / "reports")}  # rows of the project are kept
    assert (found["models"], found["missing"], found["onsets"]) == ("1", "", "0 of 1")
    cells = project / ".scratch" / "corpora" / "a@smoke" / "models"
    assert [model.name for model in cells.iterdir()] == ["L2H2S0"]  # no controls, although the profile has some
    assert (found["two_layer_induction"], found["path_expansion_exact"]) == ("not", "reproduced")
    assert {p.name for p in (project / "runs").iterdir()}  # shared by all corpora
    again = run(project, *command)
    assert again.returncode == 0
    assert "a@smoke, with the text as it was read before; delete .scratch/corpora/a@smoke to read it" in again.stderr
    assert "as it was read" not in done.stderr
    assert not started(again.stdout + again.stderr)
    assert read(project / "reports") == rows
