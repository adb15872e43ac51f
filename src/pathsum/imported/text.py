"""Encode text with the tokenizer of a model that was trained elsewhere, and print its tokens.

Here, id 0 is BOS (beginning of sequence): the ids 0 and ``bos`` are exchanged in tokens, words and model.
"""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from pathsum.model.opened import only
from pathsum.model.transformer import Transformer
from pathsum.text.bos import BOS, BOS_TEXT
from pathsum.text.text_files import text_documents
from pathsum.text.tokenizer import printable

BOS_NAMES = (BOS_TEXT, "<|BOS|>", "<|endoftext|>", "<|begin_of_text|>", "<bos>", "<s>", "[BOS]")
BATCH = 256  # documents encoded together
SAMPLE = 100_000  # size, in characters, of the sample of the text in which characters without a token are counted
LEAST_KNOWN, WARNED = 0.5, 0.95  # shares of characters; a model's own text may have some that its tokenizer lacks
LETTERS = sorted(ByteLevel.alphabet())  # one for each byte: the byte's own character in Latin-1, or one from U+0100 on
_OWN = [ord(letter) for letter in LETTERS if ord(letter) < 256]
BYTES = dict(zip(LETTERS, [*_OWN, *sorted(set(range(256)) - set(_OWN))], strict=True))


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer of the ``tokenizers`` library from its JSON file, without truncation, padding or dropout."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"TOKENIZER: expected a JSON file of the tokenizers library, got {path}: {error}") from error
    if getattr(tokenizer.model, "dropout", None):  # random tokens
        tokenizer.model.dropout = None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def bos_id(tokenizer: Tokenizer, name: str) -> int:
    """Return the id of the token that begins a sequence."""
    vocabulary = tokenizer.get_vocab()
    found = [candidate for candidate in ((name,) if name else BOS_NAMES) if candidate in vocabulary]
    if len(found) != 1:
        wanted, got = ", ".join([name] if name else BOS_NAMES), " and ".join(found) or "none"
        raise ValueError(f"BOS: expected one token of {wanted} in TOKENIZER, got {got}; give BOS='<name>'")
    return int(vocabulary[found[0]])


def bos_first(model: Transformer, bos: int) -> Transformer:
    """Return the same model with the ids 0 (BOS here) and ``bos`` exchanged."""
    order = torch.arange(len(model.W_U))
    order[[BOS, bos]] = order[[bos, BOS]]
    return only(model, order) if bos != BOS else model


def words(tokenizer: Tokenizer, d_vocab: int, bos: int) -> list[str]:
    """Return the printed form of every id, with BOS at id 0."""
    names = {i: name for name, i in tokenizer.get_vocab().items()}
    if max(names, default=d_vocab) >= d_vocab:
        raise ValueError(f"TOKENIZER: expected at most the {d_vocab} ids of the model, got {max(names, default=None)}")
    forms = _printed(tokenizer, names)
    shown = [forms.get(i, f"[{i}]") for i in range(d_vocab)]
    shown[BOS], shown[bos] = shown[bos], shown[BOS]
    return shown


def known_ids(tokenizer: Tokenizer, bos: int) -> list[int]:
    """Return the ids that the tokenizer has, in increasing order, with the ids 0 and ``bos`` exchanged."""
    return sorted({bos: BOS, BOS: bos}.get(i, i) for i in tokenizer.get_vocab().values())


def encode_text(pattern: str, tokenizer: Tokenizer, bos: int) -> Int64[np.ndarray, "token"]:
    """Encode the text files of ``pattern`` (a file, folder or glob) as one stream, with BOS before each document."""
    documents = list(text_documents([pattern], "", where="TEXT"))
    if (known := _known(tokenizer, "\n".join(documents))) < LEAST_KNOWN:
        raise ValueError(f"TOKENIZER: expected tokens for half of the characters of TEXT, got {known:.0%}")
    if known < WARNED:
        warnings.warn(f"the tokenizer knows {known:.0%} of the characters of TEXT", stacklevel=2)
    batches = (documents[start : start + BATCH] for start in range(0, len(documents), BATCH))
    encoded = (text for batch in batches for text in _encoded(tokenizer.encode_batch_fast, batch))
    tokens = np.array([i for text in encoded for i in (bos, *text.ids)], dtype=np.int64)
    added = tokenizer.get_added_tokens_decoder().get(bos)
    if not (added and added.special) and (tokens == bos).sum() > len(documents):
        raise ValueError(f"BOS: expected a token that does not occur in TEXT, got {tokenizer.id_to_token(bos)!r}")
    return np.where(tokens == bos, BOS, np.where(tokens == BOS, bos, tokens))


def _encoded(encode: Callable[..., Any], texts: list[str]) -> Any:
    try:
        return encode(texts, add_special_tokens=False)
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"TEXT: expected text that the tokenizer can encode, got: {error}") from error


def _known(tokenizer: Tokenizer, text: str) -> float:
    """Return the share of the characters of a sample, white space excepted, that have another token than unknown."""
    part, model = SAMPLE // 100, json.loads(tokenizer.to_str())["model"]
    text = "".join(text[start : start + part] for start in range(0, len(text), max(part, len(text) // 100)))
    name, (encoded,) = model.get("unk_token"), _encoded(tokenizer.encode_batch, [text])
    unknown = model.get("unk_id") if name is None else tokenizer.token_to_id(name)  # the id in Unigram models
    known = np.zeros(len(text), dtype=bool)
    lacking = [i == unknown for i in encoded.ids]
    for lacks, (start, end) in sorted(zip(lacking, encoded.offsets, strict=True)):  # a known ▁ may cover a letter
        known[start:end] = not lacks
    wanted = np.array([not letter.isspace() for letter in text], dtype=bool)
    return float(known[wanted].mean()) if wanted.any() else 1.0


def _printed(tokenizer: Tokenizer, names: dict[int, str]) -> dict[int, str]:
    """Return the printed form of each token of ``names`` (name by id), as ``printable``."""
    about = json.loads(tokenizer.to_str())
    outer = [about[part] or {} for part in ("normalizer", "pre_tokenizer")]
    steps = [inner for o in outer for inner in o.get("normalizers", o.get("pretokenizers", [o]))]
    byte_level = any(step.get("type") == "ByteLevel" for step in steps)
    space = next((step["replacement"] for step in steps if step.get("type") == "Metaspace"), "▁")
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
