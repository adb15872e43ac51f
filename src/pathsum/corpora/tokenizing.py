"""From a corpus to tokens: read each document once, keep it on disk, learn the tokenizer, write each part's tokens."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from pathsum.config import CorpusConfig, TokenizerConfig
from pathsum.corpora.corpus import documents, split
from pathsum.data.tokenizer import tokenizer_hash, train_tokenizer
from pathsum.data.tokens import PARTS, Part, TokenHeader, write_tokens

LENGTH = struct.Struct("<Q")  # of a spooled document, in bytes
LEAST: dict[Part, int] = {"train": 1, "tuning": 1, "verdict": 2}  # documents; intervals resample those of the last


def tokenize_corpus(corpus: CorpusConfig, config: TokenizerConfig, n_ctx: int, folder: Path) -> dict[Part, TokenHeader]:
    """Write ``tokenizer.json`` and a token file (``train.bin``, ``tuning.bin``, ``verdict.bin``) with its header for
    each part of the corpus into ``folder``; return the headers.

    The corpus is read once, into temporary files in ``folder`` as large as its text, so memory does not grow with it
    and a corpus that is generated or streamed is the same for the tokenizer and for the token files. Raises ValueError
    where a part has too few documents or less than a window of ``n_ctx`` tokens, and whatever ``documents`` and
    ``train_tokenizer`` raise; earlier results in ``folder`` are touched only after all of them could.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        spools = {part: stack.enter_context(_Spool(folder)) for part in PARTS}
        for document in documents(corpus):
            spools[split(document, corpus.validation_share)].add(document)
        _require_documents(corpus, {part: len(spool) for part, spool in spools.items()})
        tokenizer = train_tokenizer(spools["train"], config)
        name = tokenizer_hash(tokenizer)
        with tempfile.TemporaryDirectory(dir=folder) as drafts:
            draft = Path(drafts)
            tokenizer.save(str(draft / "tokenizer.json"))
            headers = {p: write_tokens(draft / f"{p}.bin", spool, tokenizer, name) for p, spool in spools.items()}
            for part, header in headers.items():
                _require_window(part, header, n_ctx, corpus)
            for part in PARTS:
                (folder / f"{part}.json").unlink(missing_ok=True)
            tokens, last = ([f"{part}.{kind}" for part in PARTS] for kind in ("bin", "json"))
            for done in (
                "tokenizer.json",
                *tokens,
                *last,
            ):  # headers last: a killed run leaves nothing that looks whole
                (draft / done).replace(folder / done)
    return headers


def _require_documents(corpus: CorpusConfig, counts: Mapping[Part, int]) -> None:
    short = [part for part in PARTS if counts[part] < LEAST[part]]
    if not short:
        return
    part = short[0]
    raise ValueError(
        f"The {part} part of corpus {corpus.name!r} has too few documents: expected at least {LEAST[part]}, got "
        + ", ".join(f"{counts[p]} for {p}" for p in PARTS)
        + f" with corpus.validation_share={corpus.validation_share}; "
        + (
            "change corpus.validation_share, or give more documents (corpus.separator splits files)"
            if any(counts.values())
            else "give a corpus with documents"
        )
    )


def _require_window(part: Part, header: TokenHeader, n_ctx: int, corpus: CorpusConfig) -> None:
    if header.count <= n_ctx:
        raise ValueError(
            f"The {part} part of corpus {corpus.name!r} is smaller than one window: expected at least "
            f"{n_ctx + 1} tokens (model.n_ctx + 1), got {header.count}; lower model.n_ctx, give more text, or change "
            f"corpus.validation_share={corpus.validation_share}"
        )


class _Spool:
    """Documents on disk, for reading again; gone when closed or killed."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._count = 0

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def add(self, document: str) -> None:
        data = document.encode()
        self._file.write(LENGTH.pack(len(data)))
        self._file.write(data)
        self._count += 1

    def __iter__(self) -> Iterator[str]:
        self._file.seek(0)
        while size := self._file.read(LENGTH.size):
            yield self._file.read(LENGTH.unpack(size)[0]).decode()
