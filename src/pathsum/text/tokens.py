"""Token files: flat arrays of little-endian integers, with BOS before each document, and a JSON header next to each."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Integer

from pathsum.core.manifest import sha256
from pathsum.core.storage import read_json, write_json
from pathsum.text.bos import BOS
from pathsum.text.tokenizer import Codec

Part: TypeAlias = Literal["train", "tuning", "verdict"]
PARTS: tuple[Part, ...] = ("train", "tuning", "verdict")  # parts of a corpus; each has a token file of this name
PIECE = 1 << 18  # characters after which a long document is cut; a piece has at most 2 · PIECE
BATCH = 1 << 22  # about this many characters are encoded together, in parallel
MAKE_AGAIN = "delete data/tokens and run `make repro`, which makes it again"


@dataclass(frozen=True)
class TokenHeader:
    """The header of a token file, written next to it as ``<name>.json``."""

    dtype: str  # "<u2" or "<u4"
    count: int  # tokens, with one BOS per document
    documents: int
    text_bytes: int  # UTF-8 bytes of the text
    d_vocab: int
    tokenizer_hash: str  # sha256 of the tokenizer's JSON
    corpus_hash: str  # sha256 over the sha256 of every document of this file, in order
    token_hash: str  # sha256 of the token file's bytes


@dataclass(frozen=True)
class TokenFile:
    """An open token file. Its tokens stay on disk until they are accessed."""

    path: Path
    header: TokenHeader
    tokens: Integer[np.ndarray, "token"]


def write_tokens(path: Path, documents: Iterable[str], codec: Codec) -> TokenHeader:
    """Write the documents as tokens to ``path``, each after a BOS, and then the header. Documents are streamed."""
    dtype = np.dtype("<u2" if len(codec.words) <= 1 << 16 else "<u4")
    corpus, written = hashlib.sha256(), hashlib.sha256()
    count = n_documents = text_bytes = 0
    with path.open("wb") as f:
        for batch in _batches(documents):
            for (text, digest), ids in zip(batch, codec.encode([text for text, _ in batch]), strict=True):
                corpus.update(digest)
                n_documents += bool(digest)
                row = np.array([*([BOS] if digest else []), *ids], dtype).tobytes()
                text_bytes, count = text_bytes + len(text.encode()), count + len(row) // dtype.itemsize
                written.update(row)
                f.write(row)
    header = TokenHeader(
        dtype=dtype.str,
        count=count,
        documents=n_documents,
        text_bytes=text_bytes,
        d_vocab=len(codec.words),
        tokenizer_hash=codec.hash,
        corpus_hash=corpus.hexdigest(),
        token_hash=written.hexdigest(),
    )
    write_json(header_path(path), header)
    return header


def read_tokens(path: Path) -> TokenFile:
    """Open a token file as a memory map, after a check of its hash. Raises FileNotFoundError if the file or its header
    is missing, and ValueError if they do not match or if there are no tokens."""
    for needed in (path, header_path(path)):
        if not needed.is_file():
            raise FileNotFoundError(f"{needed}: expected a token file and its header, got no such file; {MAKE_AGAIN}")
    header = read_json(header_path(path), TokenHeader)
    if not header.count or header.dtype not in ("<u2", "<u4") or sha256(path) != header.token_hash:
        raise ValueError(f"{path}: expected the tokens that its header describes, got others; {MAKE_AGAIN}")
    return TokenFile(path, header, np.memmap(path, dtype=header.dtype, mode="r"))


def header_path(path: Path) -> Path:
    return path.with_suffix(".json")


def pieces(document: str) -> list[str]:
    """Cut a document into pieces of at most 2 · ``PIECE`` characters, so that encoding takes little memory."""
    cuts, start = [0], 0
    boundary = re.compile(r"(?<=\w)(?=[ \n])")
    while len(document) - start > PIECE:
        found = boundary.search(document, start + PIECE, start + 2 * PIECE)
        if found is None and len(document) - start <= 2 * PIECE:
            break
        start = found.start() if found else start + 2 * PIECE
        cuts.append(start)
    return [document[a:b] for a, b in zip(cuts, [*cuts[1:], len(document)], strict=True)]


def _batches(documents: Iterable[str]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield batches of about BATCH characters: pieces of documents, the first of each with the document's sha256."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for document in documents:
        digest = hashlib.sha256(document.encode()).digest()
        for piece in pieces(document):
            batch.append((piece, digest))
            size, digest = size + len(piece), b""
            if size >= BATCH:
                yield batch
                batch, size = [], 0
    yield batch
