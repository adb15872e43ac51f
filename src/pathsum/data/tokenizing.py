"""From a corpus to tokens: reads every document once, keeps it on disk, learns the tokenizer, writes both splits."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pathsum.config import CorpusConfig, TokenizerConfig
from pathsum.data.corpus import documents, split
from pathsum.data.tokenizer import tokenizer_hash, train_tokenizer
from pathsum.data.tokens import TokenHeader, write_tokens

LENGTH = struct.Struct("<Q")  # of a spooled document, in bytes


def tokenize_corpus(
    corpus: CorpusConfig, config: TokenizerConfig, n_ctx: int, folder: Path
) -> tuple[TokenHeader, TokenHeader]:
    """Writes ``tokenizer.json``, ``train.bin`` and ``val.bin`` (with headers) into ``folder``; says what they hold.

    The corpus is read once, into temporary files in ``folder`` as large as its text, so memory does not grow with it
    and a corpus that is generated or streamed is the same for the tokenizer and for the token files. Raises ValueError
    where a split is empty or smaller than a window of ``n_ctx`` tokens, and whatever ``documents`` and
    ``train_tokenizer`` raise; earlier results in ``folder`` are touched only after all of them could.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _Spool(folder) as train, _Spool(folder) as val:
        for document in documents(corpus):
            (val if split(document, corpus.validation_share) == "val" else train).add(document)
        _require_documents(corpus, len(train), len(val))
        tokenizer = train_tokenizer(train, config)
        name = tokenizer_hash(tokenizer)
        with tempfile.TemporaryDirectory(dir=folder) as drafts:
            draft = Path(drafts)
            tokenizer.save(str(draft / "tokenizer.json"))
            headers = [
                write_tokens(draft / f"{part}.bin", spool, tokenizer, name)
                for part, spool in (("train", train), ("val", val))
            ]
            for part, header in zip(("train", "val"), headers, strict=True):
                _require_window(part, header, n_ctx, corpus)
            for old in ("train.json", "val.json"):
                (folder / old).unlink(missing_ok=True)  # headers last: a killed run leaves nothing that looks whole
            for done in ("tokenizer.json", "train.bin", "val.bin", "train.json", "val.json"):
                (draft / done).replace(folder / done)
    return headers[0], headers[1]


def _require_documents(corpus: CorpusConfig, n_train: int, n_val: int) -> None:
    if n_train and n_val:
        return
    part = "train" if not n_train else "val"
    raise ValueError(
        f"The {part} split of corpus {corpus.name!r} is empty: expected documents on both sides, got {n_train} for "
        f"training and {n_val} held out with corpus.validation_share={corpus.validation_share}; "
        + (
            "give a corpus with documents"
            if n_train + n_val == 0
            else "change corpus.validation_share, or give more documents (corpus.separator splits files)"
        )
    )


def _require_window(part: str, header: TokenHeader, n_ctx: int, corpus: CorpusConfig) -> None:
    if header.count <= n_ctx:
        raise ValueError(
            f"The {part} split of corpus {corpus.name!r} is smaller than one window: expected at least "
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
