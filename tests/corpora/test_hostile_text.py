"""Text that is no text, or that would take hours, gives an answer. Nothing is skipped in silence."""

from __future__ import annotations

import _thread
import codecs
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pathsum.config import ConfigError, TokenizerConfig
from pathsum.corpora import text_files, tokenizing
from pathsum.corpora.corpus import documents, load_corpus
from pathsum.corpora.text_files import text_documents
from pathsum.data import tokens
from pathsum.data.tokenizer import RUN, _without_long_runs, token_bytes, tokenizer_hash, train_tokenizer
from pathsum.data.tokens import PIECE, pieces, read_tokens, write_tokens
from tests.corpora.test_corpus import HUB, stub_hub
from tests.permissions import ordinary_user

TEXT = {"source": "text", "name": "t", "validation_share": 0.5, "separator": "", "max_documents": 9}


@pytest.mark.parametrize("sign", ["a", "7", "é", "語", "-", "_", " ", "\n", "_-", "ab "])
def test_a_line_without_spaces_is_cut_into_words_of_bounded_length(sign: str) -> None:
    text = f"before {sign * (3 * RUN)} after"
    parts = list(_without_long_runs(text))
    assert "".join(parts) == text
    assert len(parts) == 1 if sign == "ab " else max(map(len, parts)) <= RUN + len("before  ")
    assert list(_without_long_runs(sign * RUN)) == [sign * RUN] or len(sign) > 1


def test_a_separator_that_never_occurs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two;three;")
    assert list(text_documents([str(tmp_path)], ";")) == ["one", "two", "three"]
    with pytest.raises(ValueError, match="corpus.separator: expected a string that occurs in the files, got '%'"):
        list(text_documents([str(tmp_path)], "%"))


