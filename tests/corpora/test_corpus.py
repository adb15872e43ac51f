"""Corpora give the same documents on every machine, and name all unusable sources at once."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pathsum.corpora.corpus import documents, split
from pathsum.corpora.hub import HubCorpus
from pathsum.corpora.python_sources import PythonCorpus
from pathsum.corpora.text_files import TextCorpus, text_documents

HUB = HubCorpus(
    source="hub", name="h", validation_share=0.1, dataset="a/b", subset="", split="train", text_field="text",
    max_documents=3,
)  # fmt: skip


def python_corpus(*names: str, max_documents: int = 100) -> PythonCorpus:
    return PythonCorpus(
        source="python", name="p", validation_share=0.1, distributions=names, max_documents=max_documents
    )


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution `pathsum-fake` 1.7 of five unsorted files, of which one is empty and one a duplicate."""
    files = {
        "fake/b.py": "b = 1\n",
        "fake/a.py": "a = 'é'\n",
        "fake/c.py": "b = 1\n",
        "fake/empty.py": "",
        "x.txt": "x",
    }
    record = []
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        sha = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={sha},{len(text.encode())}")
    info = tmp_path / "pathsum_fake-1.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pathsum-fake\nVersion: 1.7\n")
    (info / "RECORD").write_text("\n".join(record) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_python_files_come_sorted_without_empty_ones_and_duplicates(distribution: Path) -> None:
    assert list(documents(python_corpus("pathsum-fake"))) == ["a = 'é'\n", "b = 1\n"]


def test_at_most_max_documents_are_given(distribution: Path) -> None:
    assert list(documents(python_corpus("pathsum-fake", max_documents=1))) == ["a = 'é'\n"]


def test_every_file_that_differs_from_its_record_is_named_with_its_mending(distribution: Path) -> None:
    (distribution / "fake/a.py").write_text("changed = 1\n")
    (distribution / "fake/b.py").unlink()
    with pytest.raises(ValueError, match=r"fake/a\.py: expected sha256 .*, got .*") as caught:
        next(documents(python_corpus("pathsum-fake")))
    assert "fake/b.py: is in the RECORD of pathsum-fake==1.7 and not on disk" in str(caught.value)
    assert "run `pip install --force-reinstall pathsum-fake==1.7`" in str(caught.value)


def test_every_distribution_that_is_not_installed_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="got none named pathsum-no-1, pathsum-no-2; run `pip install"):
        next(documents(python_corpus("pathsum-no-1", "pytest", "pathsum-no-2")))


def test_a_folder_means_every_visible_file_under_it_once(tmp_path: Path) -> None:
    (tmp_path / "sub/.hidden").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "sub/c.md", "sub/.hidden/d.txt"):
        (tmp_path / name).write_text(name)
    config = TextCorpus(
        source="text", name="t", validation_share=0.1, paths=(f"{tmp_path}/*.txt", str(tmp_path)), separator="",
        max_documents=7,
    )  # fmt: skip
    assert list(documents(config)) == ["a.txt", "b.txt", "sub/c.md"]


def test_a_file_is_read_once_however_it_is_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    for name in "ab":
        (tmp_path / "texts" / name).write_text(name)
    (tmp_path / "texts" / "link").symlink_to(tmp_path / "texts" / "b")
    spelled = [str(tmp_path / "texts"), "texts/*", "texts/../texts/a", str(tmp_path / "texts" / "a")]
    assert list(text_documents(spelled, "")) == ["a", "b"]


@pytest.mark.parametrize("separator", ["\0", "\\0"])
def test_a_separator_splits_files_and_blank_documents_are_skipped(tmp_path: Path, separator: str) -> None:
    (tmp_path / "a").write_bytes("één\0\0 \n\0two\r\n\0".encode())
    assert list(text_documents([str(tmp_path / "a")], separator)) == ["één", "two\r\n"]


def test_a_separator_across_chunks_is_found(tmp_path: Path) -> None:
    parts = ["x" * ((1 << 20) - 1), "y" * 17, "z" * ((1 << 20) + 3)]
    (tmp_path / "a").write_text("<>".join(parts))
    assert list(text_documents([str(tmp_path / "a")], "<>")) == parts


