"""Corpora give the same documents on every machine, and name what cannot be used."""

import gzip
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pathsum.config import TokenizerConfig
from pathsum.text import tokens
from pathsum.text.corpus import documents, split
from pathsum.text.hub import HubCorpus
from pathsum.text.python_sources import PythonCorpus
from pathsum.text.text_files import text_documents
from pathsum.text.tokenizer import RUN, Codec, _without_long_runs, token_bytes, train_tokenizer
from pathsum.text.tokens import read_tokens, write_tokens
from tests.text.installed import install

HUB = HubCorpus(
    source="hub", name="h", validation_share=0.1, dataset="a/b", subset="", split="train", text_field="text",
    max_documents=3,
)  # fmt: skip


def texts(*paths: Path | str, separator: str = "") -> list[str]:
    return list(text_documents([str(path) for path in paths], separator))


def refusal(*paths: Path | str, separator: str = "") -> str:
    with pytest.raises(ValueError, match=r"^corpus\.") as caught:
        next(text_documents([str(path) for path in paths], separator))
    return str(caught.value)


# ---- Python sources -------------------------------------------------------------------------------------------------


def python_corpus(*names: str, max_documents: int = 100) -> PythonCorpus:
    return PythonCorpus(
        source="python", name="p", validation_share=0.1, distributions=names, max_documents=max_documents
    )


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution `pathsum-fake` 1.7 of five unsorted files, of which one is empty and one a duplicate."""
    install(tmp_path, {"b.py": "b = 1\n", "a.py": "a = 'é'\n", "c.py": "b = 1\n", "empty.py": "", "x.txt": "x"})
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_python_files_come_sorted_without_empty_ones_and_duplicates(distribution: Path) -> None:
    assert list(documents(python_corpus("pathsum-fake"))) == ["a = 'é'\n", "b = 1\n"]
    assert list(documents(python_corpus("pathsum-fake", max_documents=1))) == ["a = 'é'\n"]


@pytest.mark.parametrize("content", ["changed = 1\n", None])
def test_a_file_that_differs_from_its_record_is_named_with_its_mending(distribution: Path, content: str | None) -> None:
    (distribution / "fake/a.py").unlink()
    if content:
        (distribution / "fake/a.py").write_text(content)
    with pytest.raises(
        ValueError, match=r"fake/a\.py: expected sha256 .*, got .*; `pip install --force-reinstall pathsum-fake==1.7`"
    ):
        next(documents(python_corpus("pathsum-fake")))


def test_a_distribution_that_is_not_installed_is_named() -> None:
    with pytest.raises(ValueError, match="corpus.distributions: expected installed ones, got pathsum-no-1; `pip inst"):
        next(documents(python_corpus("pytest", "pathsum-no-1")))


# ---- text files -----------------------------------------------------------------------------------------------------


def test_a_folder_means_every_visible_file_under_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in/sub/.hidden").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "sub/c.md", "sub/.hidden/d.txt"):
        (tmp_path / "in" / name).write_text(name)
    (tmp_path / "in" / "link").symlink_to(tmp_path / "in" / "b.txt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert texts(f"{tmp_path}/in/*.txt", "in", "~/in/../in/a.txt") == ["a.txt", "b.txt", "sub/c.md"]


@pytest.mark.parametrize("folder", ["notes [2024]", "a*b"])
def test_a_folder_that_exists_is_taken_literally_at_the_beginning_of_a_glob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The other folders match the same names as globs."""
    for name in (folder, "run1", "whatx", "axxb", "b", "other"):
        (tmp_path / "in" / name / "deep").mkdir(parents=True)
        (tmp_path / "in" / name / "a.txt").write_text(f"{name} a")
        (tmp_path / "in" / name / "deep" / "b.txt").write_text(f"{name} b")
    monkeypatch.chdir(tmp_path / "in")
    for where in (f"{tmp_path}/in/{folder}", folder):
        for pattern in (where, f"{where}/", f"{where}/**/*.txt", f"{where}/**"):
            assert texts(pattern) == [f"{folder} a", f"{folder} b"], pattern
        for pattern in (f"{where}/*.txt", f"{where}/[a].txt", f"{where}/a.txt"):
            assert texts(pattern) == [f"{folder} a"], pattern


@pytest.mark.parametrize("separator", ["\0", "\\0"])
def test_a_separator_splits_files_and_blank_documents_are_skipped(tmp_path: Path, separator: str) -> None:
    (tmp_path / "a").write_bytes("één\0\0 \n\0two\r\n\0".encode())
    assert texts(tmp_path, separator=separator) == ["één", "two\r\n"]


