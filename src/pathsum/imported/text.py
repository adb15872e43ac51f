"""Encode text with the tokenizer of a model that was trained elsewhere, and print its tokens.

In this project, id 0 is BOS (beginning of sequence). The ids 0 and ``bos`` are therefore exchanged in tokens, in words
and in the model (``TransformerLensModel.bos_first``).
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from pathsum.corpora.text_files import text_documents
from pathsum.data.bos import BOS, BOS_TEXT
from pathsum.data.tokenizer import printable

BOS_NAMES = (BOS_TEXT, "<|BOS|>", "<|endoftext|>", "<|begin_of_text|>", "<bos>", "<s>", "[BOS]")
BATCH = 256  # documents encoded together
SAMPLE = 100_000  # size, in characters, of the sample of the text in which characters without a token are counted
# Shares of known text that cause an error and a warning. Some may be unknown even in a model's own text.
LEAST_KNOWN, WARNED = 0.5, 0.95
LETTERS = sorted(ByteLevel.alphabet())  # one for each byte: the byte's own character in Latin-1, or one from U+0100 on
_OWN = [ord(letter) for letter in LETTERS if ord(letter) < 256]
BYTES = dict(zip(LETTERS, [*_OWN, *sorted(set(range(256)) - set(_OWN))], strict=True))


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer of the ``tokenizers`` library from its JSON file, without truncation, padding or dropout."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a tokenizer's JSON file, found none; check TOKENIZER")
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare Exception
        raise ValueError(
            f"{path}: expected a JSON file of the tokenizers library, got something else ({error}); give the "
            "tokenizer.json of the model"
        ) from error
    ids = tokenizer.get_vocab()
    if len(names := dict(zip(ids.values(), ids, strict=True))) < len(ids):
        name, other = next((name, names[i]) for name, i in ids.items() if names[i] != name)
        raise ValueError(
            f"{path}: expected another id for each token, got {ids[name]} for {' and '.join(sorted([name, other]))}; "
            "give the tokenizer.json of the model"
        )
    if getattr(tokenizer.model, "dropout", None):
        tokenizer.model.dropout = None
        warnings.warn(f"the dropout of {path.name}, which makes tokens random, is switched off", stacklevel=2)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def bos_id(tokenizer: Tokenizer, name: str) -> int:
    """Return the id of the token that begins a sequence."""
    vocabulary = tokenizer.get_vocab()
    found = [candidate for candidate in ((name,) if name else BOS_NAMES) if candidate in vocabulary]
    if len(found) != 1:
        wanted = f"the token {name!r}" if name else f"one of {', '.join(BOS_NAMES)}"
        raise ValueError(
            f"expected a tokenizer with {wanted} to begin sequences with, got {' and '.join(found) or 'none'}; give "
            "the model's own: BOS='<name>'"
        )
    return int(vocabulary[found[0]])


def words(tokenizer: Tokenizer, d_vocab: int, bos: int) -> list[str]:
    """Return the printed form of every id, with BOS at id 0."""
    names = {i: name for name, i in tokenizer.get_vocab().items()}
    if not names or max(names) >= d_vocab:
        raise ValueError(
            f"expected a tokenizer of at most d_vocab = {d_vocab} ids, as the model has, got ids up to "
            f"{max(names, default=None)}; give the tokenizer that the model was trained with"
        )
    forms = _printed(tokenizer, names)
    shown = [forms.get(i, f"[{i}]") for i in range(d_vocab)]
    shown[BOS], shown[bos] = shown[bos], shown[BOS]
    return shown


def known_ids(tokenizer: Tokenizer, bos: int) -> list[int]:
    """Return the ids that the tokenizer has, in increasing order, with the ids 0 and ``bos`` exchanged."""
    return sorted({bos: BOS, BOS: bos}.get(i, i) for i in tokenizer.get_vocab().values())


def encode_text(pattern: str, tokenizer: Tokenizer, bos: int) -> Int64[np.ndarray, "token"]:
    """Encode the text files that ``pattern`` (a file, folder or glob) names as one stream, with BOS before each
    document."""
    try:
        documents = list(text_documents([pattern], ""))
    except (ValueError, FileNotFoundError) as error:
        said = str(error).replace("corpus.paths", "TEXT").partition(", or corpus.separator")[0]
        raise type(error)(said) from error
    known, known_tokens = _known(tokenizer, _sample("\n".join(documents)))
    if known >= LEAST_KNOWN and min(known, known_tokens) < WARNED:
        warnings.warn(
            f"the tokenizer knows {known:.0%} of the characters of TEXT; {1 - known_tokens:.0%} of its tokens are the "
            "unknown token",
            stacklevel=2,
        )
    if known < LEAST_KNOWN:
        raise ValueError(
            f"TOKENIZER: expected tokens for at least {LEAST_KNOWN:.0%} of the characters of TEXT, got {known:.0%}; "
            "give the tokenizer that the model was trained with, or a text that it knows"
        )
    stream = []
    for start in range(0, len(documents), BATCH):
        for encoded in _encoded(tokenizer.encode_batch_fast, documents[start : start + BATCH]):
            stream += [bos, *encoded.ids]
    tokens = np.array(stream, dtype=np.int64)
    added, name = tokenizer.get_added_tokens_decoder().get(bos), tokenizer.id_to_token(bos)
    if not (added and added.special):
        if (tokens == bos).sum() > len(documents):
            raise ValueError(
                f"BOS: expected a token that only begins sequences, got {name!r}, an ordinary token that occurs in "
                "TEXT; give the model's own: BOS='<name>'"
            )
        if name not in BOS_NAMES:
            warnings.warn(f"BOS {name!r} is an ordinary token of the tokenizer", stacklevel=2)
    if not (tokens != bos).any():
        raise ValueError(f"TEXT: expected text, got {pattern!r}, which holds none; give other files")
    return np.where(tokens == bos, BOS, np.where(tokens == BOS, bos, tokens))


def _sample(text: str) -> str:
    """Return about ``SAMPLE`` characters of ``text``, in about a hundred evenly spaced pieces. Short text is kept."""
    if len(text) <= SAMPLE:
        return text
    starts = range(0, len(text), len(text) // 100)
    return "\n".join(text[start : start + SAMPLE // 100] for start in starts)


def _encoded(encode: Callable[..., Any], text: str | Sequence[str]) -> Any:
    """Return the encoding of ``text`` by ``encode``, a method of the tokenizer, without special tokens."""
    try:
        return encode(text, add_special_tokens=False)
    except Exception as error:  # the library raises bare Exception
        raise ValueError(
            f"TEXT: expected text that the tokenizer can encode, got: {error}; give another, or correct TOKENIZER"
        ) from error


def _known(tokenizer: Tokenizer, text: str) -> tuple[float, float]:
    """Return the share (0 to 1) of the characters of ``text``, white space excepted, that have a token other than the
    unknown token, and the share of such tokens. 1 for white space alone."""
    encoded, unknown = _encoded(tokenizer.encode, text), _unknown_id(tokenizer)
    lacking = [i == unknown for i in encoded.ids]
    known = np.zeros(len(text), dtype=bool)
    for lacks, (start, end) in sorted(zip(lacking, encoded.offsets, strict=True)):  # a known ▁ may cover a letter
        known[start:end] = not lacks
    wanted = np.array([not letter.isspace() for letter in text], dtype=bool)
    characters = float(known[wanted].mean()) if wanted.any() else 1.0
    return characters, 1 - sum(lacking) / max(1, len(lacking))


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of the unknown token: Unigram stores the id, other models the name, some neither."""
    model = json.loads(tokenizer.to_str())["model"]
    name = model.get("unk_token")
    return model.get("unk_id") if name is None else tokenizer.token_to_id(name)


