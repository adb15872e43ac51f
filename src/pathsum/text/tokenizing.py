"""Tokenize a corpus: read each document once, train the tokenizer, and write the token file of each part."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import psutil
from tqdm import tqdm

from pathsum.config import Corpus, SyntheticCorpus, TokenizerConfig
from pathsum.text.bos import BOS
from pathsum.text.corpus import documents, split
from pathsum.text.tokenizer import Codec, train_tokenizer
from pathsum.text.tokens import PARTS, Part, TokenHeader, write_tokens
from pathsum.text.windows import documents_of

LEAST: dict[Part, int] = {"train": 1, "tuning": 10, "verdict": 10}  # different documents; intervals resample them
PIECES = 20  # expected number of pieces for tuning and for verdicts, where documents are cut
CUT = "pieces.json"  # file with the number of documents of the source, if they were cut into pieces
BORDERS = (re.compile(r"\n[ \t\r]*\n"), re.compile(r"\n"), re.compile(r"\s"))  # of pieces; the first found is used
CHUNK = 4096  # windows that are looked at together


@dataclass
class Parts:
    """The documents of each part, in temporary files."""

    files: dict[Part, IO[str]]
    counts: dict[Part, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    different: dict[Part, set[bytes]] = field(default_factory=lambda: {part: set() for part in PARTS})  # some hashes
    characters: int = 0

    def lacking(self) -> list[Part]:
        """Return the parts that have less than LEAST different documents."""
        return [part for part in PARTS if len(self.different[part]) < LEAST[part]]


def tokenize_corpus(
    corpus: Corpus, spelling: TokenizerConfig | Codec, n_ctx: int, folder: Path
) -> dict[Part, TokenHeader]:
    """Write the tokenizer, trained here unless it is given, and the token files of a corpus to ``folder``. Return the
    header of each token file.

    The text is read once, into temporary files. With less than ten different documents for tuning or for verdicts, all
    but synthetic ones are cut into pieces, and ``pieces.json`` holds their number. Raises ValueError if a part then has
    too few documents or windows, and leaves earlier results in ``folder`` unchanged."""
    folder.mkdir(parents=True, exist_ok=True)
    _remove_drafts(folder)
    with ExitStack() as stack:
        whole = parts = _divided(_shown(documents(corpus), "read"), corpus.validation_share, folder, stack)
        size = int(whole.characters * corpus.validation_share / 2 / PIECES)
        while {*parts.lacking()} - {"train"} and size >= n_ctx and not isinstance(corpus, SyntheticCorpus):
            pieces = (piece for part in PARTS for text in _spooled(whole.files[part]) for piece in cut(text, size))
            parts, size = _divided(pieces, corpus.validation_share, folder, stack), size // 2
        _require_documents(corpus, parts)
        codec = spelling
        if isinstance(codec, TokenizerConfig):
            codec = Codec.own(train_tokenizer(_spooled(parts.files["train"]), codec))
        draft = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"draft-{os.getpid()}-", dir=folder)))
        codec.tokenizer.save(str(draft / "tokenizer.json"))
        headers = {
            part: write_tokens(draft / f"{part}.bin", _shown(_spooled(file), part, parts.counts[part]), codec)
            for part, file in parts.files.items()
        }
        for part, header in headers.items():
            _require_windows(part, draft / f"{part}.bin", header, n_ctx, corpus)
        for part in PARTS:
            (folder / f"{part}.json").unlink(missing_ok=True)
        (folder / CUT).unlink(missing_ok=True)
        if parts is not whole:
            (folder / CUT).write_text(json.dumps({"documents": sum(whole.counts.values())}) + "\n", encoding="utf-8")
        # Headers are moved last, so that a killed run leaves nothing that looks complete.
        for done in ("tokenizer.json", *(f"{part}.{kind}" for kind in ("bin", "json") for part in PARTS)):
            (draft / done).replace(folder / done)
    return headers


def _remove_drafts(folder: Path) -> None:
    for draft in folder.glob("draft-*-*"):
        if not psutil.pid_exists(int(draft.name.split("-")[1])):
            shutil.rmtree(draft, ignore_errors=True)


def cut(document: str, size: int) -> list[str]:
    """Return a document in consecutive pieces of about ``size`` characters, at most twice as many."""
    n = max(1, round(len(document) / size))
    cuts = [0]
    for i in range(1, n):
        low, at, high = (round((i + shift) * len(document) / n) for shift in (-0.5, 0, 0.5))
        found = ([match.end() for match in border.finditer(document, low, high)] for border in BORDERS)
        ends = next((ends for ends in found if ends), [at])
        cuts.append(min(ends, key=lambda end: abs(end - at)))
    parts = [document[a:b] for a, b in zip(cuts, [*cuts[1:], len(document)], strict=True)]
    return [part for part in parts if part.strip()]


def _spooled(file: IO[str]) -> Iterator[str]:
    file.seek(0)
    return map(json.loads, file)


def _shown(source: Iterator[str], title: str, total: int | None = None) -> Iterator[str]:
    """Yield the documents, and show on a terminal how many have been read."""
    return iter(tqdm(source, f"tokenize: {title}", total, unit=" documents", leave=False, delay=1, disable=None))


def _divided(source: Iterator[str], share: float, folder: Path, stack: ExitStack) -> Parts:
    new = partial(tempfile.TemporaryFile, "w+", encoding="utf-8", dir=folder)
    parts = Parts({part: stack.enter_context(new()) for part in PARTS})
    for document in source:
        part = split(document, share)
        parts.files[part].write(json.dumps(document, ensure_ascii=False) + "\n")
        parts.counts[part] += 1
        parts.characters += len(document)
        if len(parts.different[part]) < LEAST[part]:
            parts.different[part].add(hashlib.sha256(document.encode()).digest())
    return parts


def _require_documents(corpus: Corpus, parts: Parts) -> None:
    for part in parts.lacking()[:1]:
        got = ", ".join(f"{parts.counts[p]} for {p}" for p in PARTS)
        where = f"The {part} part of corpus {corpus.name!r} has too few documents"
        raise ValueError(
            f"{where}: expected at least {LEAST[part]} that differ, got {got}; give more text, or change "
            "corpus.validation_share"
        )


def _require_windows(part: Part, path: Path, header: TokenHeader, n_ctx: int, corpus: Corpus) -> None:
    where, change = f"The {part} part of corpus {corpus.name!r}", "; lower model.n_ctx, or give more text"
    if (n := header.count) <= n_ctx:
        raise ValueError(f"{where} is smaller than one window: expected {n_ctx + 1} tokens or more, got {n}{change}")
    tokens, owners, before = np.memmap(path, dtype=header.dtype, mode="r"), set[int](), 0
    for start in range(0, len(tokens) // n_ctx * n_ctx, CHUNK * n_ctx):
        some = tokens[start : start + CHUNK * n_ctx]
        owners |= {before + document for document in documents_of(some, n_ctx).tolist()}
        before += int(np.count_nonzero(some == BOS))
        if part == "train" or len(owners) >= LEAST[part]:
            return
    least, got = LEAST[part], f"{len(owners)} (of {header.documents} documents with {n} tokens)"
    raise ValueError(f"{where} has too few windows: expected windows of at least {least} documents, got {got}{change}")
