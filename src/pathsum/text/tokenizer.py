"""The tokenizer: byte-level BPE (byte-pair encoding). Id 0 is BOS, the beginning-of-sequence token."""

from __future__ import annotations

import hashlib
import heapq
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from pathsum.config import TokenizerConfig
from pathsum.text.bos import BOS, BOS_TEXT

RUN = 2048  # longest run of letters, of other signs or of spaces from which merges are learned as one word
MIN_FREQUENCY = 2  # smallest count of a pair that is merged
VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥"}
JOINER = "\u241f"  # joins the tokens of an n-gram, so no printed token may contain it


def train_tokenizer(documents: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Train a tokenizer with ``config.d_vocab`` tokens on ``documents``."""
    sample = _sample(documents, config.train_bytes)
    n_bytes = sum(len(text.encode()) for text in sample)
    if not n_bytes:
        raise ValueError("The tokenizer expects training text, got none; check the corpus and its validation_share")
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=config.d_vocab,
        min_frequency=MIN_FREQUENCY,
        special_tokens=[BOS_TEXT],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=sys.stderr.isatty(),
    )
    tokenizer.train_from_iterator((part for text in sample for part in _without_long_runs(text)), trainer)
    if tokenizer.get_vocab_size() < config.d_vocab:
        raise ValueError(
            f"tokenizer.d_vocab: expected text that supports {config.d_vocab} tokens, but {n_bytes} bytes of training "
            f"text support only {tokenizer.get_vocab_size()}; lower it, or give more text"
        )
    plain = json.loads(tokenizer.to_str()) | {"added_tokens": []}  # no text is encoded as BOS
    return Tokenizer.from_str(json.dumps(plain))


def load_tokenizer(path: Path) -> Tokenizer:
    """Load the tokenizer at ``path``."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a tokenizer, got no file; run the tokenize stage first")
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"{path}: expected a tokenizer, got something else ({error}); make it again") from error
    if tokenizer.id_to_token(BOS) != BOS_TEXT or tokenizer.get_added_tokens_decoder():
        raise ValueError(f"{path}: expected a tokenizer whose id {BOS} is {BOS_TEXT}, got another; make it again")
    return tokenizer


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """Return the sha256 of the tokenizer's canonical JSON. Equal hashes mean equal encodings of all text."""
    return hashlib.sha256(tokenizer.to_str().encode()).hexdigest()


@dataclass(frozen=True)
class Codec:
    """How documents become ids: a tokenizer and its printed tokens by id. Id 0 is BOS."""

    tokenizer: Tokenizer
    words: Sequence[str]
    numbers: Mapping[int, int] | None = None  # id here by id of the tokenizer; None: the same
    separates: bool = True  # whether BOS in a text separates documents; False: it is an ordinary token

    @staticmethod
    def own(tokenizer: Tokenizer) -> Codec:
        """Return the codec of a tokenizer that this project trained."""
        return Codec(tokenizer, vocabulary(tokenizer))

    @property
    def hash(self) -> str:
        return tokenizer_hash(self.tokenizer)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without BOS before them. ValueError for text that cannot be encoded."""
        encoded = encoded_by(self.tokenizer.encode_batch_fast, texts, add_special_tokens=False)
        found = [one.ids for one in encoded]
        if self.numbers is not None:
            found = [[self.numbers[i] for i in ids] for ids in found]
        if not self.separates and any(BOS in ids for ids in found):
            raise ValueError(f"BOS: expected a token that does not occur in the text, got {self.words[BOS]!r}")
        return found


def encoded_by(encode: Callable[..., Any], *given: Any, **how: Any) -> Any:
    """Call a method of a tokenizer. ValueError for text that it cannot encode."""
    try:
        return encode(*given, **how)
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"expected text that the tokenizer can encode, got: {error}") from error


def token_bytes(tokenizer: Tokenizer) -> list[bytes]:
    """Return the bytes of each token in the order of ids. BOS has none: its entry is ``b""``."""
    bytes_of = _byte_of_letter()
    names = [str(tokenizer.id_to_token(i)) for i in range(1, tokenizer.get_vocab_size())]
    return [b"", *(bytes(bytes_of[letter] for letter in name) for name in names)]


def printable(token_bytes: bytes) -> str:
    r"""Return the printed form of a token. Different tokens have different printed forms.

    Space, newline and tab are printed as ␣ ↵ ⇥. The following bytes are printed as ``\xNN``: bytes that are not UTF-8,
    the bytes of invisible characters and of ␣ ↵ ⇥ and ``JOINER``, and the byte of a backslash before ``xNN``. All other
    characters are printed as they are.
    """
    text = re.sub(r"\\(?=x[0-9a-f]{2})", r"\\x5c", token_bytes.decode("utf-8", "surrogateescape"))
    return "".join(_shown(character) for character in text)


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    """Return the printed forms of all tokens in the order of ids. All are different."""
    return [BOS_TEXT, *(printable(b) for b in token_bytes(tokenizer)[1:])]


def _shown(character: str) -> str:
    if character in VISIBLE:
        return VISIBLE[character]
    if character.isprintable() and character not in {*VISIBLE.values(), JOINER}:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _byte_of_letter() -> dict[str, int]:
    """Return the byte that each letter of byte-level BPE stands for."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in own]
    return {chr(b): b for b in own} | {chr(0x100 + i): b for i, b in enumerate(others)}


def _without_long_runs(text: str) -> Iterator[str]:
    """Yield ``text`` in parts, cut after every RUN characters within a run of one kind of character."""
    kinds = (r"[^\W_]", r"(?:[^\w\s]|_)", r"\s")  # letters and digits; other signs; space
    start = 0
    for run in re.finditer("|".join(rf"(?<!{kind}){kind}{{{RUN + 1},}}+" for kind in kinds), text):
        for cut in range(run.start() + RUN, run.end(), RUN):
            yield text[start:cut]
            start = cut
    yield text[start:]


def _sample(documents: Iterable[str], n_bytes: int) -> list[str]:
    """Return the first ``n_bytes`` bytes of the documents in the order of their sha256."""
    kept: list[tuple[int, str]] = []  # a heap whose top has the largest hash
    size = 0
    for document in documents:
        data = document.encode()
        heapq.heappush(kept, (-int.from_bytes(hashlib.sha256(data).digest(), "big"), document))
        size += len(data)
        while size - len(kept[0][1].encode()) >= n_bytes:
            size -= len(heapq.heappop(kept)[1].encode())
    ordered = [document for _, document in sorted(kept, reverse=True)]
    if size > n_bytes:
        last = ordered[-1].encode()
        ordered[-1] = last[: len(last) - (size - n_bytes)].decode(errors="ignore")
    return ordered
