"""Tokenize a corpus: read each document once, train the tokenizer, and write the token file of each part."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
import psutil
from tqdm import tqdm

from pathsum.config import Corpus, SyntheticCorpus, TokenizerConfig
from pathsum.corpora.corpus import documents, split
from pathsum.corpora.pieces import cut
from pathsum.data.bos import BOS
from pathsum.data.tokenizer import tokenizer_hash, train_tokenizer
from pathsum.data.tokens import PARTS, Part, TokenHeader, write_tokens
from pathsum.data.windows import documents_of

R = TypeVar("R")
LEAST: dict[Part, int] = {"train": 1, "tuning": 10, "verdict": 10}  # different documents; intervals resample them
PIECES = 20  # expected number of pieces for tuning and for verdicts, where documents are cut
CUT = "pieces.json"  # file with the number of documents of the source, if they were cut into pieces
CHUNK = 4096  # windows that are looked at together


@dataclass
class Parts:
    """The documents of each part, in temporary files."""

    files: dict[Part, IO[str]]
    counts: dict[Part, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    different: dict[Part, set[bytes]] = field(default_factory=lambda: {part: set() for part in PARTS})  # some hashes
    characters: int = 0

    def lacking(self) -> Part | None:
        """Return the first part that has less than LEAST different documents."""
        return next((part for part in PARTS if len(self.different[part]) < LEAST[part]), None)

    def few(self) -> bool:
        """Return whether there are too few documents for tuning or for verdicts."""
        return any(len(self.different[part]) < LEAST[part] for part in PARTS if part != "train")


def tokenize_corpus(corpus: Corpus, config: TokenizerConfig, n_ctx: int, folder: Path) -> dict[Part, TokenHeader]:
    """Write the tokenizer and the token files of a corpus to ``folder``. Return the header of each token file.

    The files are ``tokenizer.json``, and ``train.bin``, ``tuning.bin`` and ``verdict.bin`` with their headers. The text
    is read once, into temporary files in ``folder``. Memory therefore does not grow with the text, and the tokenizer
    and the token files see the same text even if it is generated or streamed.

    If there are less than ten different documents for tuning or for verdicts, all documents are cut into pieces, which
    take their place, and ``pieces.json`` holds the number of documents. Synthetic documents are not cut.

    Raises ValueError if a part then has too few documents, too few documents with a window, or no more than ``n_ctx``
    tokens, and the errors of ``documents`` and ``train_tokenizer``. Earlier results in ``folder`` are then unchanged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _remove_drafts(folder)
    with ExitStack() as stack:
        whole = parts = _divided(_shown(documents(corpus), "read"), corpus.validation_share, folder, stack)
        size = int(whole.characters * corpus.validation_share / 2 / PIECES)
        while parts.few() and size >= n_ctx and not isinstance(corpus, SyntheticCorpus):
            pieces = (piece for part in PARTS for text in _spooled(whole.files[part]) for piece in cut(text, size))
            parts, size = _divided(pieces, corpus.validation_share, folder, stack), size // 2
        _require_documents(corpus, parts)
        tokenizer = interruptible(lambda: train_tokenizer(_spooled(parts.files["train"]), config))
        name = tokenizer_hash(tokenizer)
        draft = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"draft-{os.getpid()}-", dir=folder)))
        tokenizer.save(str(draft / "tokenizer.json"))
        headers = {
            part: write_tokens(draft / f"{part}.bin", _shown(_spooled(file), part, parts.counts[part]), tokenizer, name)
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
    """Remove the drafts of processes that were killed."""
    for draft in folder.glob("draft-*-*"):
        if not psutil.pid_exists(int(draft.name.split("-")[1])):
            shutil.rmtree(draft, ignore_errors=True)


def _spooled(file: IO[str]) -> Iterator[str]:
    """Yield the documents of a temporary file from its beginning."""
    file.seek(0)
    return map(json.loads, file)


def _shown(source: Iterator[str], title: str, total: int | None = None) -> Iterator[str]:
    """Yield the documents. If this takes longer than a second, show on a terminal how many have been read."""
    return iter(tqdm(source, f"tokenize: {title}", total, unit=" documents", leave=False, delay=1, disable=None))


def interruptible(work: Callable[[], R]) -> R:
    """Return the result of ``work``, or raise its exception."""
    done: list[R | BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # a panic of the compiled code is no Exception
            done.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if isinstance(done[0], BaseException):
        raise done[0]
    return done[0]


def _divided(source: Iterator[str], share: float, folder: Path, stack: ExitStack) -> Parts:
    """Write each document to the temporary file of its part."""
    new = functools.partial(tempfile.TemporaryFile, "w+", encoding="utf-8", dir=folder)
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
    if part := parts.lacking():
        no_causes = SyntheticCorpus.model_fields.keys() - {"validation_share", "max_documents"}
        causes = [f"corpus.{key}" for key in type(corpus).model_fields if key not in no_causes]
        raise ValueError(
            f"The {part} part of corpus {corpus.name!r} has too few documents: expected at least {LEAST[part]} that "
            f"differ, got {', '.join(f'{parts.counts[p]} for {p}' for p in PARTS)} with corpus.validation_share="
            f"{corpus.validation_share}; change {' or '.join(causes)} (equal documents are in one part)"
        )


def _require_windows(part: Part, path: Path, header: TokenHeader, n_ctx: int, corpus: Corpus) -> None:
    if header.count <= n_ctx:
        raise ValueError(
            f"The {part} part of corpus {corpus.name!r} is smaller than one window: expected at least "
            f"{n_ctx + 1} tokens (model.n_ctx + 1), got {header.count}; lower model.n_ctx, give more text, or change "
            f"corpus.validation_share={corpus.validation_share}"
        )
    if part != "train" and (found := _with_windows(path, header, n_ctx, LEAST[part])) < LEAST[part]:
        raise ValueError(
            f"The {part} part of corpus {corpus.name!r} has too few windows: expected windows of at least "
            f"{LEAST[part]} documents, got {found} (of {header.documents} documents with {header.count} tokens); lower "
            f"model.n_ctx, give more text, or change corpus.validation_share={corpus.validation_share}"
        )


def _with_windows(path: Path, header: TokenHeader, n_ctx: int, enough: int) -> int:
    """Return how many documents have a window, or any number from ``enough`` on if there are that many."""
    tokens, owners, before = np.memmap(path, dtype=header.dtype, mode="r"), set[int](), 0
    for start in range(0, len(tokens) // n_ctx * n_ctx, CHUNK * n_ctx):
        some = tokens[start : start + CHUNK * n_ctx]
        owners |= {before + document for document in documents_of(some, n_ctx).tolist()}
        before += int(np.count_nonzero(some == BOS))
        if len(owners) >= enough:
            break
    return len(owners)
