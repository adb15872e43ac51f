"""`make repro TEXT=…` and `make corpora`: which texts, what is chosen and written, and one run on a tiny text."""

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from pathsum.claims import registry
from pathsum.claims.corpora import read_onsets
from pathsum.claims.registry import judge_all
from pathsum.records.corpus import CorpusSummary
from pathsum.report.corpora import row, text_onsets, write_rows
from pipelines import forecast
from pipelines import texts as module
from pipelines.paths import ROOT, params
from pipelines.scratch import choose_profile, copy_tree
from pipelines.texts import arguments, fit, profiles, sweep
from tests.pipelines.workspace import edit, environment, run, started
from tests.report import synthetic


def asked(monkeypatch: pytest.MonkeyPatch, text: str | None, *more: str) -> dict[str, dict[str, Any]]:
    monkeypatch.chdir(ROOT)
    return profiles(arguments([*([] if text is None else ["--text", text]), *more]))


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


def test_a_text_without_a_name_is_named_by_its_folder_or_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for glob, name in (
        ("notes/**/*.md", "notes"), ("/a/b c/*.txt", "b_c"), ("~/x/war+peace.v2.txt", "war_peace_v2"), ("*", "text"),
        ("docs/log", "log"), ("../[ab]/x.txt", "x"),
    ):  # fmt: skip
        (found,) = asked(monkeypatch, f"'{glob}'", "--only").values()
        assert found["corpus"]["name"] == name
    both = asked(monkeypatch, "notes/a.md 'notes/b.md'", "--only")
    assert [text["corpus"]["paths"] for text in both.values()] == [
        [str(ROOT / "notes/a.md")],
        [str(ROOT / "notes/b.md")],
    ]


TAKEN = (
    r"TEXT: expected NAME=GLOB with a NAME other than \['python', 'synthetic', 'figures', 'tables', 'sinusoidal'\], got"
)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((None, "--only", "pyton"), "--only: pyton: no such corpus in conf/corpora.yaml; did you mean python"),
        (("python=a",), TAKEN),
        (("docs/tables/*",), TAKEN),
        (("", "--only"), "expected a text, got none; give TEXT='GLOB' or"),
        (("a@nope=x", "--only"), "nope: no such profile in conf/profile/; known: corpora, gpu"),
        ((None, "--only"), "expected a text, got none; give TEXT='GLOB' or"),
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
        profiles(arguments([]))


def test_a_text_without_files_is_refused_before_any_model_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(module, "made", lambda *_: pytest.fail("a model was made"))
    with pytest.raises(ValueError, match=r"TEXT: expected UTF-8 text files, got:\n  - .*docs/\*\.nope: names no file"):
        sweep(arguments(["--text", "b=docs/*.md a=docs/*.nope", "--only"]))


@pytest.mark.parametrize(
    ("documents", "size", "share", "vocabulary"),
    [
        (2000, 2000, 0.1, None),
        (400, 5000, 0.2, None),
        (100, 5000, 0.3, 512),
        (3, 40_000, 0.3, 320),
        (5000, 40, 0.3, 512),
    ],
)
def test_a_small_text_has_a_larger_share_for_verdicts_and_fewer_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], documents: int, size: int, share: float, vocabulary: int | None
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("|".join(f"{i:08}" + "x" * (size - 8) for i in range(documents)))
    profile: dict[str, Any] = {"corpus": {"paths": [str(path)], "separator": "|"}}
    first = fit("a", profile)
    assert profile["corpus"]["validation_share"] == share
    assert profile.get("tokenizer") == (vocabulary and {"d_vocab": vocabulary})
    assert fit("a", profile) == first
    few = documents * share / 2 < 20
    assert ("few documents: where they have to be cut, verdicts are about this text" in capsys.readouterr().err) == few
    path.write_text(path.read_text().replace("x", "y", 1))
    assert fit("a", profile) != first


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