def test_a_separator_is_found_across_chunks_and_refused_where_it_never_occurs(tmp_path: Path) -> None:
    parts = ["x" * ((1 << 20) - 1), "y" * 17, "z" * ((1 << 20) + 3)]
    (tmp_path / "a").write_text("<>".join(parts))
    (tmp_path / "b").write_bytes(b"\xef\xbb\xbftext")  # a byte-order mark is no text
    assert texts(tmp_path, separator="<>") == [*parts, "text"]
    assert "corpus.separator: expected a string that occurs in the files, got '%'" in refusal(tmp_path, separator="%")


def test_all_unusable_text_is_named_at_once(tmp_path: Path) -> None:
    contents = {
        "empty": b"", "binary": b"abc\0def", "cut": "né".encode()[:-1], "wide": "good".encode("utf-16"),
        "latin": b"x" * (1 << 20) + "né".encode("latin-1") + b"e", "packed": gzip.compress(b"good"), "good": b"good",
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder" / ".git").mkdir(parents=True)
    (tmp_path / "folder" / ".git" / "text").write_text("hidden")
    names = [*contents, "folder", "absent", "*.nothing"]
    said = refusal(*(tmp_path / n for n in names)).splitlines()
    assert said[0] == "corpus.paths: expected UTF-8 text files, got:"
    lines = {line.split(": ")[0].split("/")[-1]: line.split(": ")[1] for line in said[1:]}
    assert set(lines) == set(names) - {"good"}
    assert lines["empty"] == "is empty; leave it out"
    assert lines["binary"] == "has NUL, as binary files do; leave it out, or separate documents by \\0"
    assert all(lines[name].startswith("is not UTF-8") for name in ("cut", "latin", "wide", "packed"))
    assert all(lines[name].startswith("names no file (hidden") for name in ("folder", "absent", "*.nothing"))


# ---- the hub --------------------------------------------------------------------------------------------------------


def reachable(monkeypatch: pytest.MonkeyPatch, *values: Any) -> Iterator[str]:
    stub = ModuleType("datasets")
    vars(stub)["load_dataset"] = lambda *args, **options: iter([{"text": value} for value in values])
    monkeypatch.setitem(sys.modules, "datasets", stub)
    monkeypatch.setattr("urllib.request.urlopen", lambda *args, **options: SimpleNamespace(close=lambda: None))
    return documents(HUB)


def test_a_hub_corpus_streams_its_text_field_without_blank_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(reachable(monkeypatch, "a", " ", None, "", "b")) == ["a", "b"]
    with pytest.raises(ValueError, match=r"corpus.text_field: expected text in one of \['text'\], got 'text'"):
        list(reachable(monkeypatch, "a", 3))
    with pytest.raises(ValueError, match=r"corpus.text_field: expected text in one of \['text'\], got 'story'"):
        next(documents(HUB.model_copy(update={"text_field": "story"})))


def test_a_dataset_that_cannot_be_read_is_named_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "corpus=hub: expected dataset 'a/b', subset '', split 'train', got .*{}.*; check names and network"

    def absent(*args: object, **options: object) -> None:
        raise FileNotFoundError("no such dataset")

    reachable(monkeypatch)
    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", absent)
    with pytest.raises(ValueError, match=said.format("no such dataset")):
        next(documents(HUB))
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "datasets", ModuleType("datasets"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    began = time.monotonic()
    with pytest.raises(ValueError, match=said.format("refused")):
        next(documents(HUB))
    assert time.monotonic() - began < 6
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=said.format("datasets")):
        next(documents(HUB))


# ---- the split ------------------------------------------------------------------------------------------------------


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


# ---- long lines and documents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["a", "語", "_-", "\n", "ab "])
def test_a_line_without_spaces_is_cut_into_words_of_bounded_length(sign: str) -> None:
    text = f"before {sign * (3 * RUN)} after"
    parts = list(_without_long_runs(text))
    assert "".join(parts) == text
    assert len(parts) == 1 if sign == "ab " else max(map(len, parts)) <= RUN + len("before  ")
    assert list(_without_long_runs(sign * RUN)) == [sign * RUN] or len(sign) > 1


def test_a_long_document_is_encoded_in_parts_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PIECE", 64)
    monkeypatch.setattr(tokens, "BATCH", 200)
    given = ["x" * 1000, "two words", "", "and more " * 90]
    tokenizer = train_tokenizer(given, TokenizerConfig(d_vocab=264, train_bytes=10_000))
    write_tokens(tmp_path / "train.bin", given, Codec.own(tokenizer))
    bytes_of, found = token_bytes(tokenizer), [b""]
    for token in read_tokens(tmp_path / "train.bin").tokens.tolist()[1:]:
        found = [*found[:-1], found[-1] + bytes_of[token]] if token else [*found, b""]
    assert found == [text.encode() for text in given]
