"""Encode text with the tokenizer of a model that was trained elsewhere, and print its tokens.

Here, id 0 is BOS (beginning of sequence): the ids 0 and ``bos`` are exchanged, and ids that the tokenizer lacks are
left out, in tokens, words and model.
"""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel
from torch import Tensor

from pathsum.text.bos import BOS, BOS_TEXT
from pathsum.text.tokenizer import Codec, encoded_by, printable

BOS_NAMES = (BOS_TEXT, "<|BOS|>", "<|endoftext|>", "<|begin_of_text|>", "<bos>", "<s>", "[BOS]")
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


def words(tokenizer: Tokenizer, d_vocab: int, bos: int) -> list[str]:
    """Return the printed form of every id, with BOS at id 0."""
    names = {i: name for name, i in tokenizer.get_vocab().items()}
    if max(names, default=d_vocab) >= d_vocab:
        raise ValueError(f"TOKENIZER: expected at most the {d_vocab} ids of the model, got {max(names, default=None)}")
    forms = _printed(tokenizer, names)
    shown = [forms.get(i, f"[{i}]") for i in range(d_vocab)]
    shown[BOS], shown[bos] = shown[bos], shown[BOS]
    return shown


def codec_of(tokenizer: Tokenizer, d_vocab: int, bos: int) -> tuple[Codec, Int[Tensor, "n"]]:
    """Return the codec of the ids that the tokenizer has, numbered from 0 with BOS first, and these ids in a model with
    ``d_vocab`` ids (docs/framework.md §2.9)."""
    shown, exchanged = words(tokenizer, d_vocab, bos), {bos: BOS, BOS: bos}
    kept = sorted(exchanged.get(i, i) for i in tokenizer.get_vocab().values())
    raw = [exchanged.get(i, i) for i in kept]
    numbers = None if raw == [*range(len(raw))] else {i: n for n, i in enumerate(raw)}
    added = tokenizer.get_added_tokens_decoder().get(bos)
    special = bool(added and added.special) or tokenizer.id_to_token(bos) == BOS_TEXT
    return Codec(tokenizer, [shown[i] for i in kept], numbers, special), torch.tensor(raw)


def require_known(tokenizer: Tokenizer, text: str) -> None:
    """Raise ValueError unless the tokenizer has tokens for half of the characters of ``text``. Warn if some lack."""
    if (known := known_share(tokenizer, text)) < LEAST_KNOWN:
        raise ValueError(f"TOKENIZER: expected tokens for half of the characters of TEXT, got {known:.0%}")
    if known < WARNED:
        warnings.warn(f"the tokenizer knows {known:.0%} of the characters of TEXT", stacklevel=2)


def known_share(tokenizer: Tokenizer, text: str) -> float:
    """Return the share of the characters of a sample, white space excepted, that have another token than unknown."""
    part, model = SAMPLE // 100, json.loads(tokenizer.to_str())["model"]
    text = "".join(text[start : start + part] for start in range(0, len(text), max(part, len(text) // 100)))
    name, encoded = model.get("unk_token"), encoded_by(tokenizer.encode, text, add_special_tokens=False)
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