@pytest.mark.parametrize("folder", ["notes [2024]", "run[12]", "what?", "a*b", "[!a]", "~backup", "**", "[[]x", "~"])
def test_a_folder_that_exists_is_taken_literally_at_the_beginning_of_a_glob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The other folders match the same names as globs."""
    for name in (folder, "run1", "whatx", "axxb", "b", "other"):
        (tmp_path / "in" / name / "deep").mkdir(parents=True)
        (tmp_path / "in" / name / "a.txt").write_text(f"{name} a")
        (tmp_path / "in" / name / "deep" / "b.txt").write_text(f"{name} b")
    monkeypatch.chdir(tmp_path / "in")
    both, one = [f"{folder} a", f"{folder} b"], [f"{folder} a"]
    for where in (f"{tmp_path}/in/{folder}", folder)[: 1 if folder == "~" else 2]:  # ~ alone is the home folder
        for pattern in (where, f"{where}/", f"{where}/**/*.txt", f"{where}/**", f"{where}/**/"):
            assert list(text_documents([pattern], "")) == both, pattern
        for pattern in (f"{where}/*.txt", f"{where}/[a].txt", f"{where}/a.txt", f"{where}/?.txt"):
            assert list(text_documents([pattern], "")) == one, pattern


def test_a_glob_that_no_folder_is_named_after_stays_one(tmp_path: Path) -> None:
    for name in ("run1", "run2", "run3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    (tmp_path / "run1.txt").write_text("a file")
    assert list(text_documents([f"{tmp_path}/run[12]/*.txt"], "")) == ["run1", "run2"]
    assert list(text_documents([f"{tmp_path}/run1*/"], "")) == ["run1"]
    assert list(text_documents([f"{tmp_path}/run1*"], "")) == ["run1", "a file"]


def test_all_unusable_text_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "binary").write_bytes(b"abc\0def")
    (tmp_path / "latin").write_bytes(b"x" * (1 << 20) + "né".encode("latin-1") + b"e")
    (tmp_path / "cut").write_bytes("né".encode()[:-1])
    (tmp_path / "wide").write_text("good", encoding="utf-16")
    (tmp_path / "packed").write_bytes(gzip.compress(b"good"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "hidden" / ".git").mkdir(parents=True)
    (tmp_path / "hidden" / ".git" / "text").write_text("good")
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "pipe")
    (tmp_path / "good").write_text("good")
    names = ["empty", "binary", "latin", "cut", "wide", "packed", "folder", "pipes", "hidden", "good", "absent"]
    names += ["*.nothing"]
    with pytest.raises(FileNotFoundError) as caught:
        next(text_documents([str(tmp_path / n) for n in names], ""))
    lines = {line.split(": ")[0].split("/")[-1]: line for line in str(caught.value).splitlines()[1:]}
    assert set(lines) == set(names) - {"good"}
    assert "is empty or has no size; remove it" in lines["empty"]
    assert r"is binary (NUL at byte 3); give text (unpack archives first), or corpus.separator='\0'" in lines["binary"]
    assert f"is not UTF-8 at byte {(1 << 20) + 1}; convert it" in lines["latin"]
    assert "is not UTF-8 at byte 1" in lines["cut"]
    assert "is UTF-16; convert it" in lines["wide"]
    assert "is compressed by gzip; unpack it" in lines["packed"]
    assert "a folder without files" in lines["folder"]
    assert "a folder without files" in lines["pipes"]
    assert "a folder of hidden files, which are not read; rename them" in lines["hidden"]
    assert "does not exist" in lines["absent"]
    assert "matches no file" in lines["*.nothing"]


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="no /proc")
def test_a_file_of_the_system_without_a_size_is_not_read() -> None:
    """Reading /proc/kmsg waits for ever."""
    with pytest.raises(ValueError, match=r"/proc/cpuinfo: is empty or has no size"):
        next(text_documents(["/proc/cpuinfo"], ""))


def test_unusable_files_alone_are_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ValueError, match=r"corpus\.paths: expected UTF-8 text files, got:\n.*is empty"):
        next(text_documents([str(tmp_path)], ""))


@pytest.mark.parametrize(("count", "last"), [(20, "19: is empty"), (23, "  … and 3 more")])
def test_many_unusable_files_are_counted(tmp_path: Path, count: int, last: str) -> None:
    for number in range(count):
        (tmp_path / f"{number:02}").touch()
    with pytest.raises(ValueError, match="expected UTF-8 text files") as caught:
        next(text_documents([str(tmp_path)], ""))
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 + min(count, 21)
    assert last in lines[-1]


def test_a_hub_corpus_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pathsum\[hub\]'`, or use local files"):
        next(documents(HUB))


def stub_hub(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, str]]) -> None:
    stub = ModuleType("datasets")
    vars(stub)["load_dataset"] = lambda *args, **options: iter(rows)
    monkeypatch.setitem(sys.modules, "datasets", stub)


def test_an_unreachable_hub_is_an_error_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_hub(monkeypatch, [{"text": "never read"}])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    began = time.monotonic()
    with pytest.raises(ConnectionError, match=r"reach http://127\.0\.0\.1:9 for a/b, got no answer .*corpus=text"):
        next(documents(HUB))
    assert time.monotonic() - began < 6


def test_a_hub_corpus_streams_its_text_field(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_hub(monkeypatch, [{"text": "a"}, {"text": " "}, {"text": "b"}])
    monkeypatch.setattr("urllib.request.urlopen", lambda *args, **options: SimpleNamespace(close=lambda: None))
    assert list(documents(HUB)) == ["a", "b"]
    with pytest.raises(ValueError, match=r"corpus\.text_field: .* got 'story'; choose one of \['text'\]"):
        next(documents(HUB.model_copy(update={"text_field": "story"})))


def test_an_unknown_dataset_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*args: object, **options: object) -> None:
        raise FileNotFoundError("no such dataset")

    stub_hub(monkeypatch, [])
    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", absent)
    monkeypatch.setattr("urllib.request.urlopen", lambda *args, **options: SimpleNamespace(close=lambda: None))
    with pytest.raises(ValueError, match="cannot open 'a/b', subset '', split 'train': no such dataset; check"):
        next(documents(HUB))


def test_the_split_depends_on_the_document_alone_and_keeps_its_share() -> None:
    sides = [split(f"document {i}", 0.1) for i in range(5003)]
    assert sides == [split(f"document {i}", 0.1) for i in range(5003)]
    for part, share in (("train", 0.9), ("tuning", 0.05), ("verdict", 0.05)):
        spread = (share * (1 - share) / 5003) ** 0.5
        assert abs(sides.count(part) / 5003 - share) < 5 * spread  # five standard deviations
    assert {split(f"{i}", 0.0) for i in range(101)} == {"train"}
    assert {split(f"{i}", 1.0) for i in range(101)} == {"tuning", "verdict"}


def test_what_was_tuned_on_never_becomes_a_verdict_where_more_text_is_held_out() -> None:
    few, more = ([split(f"document {i}", share) for i in range(5003)] for share in (0.03, 0.1))
    assert {b for a, b in zip(few, more, strict=True) if a != "train"} == {"tuning"}