def test_onsets_survive_the_table(tmp_path: Path) -> None:
    results = synthetic.results(heads=(2,))
    first, *_ = results.of_depth(2)
    cells = {**results.cells, first.name: replace(first, summary=replace(first.summary, onset_tokens=None))}
    results = replace(results, cells=cells)
    write_rows([row("a", results, judge_all(results))], tmp_path)
    assert read_onsets(tmp_path / "corpora.csv") == [text_onsets("a", results)]
    assert text_onsets("a", results).onset_tokens == (None, 4_200_000)
    assert read_onsets(tmp_path / "none.csv") == []


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

    def prepare(folder: Path, profile: dict[str, Any]) -> None:
        prepared[folder.name] = profile["corpus"]
        (folder / ".git").mkdir(parents=True)

    monkeypatch.setattr(module, "prepare", prepare)
    monkeypatch.setattr(module, "run", lambda folder, *_: folder.name in made)
    monkeypatch.setattr(module, "read_results", lambda folder: made[folder.name])
    monkeypatch.setattr(module, "held", lambda path, work: nullcontext(locks.append(path)))
    with pytest.raises(ValueError, match="no verdicts on b, whose errors are above"):
        module.sweep(arguments(["--text", "a=Makefile b=README.md c=LICENSE", "--only", "--rows"]))
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


def test_a_text_gives_a_report_and_a_second_run_reads_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    project = tmp_path / "project"
    copy_tree(project)
    edit(project / "conf" / "config.yaml", "tracking: wandb #", "tracking: none #")
    edit(project / "conf" / "profile" / "smoke.yaml", "  n_heads: [2]\n", "  n_layers: [2]\n  n_heads: [2]\n")
    prose(project / "a.txt")
    before = {path: path.read_bytes() for path in (project / "reports").rglob("*") if path.is_file()}
    command = (sys.executable, "-m", "pipelines.texts", "--profile", "smoke", "--only", "--separator", r"\n\n")
    command += ("--text", "a.txt", "--jobs", "1")
    done = run(project, *command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "pathsum: a@smoke: 2000 documents, 4.8 MB; 5% for tuning and as many for verdicts" in done.stderr
    assert f"pathsum: a@smoke: the report is {project}/reports/a@smoke/index.html" in done.stderr
    report = project / "reports" / "a@smoke"
    metrics = json.loads((report / "metrics.json").read_text())
    assert (list(metrics["cells"]), metrics["controls"], metrics["texts"]) == (["L2H2S0"], {}, {})
    assert metrics["corpus"]["name"] == "a"
    assert {path: path.read_bytes() for path in before} == before  # the committed report stays
    assert not (project / "dvc.lock").exists()
    again = run(project, *command, "--rows")
    assert not started(again.stdout + again.stderr)
    assert (rows := read(project / "reports")).keys() == {"a@smoke", *read(ROOT / "reports")}  # others are kept
    assert (rows["a@smoke"]["models"], rows["a@smoke"]["onsets"]) == ("1", "0 of 1")
    seen = project / module.SCRATCH / "a@smoke" / module.READ
    earlier = seen.read_text()
    edit(project / "a.txt", "\n\n", "\n\nnew ")  # a changed text is trained on
    with subprocess.Popen(
        command, cwd=project, env=environment(project), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as third:  # fmt: skip
        said = list(takewhile(lambda line: line != "Running stage 'train':\n", third.stdout or ()))
        os.killpg(third.pid, signal.SIGKILL)
    assert (third.returncode, "tokenize" in started("".join(said))) == (-signal.SIGKILL, True)
    assert seen.read_text() != earlier


@pytest.mark.parametrize(
    ("saving", "expected"),
    [
        (0.5, r"10% of .* could save 0\.50 nats per token; induction heads expected at 0\.\d M tokens \(95 %.* M\)$"),
        (0.03, r"expected at .*, not within the 2\.0 M of training\. What helps .*: more tokens, or for prose the"),
    ],
)
def test_a_run_says_when_to_expect_induction_heads(
    saving: float, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "REPORTS", ROOT / "reports")
    about = synthetic.made(
        CorpusSummary, name="new", corpus_hash="0123456789ab", n_ctx=256, induction_saving_nats=saving
    )
    said = forecast.said(params(ROOT), about)
    assert re.search(expected, said)
    assert ("not within" in said) == (saving == 0.03)
    values = params(ROOT)
    alone = {**values, "sweep": {**values["sweep"], "controls": {}}}  # a control has other batches
    assert forecast.said(alone, about) == said
    weighted = {**values, "train": {**values["train"], "repeat_weight": 2.0}}
    assert "interval" not in forecast.said(weighted, about)


def test_without_known_texts_or_models_there_is_no_forecast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = synthetic.made(CorpusSummary, name="new", corpus_hash="0", n_ctx=256, induction_saving_nats=0.5)
    monkeypatch.setattr(forecast, "REPORTS", tmp_path)
    assert forecast.said(values := params(ROOT), about) == ""
    assert forecast.said({**values, "sweep": {**values["sweep"], "n_layers": [0, 1], "controls": {}}}, about) == ""
