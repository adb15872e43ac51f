"""The tokenizer has exactly the configured vocabulary, encodes no text as BOS, and prints all tokens visibly."""

import itertools
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from pathsum.config import TokenizerConfig
from pathsum.text.tokenizer import (
    BOS,
    BOS_TEXT,
    load_tokenizer,
    printable,
    tokenizer_hash,
    train_tokenizer,
    vocabulary,
)

TEXTS = [f"def f{i}(x):\n\treturn x + {i} # café {i * 37 % 101}\n" for i in range(211)]
CONFIG = TokenizerConfig(d_vocab=283, train_bytes=100_003)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, CONFIG)


def test_text_full_of_the_bos_literal_still_gives_no_bos() -> None:
    tokenizer = train_tokenizer(["<|bos|> <|bos|>" * 53], TokenizerConfig(d_vocab=262, train_bytes=10_007))
    assert BOS not in tokenizer.encode("x<|bos|>y").ids


def test_a_saved_tokenizer_is_the_same_tokenizer(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    again = load_tokenizer(tmp_path / "tokenizer.json")
    assert tokenizer_hash(again) == tokenizer_hash(tokenizer)
    assert again.encode("a<|bos|>b").ids == tokenizer.encode("a<|bos|>b").ids


def test_the_order_of_documents_does_not_matter() -> None:
    few = TokenizerConfig(d_vocab=263, train_bytes=1_009)
    mixed = random.Random(7).sample(TEXTS, len(TEXTS))
    assert tokenizer_hash(train_tokenizer(mixed, few)) == tokenizer_hash(train_tokenizer(TEXTS, few))


def test_a_vocabulary_larger_than_the_text_supports_says_how_many_it_does() -> None:
    with pytest.raises(ValueError, match=r"expected text that supports 1009 tokens, but 9 bytes .* only 260; lower it"):
        train_tokenizer(["aaab aaab"], TokenizerConfig(d_vocab=1009, train_bytes=10_007))
    config = TokenizerConfig(d_vocab=260, train_bytes=10_007)
    assert train_tokenizer(["aaab aaab"], config).get_vocab_size() == 260


def test_a_missing_broken_or_other_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(FileNotFoundError, match="expected a tokenizer, got no file; run the tokenize stage"):
        load_tokenizer(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="expected a tokenizer, got something else"):
        load_tokenizer(path)
    other = '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}'
    path.write_text(other)
    with pytest.raises(ValueError, match=r"whose id 0 is <\|bos\|>, got another"):
        load_tokenizer(path)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b" a", "␣a"), (b"\n\t", "↵⇥"), ("é".encode(), "é"), (b"\xc3", r"\xc3"), (b"a\xffb", r"a\xffb"),
        (b"\x00", r"\x00"), (rb"\x00", r"\x5cx00"), (rb"\n", r"\n"), ("␣".encode(), r"\xe2\x90\xa3"),
        ("\u241f".encode(), r"\xe2\x90\x9f"), ("\u00a0".encode(), r"\xc2\xa0"), (b"", ""),
    ],
)  # fmt: skip
def test_invisible_bytes_are_shown(data: bytes, shown: str) -> None:
    assert printable(data) == shown


def test_different_bytes_look_different() -> None:
    alphabet = [b" ", b"\n", b"\\", b"x", b"0", b"\x00", b"\xe2", b"\x90", b"\xa3", "␣".encode()]
    seen: dict[str, bytes] = {}
    for length in range(1, 5):  # of which four write a NUL as the text \x00
        for parts in itertools.product(alphabet, repeat=length):
            data = b"".join(parts)
            assert seen.setdefault(printable(data), data) == data


def test_the_vocabulary_is_printable_and_distinct(tokenizer: Tokenizer) -> None:
    words = vocabulary(tokenizer)
    assert len(words) == len(set(words)) == 283
    assert words[BOS] == BOS_TEXT
    assert all(word.isprintable() and word for word in words)