def test_text_is_cut_for_encoding_where_pre_tokens_end_and_elsewhere_if_there_is_no_such_place() -> None:
    plain, line = "word " * (PIECE // 2), "a" * (5 * PIECE + 7)
    for text in (plain, line, plain + line + plain):
        assert "".join(pieces(text)) == text
        assert max(map(len, pieces(text))) <= 2 * PIECE
    assert all(piece.startswith(" word") for piece in pieces(plain)[1:])
    assert len(pieces("a" * (2 * PIECE))) == 1


def test_a_long_document_is_encoded_in_parts_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PIECE", 64)
    monkeypatch.setattr(tokens, "BATCH", 200)
    texts = ["x" * 1000, "two words", "", "and more " * 90]
    tokenizer = train_tokenizer(texts, TokenizerConfig(d_vocab=264, train_bytes=10_000))
    write_tokens(tmp_path / "train.bin", texts, tokenizer, tokenizer_hash(tokenizer))
    found = read_tokens(tmp_path / "train.bin").tokens.tolist()
    bytes_of = token_bytes(tokenizer)
    split = [b""]
    for token in found[1:]:
        if token:
            split[-1] += bytes_of[token]
        else:
            split.append(b"")
    assert split == [text.encode() for text in texts]


def refusal(*paths: Path | str) -> str:
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        list(text_documents([str(path) for path in paths], ""))
    return str(caught.value)


def test_links_in_a_circle_end_in_a_message(tmp_path: Path) -> None:
    for here, there in (("a", "b"), ("b", "a")):
        (tmp_path / here).mkdir()
        (tmp_path / here / "link").symlink_to(tmp_path / there, target_is_directory=True)
        (tmp_path / here / "text.txt").write_text(here)
    said = refusal(f"{tmp_path}/**/*.txt")
    assert "link: is a link to a folder above it, so ** has no end; remove it, or give the folder" in said
    assert list(text_documents([str(tmp_path)], "")) == ["a", "b"]  # a folder follows no links
    (tmp_path / "self").symlink_to(tmp_path / "self")
    assert "self: cannot be read (Too many levels of symbolic links)" in refusal(tmp_path / "self")


@pytest.mark.parametrize(("encoding", "bom", "said"), [
    ("utf-16-le", b"\xff\xfe", "is UTF-16; convert it, e.g. `iconv -f utf16 -t utf8`"),
    ("utf-16-be", b"\xfe\xff", "is UTF-16; convert it, e.g. `iconv -f utf16 -t utf8`"),
    ("utf-32-le", b"\xff\xfe\0\0", "is UTF-32; convert it, e.g. `iconv -f utf32 -t utf8`"),
    ("utf-32-be", b"\0\0\xfe\xff", "is UTF-32; convert it, e.g. `iconv -f utf32 -t utf8`"),
    ("utf-16-le", b"", "looks like UTF-16 without a byte-order mark; convert it, e.g. `iconv -f utf-16le -t utf8`"),
    ("utf-16-be", b"", "looks like UTF-16 without a byte-order mark; convert it, e.g. `iconv -f utf-16be -t utf8`"),
    ("utf-32-le", b"", "is binary (NUL at byte 1)"),
])  # fmt: skip
def test_another_encoding_is_named_with_its_conversion(tmp_path: Path, encoding: str, bom: bytes, said: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(bom + "some English text".encode(encoding))
    assert f"a.txt: {said}" in refusal(path)
    if "iconv" in said:  # the command that is proposed gives the text
        name = said.partition("-f ")[2].partition(" ")[0]
        assert path.read_bytes().decode(name) == "some English text"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(codecs.BOM_UTF8 + b"text")
    assert list(text_documents([str(tmp_path)], "")) == ["text"]
    (tmp_path / "b.txt").write_bytes(codecs.BOM_UTF8)
    assert "b.txt: is empty" in refusal(tmp_path)


def test_a_file_with_two_hard_links_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "c").write_text("text")  # an equal file is another document
    assert list(text_documents([str(tmp_path)], "")) == ["text", "text"]


def test_a_separator_that_never_occurs_is_refused_before_the_first_document(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one% two")
    with pytest.raises(ValueError, match="corpus.separator: expected a string that occurs in the files, got '=='"):
        next(text_documents([str(tmp_path / "a")], "=="))


def test_a_separator_of_line_feeds_in_files_with_carriage_returns_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\n\r\ntwo")
    with pytest.raises(ValueError, match=r"got '\\n\\n'; lines of .*/a end with \\r\\n; write"):
        list(text_documents([str(tmp_path)], r"\n\n"))
    assert list(text_documents([str(tmp_path)], r"\r\n\r\n")) == ["one", "two"]


@pytest.mark.parametrize("pattern", ["no/**/*.txt", "no/**", "file/**/*.txt"])
def test_a_pattern_below_what_is_no_folder_matches_nothing(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "file").write_text("a")
    assert f"{pattern}: matches no file" in refusal(f"{tmp_path}/{pattern}")


def test_single_letters_that_nul_separates_are_no_utf_16(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\0b\0c\0d\0e\0")
    assert list(text_documents([str(tmp_path)], r"\0")) == [*"abcde"]
    (tmp_path / "a").write_bytes(b"\0")
    assert "is binary (NUL at byte 0)" in refusal(tmp_path)


def test_a_device_is_no_text() -> None:
    assert "/dev/null: is a device, a pipe or a socket; give files" in refusal("/dev/null")


def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    assert "gone.txt: cannot be read (No such file or directory)" in refusal(tmp_path)


@pytest.mark.parametrize("pattern", ["", "/**/*.txt"])
def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    (tmp_path / "shut").mkdir()
    (tmp_path / "a.txt").write_text("a")
    scandir: Callable[..., Any] = os.scandir

    def refuse(path: Any = ".") -> Any:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert "shut: cannot be read (Permission denied); make it readable, or leave it out" in refusal(
        f"{tmp_path}{pattern}"
    )


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o400, 0o600])
@pytest.mark.parametrize(
    "pattern", ["", "**/*.txt", "*/*.txt", "*/a.txt", "[s]hut/*", "shut/*.txt", "shut/a.txt", "shut"]
)
def test_permission_that_is_missing_is_named(pattern: str, mode: int) -> None:
    """Modes are those of a folder: none, search only, list only, list and write. All but search in a path that names
    its files end with a complaint."""
    with ordinary_user() as folder:
        for place in ("open", "shut"):
            (folder / place).mkdir()
            (folder / place / "a.txt").write_text(f"a text in {place}")
        (folder / "shut").chmod(mode)
        path = str(folder / pattern)
        if mode == 0o100 and pattern.endswith("/a.txt"):
            assert "a text in shut" in list(text_documents([path], ""))
        else:
            with pytest.raises((ValueError, OSError), match="shut.*Permission denied|Permission denied.*shut"):
                list(text_documents([path], ""))


@pytest.mark.parametrize("pattern", [".s*/**/*.txt", "**/.s*/*.txt", "**/.shut/*.txt", ".[s]*/*.txt", ".s*"])
def test_a_hidden_folder_without_permission_is_named_where_the_pattern_names_it(pattern: str) -> None:
    with ordinary_user() as folder:
        for place in (".shown", ".shut"):
            (folder / place).mkdir()
            (folder / place / "a.txt").write_text(f"a text in {place}")
        (folder / ".shut").chmod(0)
        with pytest.raises(ValueError, match="shut: cannot be read .Permission denied"):
            list(text_documents([str(folder / pattern)], ""))


@pytest.mark.parametrize("pattern", ["*/*.txt", "*/a.txt", "**/*.txt", "*/*"])
def test_a_link_into_a_folder_without_permission_is_named(pattern: str) -> None:
    with ordinary_user() as folder:
        for place in ("texts/open", "shut/inner"):
            (folder / place).mkdir(parents=True)
            (folder / place / "a.txt").write_text("a text")
        (folder / "texts" / "link").symlink_to("../shut/inner")
        (folder / "texts" / "nowhere").symlink_to("gone")
        assert list(text_documents([str(folder / "texts" / "open" / pattern.rsplit("/")[-1])], "")) == ["a text"]
        (folder / "shut").chmod(0)
        with pytest.raises(ValueError, match="texts/link: cannot be read .Permission denied"):
            list(text_documents([str(folder / "texts" / pattern)], ""))


def test_a_home_that_nobody_has_is_a_path_that_does_not_exist() -> None:
    assert "~nobody-at-all/a: does not exist" in refusal("~nobody-at-all/a")


@pytest.mark.parametrize("change", ["longer", "other bytes", "gone"])
def test_a_file_that_changes_while_it_is_read_is_named(tmp_path: Path, change: str) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b" * 100)
    source = text_documents([str(tmp_path)], "")
    assert next(source) == "a"
    if change == "gone":
        (tmp_path / "b").unlink()
    else:
        (tmp_path / "b").write_bytes(b"b" * 101 if change == "longer" else b"\xff")
    with pytest.raises(ValueError, match=r"corpus.paths: .*/b changed while it was read; run again when"):
        list(source)


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(ConfigError, match="corpus.paths.1: expected a text that is not empty"):
        load_corpus({**TEXT, "paths": ["a", ""]})


def reachable(monkeypatch: pytest.MonkeyPatch, *texts: Any) -> Iterator[str]:
    stub_hub(monkeypatch, [{"text": text} for text in texts])
    monkeypatch.setattr("pathsum.corpora.hub.connection_error", lambda: None)
    return documents(HUB)


def test_half_a_character_of_the_hub_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"corpus h: .* lone surrogate '\\ud800' at character 3 of document 1; remove"):
        list(reachable(monkeypatch, "fine", "not\ud800"))