def _printed(tokenizer: Tokenizer, names: dict[int, str]) -> dict[int, str]:
    """Return the printed form of each token of ``names`` (name by id), as ``printable``."""
    about = json.loads(tokenizer.to_str())
    steps = [step for part in ("normalizer", "pre_tokenizer") for step in _steps(about[part])]
    byte_level = any(step["type"] == "ByteLevel" for step in steps)
    space = next((step["replacement"] for step in steps if step["type"] == "Metaspace"), "▁")
    added, forms, single = tokenizer.get_added_tokens_decoder(), {}, {}
    for i, name in names.items():
        if i in added:
            forms[i] = name.encode()
        elif byte_level:
            forms[i] = bytes(BYTES[letter] for letter in name) if BYTES.keys() >= set(name) else name.encode()
        elif about["model"].get("byte_fallback") and (byte := re.fullmatch(r"<0x([0-9A-F]{2})>", name)):
            single[i] = bytes.fromhex(byte[1])
        else:
            forms[i] = name.replace(space, " ").encode()
    taken = set(forms.values())
    forms |= {i: names[i].encode() if byte in taken else byte for i, byte in single.items()}
    return {i: printable(form) for i, form in forms.items()}


def _steps(step: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Yield a step of a tokenizer's JSON, and the steps inside a Sequence."""
    if step is not None:
        yield step
        for inner in step.get("normalizers", step.get("pretokenizers", ())):
            yield from _steps(inner)
