"""The store: names depend on what determines a result, and only what is whole is used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pathsum.core import store
from pathsum.core.manifest import damage, write_manifest
from pathsum.core.store import closure, fingerprint, keep, link, locked, publish


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a package pathsum with modules a, which imports b, and c, which imports a whole package."""
    monkeypatch.setattr(store, "SRC", tmp_path)
    package = tmp_path / "pathsum"
    (package / "parts").mkdir(parents=True)
    files = {"__init__": "", "a": "from pathsum.b import x", "b": "x = 1", "c": "import pathsum.parts", "d": "y = 1"}
    for name, text in (files | {"parts/__init__": "", "parts/one": "import pathsum.d"}).items():
        (package / f"{name}.py").write_text(text + "\n")
    store._code.cache_clear()
    yield package  # type: ignore[misc]
    store._code.cache_clear()


def code(module: str) -> str:
    store._code.cache_clear()
    return fingerprint(module)


def entry(folder: Path, name: str, text: str = "1") -> Path:
    (folder / name / "inner").mkdir(parents=True)
    (folder / name / "inner" / "a.txt").write_text(text)
    write_manifest(folder / name, name=name)
    return folder / name


def test_the_closure_has_what_a_module_imports_directly_or_not(source: Path) -> None:
    assert set(closure(["pathsum.a"])) == {"pathsum.a", "pathsum.b"}
    whole = {"pathsum.c", "pathsum.parts", "pathsum.parts.one", "pathsum.d"}
    assert set(closure(["pathsum.c"])) == whole


def test_a_fingerprint_depends_on_facts_and_on_the_code_that_is_reached(source: Path) -> None:
    assert fingerprint("pathsum.a", x=1) == fingerprint("pathsum.a", x=1) != fingerprint("pathsum.a", x=2)
    before = code("pathsum.a")
    (source / "d.py").write_text("y = 2\n")
    assert code("pathsum.a") == before
    (source / "b.py").write_text('"""A module."""\n\nx = 1  # a remark\n')
    assert code("pathsum.a") == before
    (source / "b.py").write_text("x = 2\n")
    assert code("pathsum.a") != before


def test_training_and_extraction_reach_their_code_and_not_that_of_the_report() -> None:
    training, extraction = closure(["pathsum.training.loop"]), closure(["pathsum.extraction.cell"])
    assert {"pathsum.training.optimizer", "pathsum.model.fast.attention", "pathsum.text.windows"} <= set(training)
    assert {"pathsum.extraction.suffixes", "pathsum.circuits.composition", "pathsum.records.heads"} <= set(extraction)
    assert not [name for name in (*training, *extraction) if name.split(".")[1:2] in (["report"], ["config"], ["page"])]


def test_what_is_linked_is_one_file_on_disk(tmp_path: Path) -> None:
    made = entry(tmp_path, "one")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    link(made, tmp_path / "out")
    assert (tmp_path / "out" / "inner" / "a.txt").samefile(made / "inner" / "a.txt")
    assert not (tmp_path / "out" / "old").exists()
    assert damage(tmp_path / "out", "one") == ""


def test_only_whole_entries_are_published_and_the_others_are_named(tmp_path: Path) -> None:
    entries = {name: entry(tmp_path / "store", name) for name in ("A", "B", "C")}
    (entries["B"] / "inner" / "a.txt").write_text("2")
    entries["C"] = entries["C"].rename(tmp_path / "store" / "moved")  # whose manifest has another name
    with pytest.raises(ValueError, match="expected 3 models, got all but B, C, whose errors are above"):
        publish(tmp_path / "out", entries)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["A"]
    publish(tmp_path / "out", {"A": entries["A"]})


def test_whole_results_from_elsewhere_enter_the_store(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        link(entry(tmp_path / "theirs", name), tmp_path / "models" / f"model {name}")
    (tmp_path / "models" / "model two" / "inner" / "a.txt").unlink()
    (tmp_path / "models" / "model three" / "manifest.json").write_text("{}")
    keep(tmp_path / "models", tmp_path / "store")
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["one"]
    assert damage(tmp_path / "store" / "one", "one") == ""


def test_a_lock_goes_with_its_process_and_names_who_holds_it(tmp_path: Path) -> None:
    code = "import os; from pathlib import Path; from pathsum.core.store import locked\n"
    hold = f"with locked(Path({str(tmp_path)!r})): os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code + hold], check=False).returncode == -9
    with locked(tmp_path):
        assert (tmp_path / "lock").read_text() == str(os.getpid())
        wait = f"with locked(Path({str(tmp_path)!r})): pass"
        with subprocess.Popen([sys.executable, "-c", code + wait], stderr=subprocess.PIPE, text=True) as child:
            assert child.stderr is not None
            assert f"waiting for process {os.getpid()}, which makes {tmp_path.name}" in child.stderr.readline()
            child.kill()