def test_a_row_of_the_hub_without_text_is_skipped_and_one_of_another_type_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert list(reachable(monkeypatch, "a", None, "", "b")) == ["a", "b"]
    with pytest.raises(ValueError, match=r"corpus.text_field: expected text in 'text' of a/b, got int; choose another"):
        list(reachable(monkeypatch, "a", 3))


def test_work_in_compiled_code_can_be_interrupted_and_its_errors_arrive() -> None:
    ended = threading.Event()

    def busy() -> None:
        _thread.interrupt_main()
        ended.wait(60)

    with pytest.raises(KeyboardInterrupt):
        tokenizing.interruptible(busy)
    ended.set()
    assert tokenizing.interruptible(lambda: 7) == 7
    with pytest.raises(ValueError, match="expected text that supports"):
        tokenizing.interruptible(lambda: train_tokenizer(["ab"], TokenizerConfig(d_vocab=999, train_bytes=9_999)))
    with pytest.raises(SystemExit):  # like the panics of compiled code, no Exception
        tokenizing.interruptible(sys.exit)


def test_no_file_is_read_after_a_complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good").write_text("good")
    monkeypatch.setattr(text_files, "_pieces", lambda *_: pytest.fail("read"))
    assert "absent: does not exist" in refusal(tmp_path / "good", tmp_path / "absent")
