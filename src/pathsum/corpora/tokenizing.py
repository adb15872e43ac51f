"""Tokenize a corpus: read each document once, train the tokenizer, and write the token file of each part."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TypeVar

import psutil
from tqdm import tqdm

from pathsum.config import Corpus, SyntheticCorpus, TokenizerConfig
from pathsum.corpora.corpus import documents, split
from pathsum.data.tokenizer import tokenizer_hash, train_tokenizer
from pathsum.data.tokens import PARTS, Part, TokenHeader, write_tokens

R = TypeVar("R")
LEAST: dict[Part, int] = {"train": 1, "tuning": 1, "verdict": 2}  # documents; intervals need two to resample


def tokenize_corpus(corpus: Corpus, config: TokenizerConfig, n_ctx: int, folder: Path) -> dict[Part, TokenHeader]:
    """Write the tokenizer and the token files of a corpus to ``folder``. Return the header of each token file.

    The files are ``tokenizer.json``, and ``train.bin``, ``tuning.bin`` and ``verdict.bin`` with their headers. The text
    is read once, into temporary files in ``folder``. Memory therefore does not grow with the text, and the tokenizer
    and the token files see the same text even if it is generated or streamed.

    Raises ValueError if a part has too few documents, or no more than ``n_ctx`` tokens, and the errors of ``documents``
    and ``train_tokenizer``. Earlier results in ``folder`` are then unchanged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _remove_drafts(folder)
    with ExitStack() as stack:
        spools: dict[Part, IO[str]] = {
            part: stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", dir=folder)) for part in PARTS
        }
        counts = dict.fromkeys(PARTS, 0)
        for document in _shown(documents(corpus), "read"):
            part = split(document, corpus.validation_share)
            spools[part].write(json.dumps(document, ensure_ascii=False) + "\n")
            counts[part] += 1
        _require_documents(corpus, counts)
        tokenizer = interruptible(lambda: train_tokenizer(_spooled(spools["train"]), config))
        name = tokenizer_hash(tokenizer)
        draft = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"draft-{os.getpid()}-", dir=folder)))
        tokenizer.save(str(draft / "tokenizer.json"))
        headers = {
            part: write_tokens(draft / f"{part}.bin", _shown(_spooled(spool), part, counts[part]), tokenizer, name)
            for part, spool in spools.items()
        }
        for part, header in headers.items():
            _require_window(part, header, n_ctx, corpus)
        for part in PARTS:
            (folder / f"{part}.json").unlink(missing_ok=True)
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
    """Return the result of ``work``, or raise its exception.

    Compiled code does not react to an interrupt (Ctrl-C). ``work`` therefore runs in a daemon thread, and the main
    thread, which waits for it, can be interrupted.
    """
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


def _require_documents(corpus: Corpus, counts: Mapping[Part, int]) -> None:
    for part in PARTS:
        if counts[part] < LEAST[part]:
            no_causes = SyntheticCorpus.model_fields.keys() - {"validation_share", "max_documents"}
            causes = [f"corpus.{key}" for key in type(corpus).model_fields if key not in no_causes]
            raise ValueError(
                f"The {part} part of corpus {corpus.name!r} has too few documents: expected at least {LEAST[part]}, "
                f"got {', '.join(f'{counts[p]} for {p}' for p in PARTS)} with corpus.validation_share="
                f"{corpus.validation_share}; change {' or '.join(causes)} (equal documents are in one part)"
            )


def _require_window(part: Part, header: TokenHeader, n_ctx: int, corpus: Corpus) -> None:
    if header.count <= n_ctx:
        raise ValueError(
            f"The {part} part of corpus {corpus.name!r} is smaller than one window: expected at least "
            f"{n_ctx + 1} tokens (model.n_ctx + 1), got {header.count}; lower model.n_ctx, give more text, or change "
            f"corpus.validation_share={corpus.validation_share}"
        )
