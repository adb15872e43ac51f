"""Token files hold BOS before each document and exactly its tokens. Incomplete or changed files are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from pathsum.config import Corpus, TokenizerConfig
from pathsum.text.bos import BOS
from pathsum.text.text_files import TextCorpus
from pathsum.text.tokenizer import Codec, load_tokenizer, tokenizer_hash, train_tokenizer
from pathsum.text.tokenizing import cut, tokenize_corpus
from pathsum.text.tokens import PARTS, header_path, read_tokens, write_tokens

TEXTS = [f"The {i}th line, with {i * i} words.\n\n  And   more: {i % 7}!\t\n" for i in range(101)]
CONFIG = TokenizerConfig(d_vocab=271, train_bytes=10_007)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, CONFIG)


def test_each_document_stands_after_a_bos(tokenizer: Tokenizer, tmp_path: Path) -> None:
    header = write_tokens(tmp_path / "a.bin", TEXTS, Codec.own(tokenizer))
    file = read_tokens(tmp_path / "a.bin")
    assert file.header == header
    assert file.tokens.tolist() == [i for text in TEXTS for i in (BOS, *tokenizer.encode(text).ids)]
    assert (header.documents, header.text_bytes, header.dtype) == (101, sum(len(t.encode()) for t in TEXTS), "<u2")
    assert not list(tmp_path.glob("*.draft"))


def test_a_missing_or_changed_token_file_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with pytest.raises(FileNotFoundError, match=r"a\.bin: expected a token file and its header, got no such file"):
        read_tokens(path)
    write_tokens(path, TEXTS, Codec.own(tokenizer))
    good, header = path.read_bytes(), header_path(path).read_text()
    for wrong in (good[:-3], good + b"12", good[:99] + bytes([good[99] ^ 1]) + good[100:]):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"a\.bin: expected the tokens that its header describes, got others; del"):
            read_tokens(path)
    path.write_bytes(good)
    header_path(path).write_text(header.replace("<u2", "<f8"))
    with pytest.raises(ValueError, match="got others"):
        read_tokens(path)
    header_path(path).unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.json: expected"):
        read_tokens(path)
    write_tokens(path, [], Codec.own(tokenizer))
    with pytest.raises(ValueError, match="got others"):
        read_tokens(path)


def text_corpus(folder: Path, share: float) -> Corpus:
    folder.mkdir(exist_ok=True)
    (folder / "all.txt").write_text("\0".join(TEXTS))
    return TextCorpus(
        source="text", name="mine", validation_share=share, paths=(str(folder),), separator="\0", max_documents=97
    )


def test_a_corpus_becomes_a_tokenizer_and_three_token_files_without_a_document_in_common(tmp_path: Path) -> None:
    corpus = text_corpus(tmp_path / "in", 0.3)
    headers = tokenize_corpus(corpus, CONFIG, 29, tmp_path / "out")
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == sorted(["tokenizer.json", *(f"{part}.{kind}" for part in PARTS for kind in ("bin", "json"))])
    assert sum(header.documents for header in headers.values()) == 97
    tokenizer = load_tokenizer(tmp_path / "out/tokenizer.json")
    assert {header.tokenizer_hash for header in headers.values()} == {tokenizer_hash(tokenizer)}
    kept = {}
    for part, header in headers.items():
        tokens = read_tokens(tmp_path / f"out/{part}.bin").tokens
        assert np.sum(tokens == BOS) == header.documents
        kept[part] = {tokenizer.decode(d[1:].tolist()) for d in np.split(tokens, np.flatnonzero(tokens == BOS)[1:])}
    assert set.union(*kept.values()) == set(TEXTS[:97])
    assert sum(map(len, kept.values())) == 97  # none in two parts
    assert tokenize_corpus(corpus, CONFIG, 29, tmp_path / "out") == headers


def test_few_documents_are_cut_into_pieces_and_many_are_not(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    words = [f"w{i % 89}{'.' if i % 7 else chr(10)}" for i in range(40_000)]
    rng = np.random.default_rng(0)
    for number in range(3):
        rng.shuffle(words)
        (tmp_path / "in" / f"{number}.txt").write_text(" ".join(words))
    corpus = TextCorpus(
        source="text", name="mine", validation_share=0.1, paths=(str(tmp_path / "in"),), separator="", max_documents=9
    )
    out = tmp_path / "out"
    headers = tokenize_corpus(corpus, CONFIG, 29, out)
    assert json.loads((out / "pieces.json").read_text()) == {"documents": 3}
    assert min(headers["tuning"].documents, headers["verdict"].documents) >= 10
    assert 300 <= sum(header.documents for header in headers.values()) <= 500  # 20 for tuning, 20 for verdicts of 400
    whole = [(tmp_path / "in" / f"{number}.txt").read_text() for number in range(3)]
    tokenizer = load_tokenizer(out / "tokenizer.json")
    for part in PARTS:
        tokens = read_tokens(out / f"{part}.bin").tokens
        found = [tokenizer.decode(d[1:].tolist()) for d in np.split(tokens, np.flatnonzero(tokens == BOS)[1:])]
        assert all(any(piece in text for text in whole) and piece.endswith("\n") for piece in found[:5])
    assert sum(header.text_bytes for header in headers.values()) == sum(len(text) for text in whole)
    assert tokenize_corpus(corpus, CONFIG, 29, out) == headers
    tokenize_corpus(text_corpus(tmp_path / "many", 0.3), CONFIG, 29, out)
    assert not (out / "pieces.json").exists()


def test_copies_of_one_document_are_one_document(tmp_path: Path) -> None:
    """A hundred copies have too few different pieces, although there are enough in number."""
    (tmp_path / "in").mkdir()
    for number in range(100):
        (tmp_path / "in" / f"{number}.txt").write_text(TEXTS[0] * 9)
    corpus = TextCorpus(
        source="text", name="mine", validation_share=0.5, paths=(str(tmp_path / "in"),), separator="", max_documents=100
    )
    with pytest.raises(
        ValueError, match=r"has too few documents: expected at least 10 that differ, got \d+ for train, "
    ):
        tokenize_corpus(corpus, CONFIG, 29, tmp_path / "out")


@pytest.mark.parametrize(
    ("share", "n_ctx", "said"),
    [
        (1e-6, 29, "The tuning part of corpus 'mine' has too few .*; give more text"),
        (0.999, 29, "The train part of corpus 'mine' has too few .*; give more text"),
        (0.3, 199, r"too few windows: expected windows of at least 10 documents, got [1-9] \(of \d+ documents"),
        (0.3, 50_021, "smaller than one window: expected 50022 tokens .* lower model.n_ctx"),
    ],
)
def test_too_little_text_is_an_error_that_names_what_decides_it_and_leaves_earlier_results(
    tmp_path: Path, share: float, n_ctx: int, said: str
) -> None:
    headers = tokenize_corpus(text_corpus(tmp_path / "in", 0.3), CONFIG, 29, tmp_path / "out")
    with pytest.raises(ValueError, match=said):
        tokenize_corpus(text_corpus(tmp_path / "in", share), CONFIG, n_ctx, tmp_path / "out")
    assert read_tokens(tmp_path / "out/train.bin").header == headers["train"]


@pytest.mark.parametrize("size", [7, 30, 100, 1000, 10**6])
@pytest.mark.parametrize(
    "text", ["one\n\ntwo lines\nof text\n\n" * 40, "a b c " * 90, "x" * 500, "\n" * 70 + "é" * 70, "x"]
)
def test_pieces_are_the_document_in_parts_of_about_the_size(text: str, size: int) -> None:
    parts = cut(text, size)
    assert "".join(parts).replace("\n", "") == text.replace("\n", "")
    assert max(map(len, parts)) <= 2 * size + 1
    if text.startswith("one") and size >= 30:
        assert all(part.endswith("\n\n") for part in parts)
    if text.startswith("a b"):
        assert all(part.endswith(" ") for part in parts)


def test_the_draft_of_a_killed_process_is_removed_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    corpus = text_corpus(tmp_path / "in", 0.3)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for pid in (ended.pid, os.getppid()):
        (tmp_path / "out" / f"draft-{pid}-x").mkdir(parents=True)
        (tmp_path / "out" / f"draft-{pid}-x" / "train.bin.draft").write_text("half")
    tokenize_corpus(corpus, CONFIG, 29, tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").glob("draft-*")] == [f"draft-{os.getppid()}-x"]
