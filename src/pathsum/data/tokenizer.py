"""Which tokens is text made of? A byte-level BPE whose id 0 is the beginning-of-sequence token (BOS)."""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from pathsum.config import TokenizerConfig
from pathsum.data.bos import BOS, BOS_TEXT

MIN_FREQUENCY = 2  # a pair seen once teaches nothing
VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥"}
JOINER = "\u241f"  # joins the parts of an n-gram, so no printable token may hold it


def train_tokenizer(documents: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Which ``d_vocab`` tokens describe these documents?

    Merges are learnt from the first ``train_bytes`` bytes of the documents in the order of their sha256: a fair and
    reproducible sample, whatever their order. Memory is bounded by ``train_bytes`` and the longest document. BOS is in
    the vocabulary alone, so text that spells "<|bos|>" is encoded as ordinary bytes. Raises ValueError where the text
    does not support ``d_vocab`` tokens, saying how many it does.
    """
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
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample, trainer)
    if tokenizer.get_vocab_size() < config.d_vocab:
        raise ValueError(
            f"tokenizer.d_vocab: expected text that supports {config.d_vocab} tokens, but {n_bytes} bytes of training "
            f"text support only {tokenizer.get_vocab_size()}; set tokenizer.d_vocab={tokenizer.get_vocab_size()} or "
            "less, or give more text"
        )
    plain = json.loads(tokenizer.to_str()) | {"added_tokens": []}  # nothing in a text can turn into BOS
    return Tokenizer.from_str(json.dumps(plain))


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer saved at ``path``. Raises FileNotFoundError if there is none, ValueError if it is not ours."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a tokenizer, got no file; run the tokenize stage first")
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"{path}: expected a tokenizer, got something else ({error}); make it again") from error
    if tokenizer.id_to_token(BOS) != BOS_TEXT or tokenizer.get_added_tokens_decoder():
        raise ValueError(
            f"{path}: expected a tokenizer whose id {BOS} is {BOS_TEXT} and which adds no other special tokens, got id "
            f"{BOS} = {tokenizer.id_to_token(BOS)!r}; make it again with the tokenize stage"
        )
    return tokenizer


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """The sha256 of a tokenizer's canonical JSON: equal for tokenizers that encode everything alike."""
    return hashlib.sha256(tokenizer.to_str().encode()).hexdigest()


def token_bytes(tokenizer: Tokenizer) -> list[bytes]:
    """Which bytes does each token id stand for, in the order of ids? BOS stands for none."""
    bytes_of = _byte_of_letter()
    names = [str(tokenizer.id_to_token(i)) for i in range(1, tokenizer.get_vocab_size())]
    return [b"", *(bytes(bytes_of[letter] for letter in name) for name in names)]


def printable(token_bytes: bytes) -> str:
    r"""How is a token shown to people? Different bytes always look different.

    Space, newline and tab are ␣ ↵ ⇥; bytes that are not UTF-8, and characters that cannot be seen or that are used
    here as signs, are ``\xNN`` a byte; everything else is itself.
    """
    text = re.sub(r"\\(?=x[0-9a-f]{2})", r"\\x5c", token_bytes.decode("utf-8", "surrogateescape"))
    return "".join(_shown(character) for character in text)


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    """The printable string of every token, in the order of ids; all different."""
    return [BOS_TEXT, *(printable(b) for b in token_bytes(tokenizer)[1:])]


def _shown(character: str) -> str:
    if character in VISIBLE:
        return VISIBLE[character]
    if character.isprintable() and character not in {*VISIBLE.values(), JOINER}:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _byte_of_letter() -> dict[str, int]:
    """The letter that byte-level BPE writes for each byte: itself if printable in Latin-1, else one from U+0100 on."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in own]
    return {chr(b): b for b in own} | {chr(0x100 + i): b for i, b in enumerate(others)}


def _sample(documents: Iterable[str], n_bytes: int) -> list[str]:
    """The first ``n_bytes`` bytes of the documents in the order of their sha256; the last one is cut."""
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
