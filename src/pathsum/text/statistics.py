"""Corpus statistics: n-grams, entropies and the bigram baseline, counted on windows of a model's length."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from scipy import sparse
from torch import Tensor

from pathsum.config import ExtractConfig
from pathsum.core.storage import write_whole
from pathsum.records.corpus import CorpusSummary, NGramRow
from pathsum.text.frequent import ngram_rows
from pathsum.text.offer import offer
from pathsum.text.smoothing import BigramTable, Counts, Smoothing, add_one, best_smoothing
from pathsum.text.tokenizer import Codec, load_tokenizer
from pathsum.text.tokens import PARTS, read_tokens
from pathsum.text.windows import HeldOut, Windows

UNIGRAM, SPARSE = "unigram_counts", ("data", "indices", "indptr")  # names of arrays in the file
CHUNK = 1 << 22  # tokens counted at a time
OFFERED = 8, 256  # tuning windows, per document and in all, in which repeats are measured
DENSE_VOCAB = 8192  # largest vocabulary whose bigram counts are a dense table (512 MiB)


@dataclass(frozen=True)
class BigramRows:
    """Bigram counts that return dense tensors when rows are sliced, whether they are stored dense or sparse."""

    counts: Counts

    def __getitem__(self, rows: slice, /) -> Int64[Tensor, "source out"]:
        block = self.counts[rows]
        return torch.from_numpy(block.toarray() if sparse.issparse(block) else block)


@dataclass(frozen=True)
class CorpusStatistics:
    """Counts over the training windows: of each token as a target, and of each bigram as (input, target)."""

    unigram_counts: Int64[np.ndarray, "out"]
    bigram_counts: Counts  # [token, next]; dense up to DENSE_VOCAB, else scipy.sparse.csr_array
    smoothing: Smoothing  # with the lowest loss on tuning documents

    def losses(self, windows: Int64[Tensor, "batch window"]) -> Float[Tensor, "batch pos"]:
        """Return the loss of the smoothed bigram model on every token of ``windows`` except the first, in nats."""
        table, pairs = BigramTable.of(self.bigram_counts, self.unigram_counts), windows.numpy()
        likely = table.probabilities(pairs[:, :-1].ravel(), pairs[:, 1:].ravel(), self.smoothing)
        return torch.from_numpy(-np.log(likely).reshape(len(pairs), -1))

    def save(self, path: Path) -> None:
        """Write the statistics as a safetensors file, atomically. Equal statistics give equal bytes."""
        c = self.bigram_counts
        table = {name: getattr(c, name) for name in SPARSE} if sparse.issparse(c) else {"dense": c}
        arrays = {name: np.ascontiguousarray(array) for name, array in ({UNIGRAM: self.unigram_counts} | table).items()}
        smoothing = json.dumps([self.smoothing.kind, self.smoothing.constant])
        write_whole(path, save(arrays, metadata={"smoothing": smoothing}))

    @classmethod
    def load(cls, path: Path) -> CorpusStatistics:
        """Read the file that ``save`` wrote. Raises ValueError if it holds anything else."""
        try:
            with safe_open(path, framework="numpy") as file:
                unigram = file.get_tensor(UNIGRAM)
                if "dense" in file.keys():  # noqa: SIM118 (not a mapping)
                    bigram = file.get_tensor("dense")
                else:
                    bigram = sparse.csr_array(tuple(map(file.get_tensor, SPARSE)), (len(unigram),) * 2)
                kind, constant = json.loads(file.metadata()["smoothing"])
            if sparse.issparse(bigram):
                bigram.check_format()  # a sum with indices out of range would write outside the memory of the result
            if not np.array_equal(np.asarray(bigram.sum(axis=0)).ravel(), unigram):
                raise ValueError("bigram counts that do not add up to the unigram counts")
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            said = f"{path}: expected corpus statistics, got something else ({error}); run the statistics stage again"
            raise ValueError(said) from error
        return cls(unigram, bigram, Smoothing(kind, constant))


def corpus_statistics(
    folder: Path, name: str, n_ctx: int, config: ExtractConfig, repeat_weight: float = 1.0, codec: Codec | None = None
) -> tuple[CorpusSummary, list[NGramRow], CorpusStatistics]:
    """Return the summary, the frequent n-grams and the statistics of the tokenized corpus ``name`` in ``folder``.

    Windows have ``n_ctx`` tokens; ``repeat_weight`` is that of the training loss; ``codec`` is by default that of the
    tokenizer in ``folder``. Raises FileNotFoundError if
    ``tokenize_corpus`` has not run, and ValueError if its files do not belong together or are smaller than a window."""
    codec = codec or Codec.own(load_tokenizer(folder / "tokenizer.json"))
    train, tuning, verdict = files = [read_tokens(folder / f"{part}.bin") for part in PARTS]
    for file in files:
        if file.header.tokenizer_hash != codec.hash:
            raise ValueError(f"{file.path}: expected tokens of the tokenizer in its folder; run dvc repro -f tokenize")
    d_vocab, seen = train.header.d_vocab, Windows(train.tokens, n_ctx)
    held_out = HeldOut.of(verdict.tokens, n_ctx, config.windows_per_document, config.held_out_windows)
    counts = pair_counts(seen, d_vocab)
    unigram = np.asarray(counts.sum(axis=0)).ravel()
    bigram: Counts = counts.toarray() if d_vocab <= DENSE_VOCAB else counts
    held_out_unigram = np.asarray(pair_counts(held_out.windows, d_vocab).sum(axis=0)).ravel()
    smoothing = best_smoothing(BigramTable.of(bigram, unigram), pair_counts(Windows(tuning.tokens, n_ctx), d_vocab))
    statistics = CorpusStatistics(unigram, bigram, smoothing)
    chosen = HeldOut.of(tuning.tokens, n_ctx, *OFFERED).batch()
    offered = offer(chosen.numpy(), np.exp(-statistics.losses(chosen).numpy()), repeat_weight)
    documents = sum(file.header.documents for file in files)
    if (pieces := folder / "pieces.json").is_file():  # the documents were cut
        documents = json.loads(pieces.read_text(encoding="utf-8"))["documents"]
    summary = CorpusSummary(
        name=name,
        corpus_hash=train.header.corpus_hash,
        tokenizer_hash=train.header.tokenizer_hash,
        d_vocab=d_vocab,
        n_ctx=n_ctx,
        source_documents=documents,
        **{f"{part}_documents": file.header.documents for part, file in zip(PARTS, files, strict=True)},
        **{f"{part}_tokens": file.header.count for part, file in zip(PARTS, files, strict=True)},
        **{f"{part}_bytes": file.header.text_bytes for part, file in zip(PARTS, files, strict=True)},
        judged_documents=len(held_out.documents.unique()),
        judged_windows=len(held_out.windows),
        largest_document=held_out.documents.bincount().max().item() / len(held_out.windows),
        unigram_entropy_nats=entropy(unigram),
        unigram_loss_nats=float(-(held_out_unigram * np.log(add_one(unigram))).sum() / held_out_unigram.sum()),
        bigram_loss_nats=statistics.losses(held_out.batch()).mean().item(),
        bigram_smoothing=str(smoothing),
        repeated_share=repeated_share(held_out.windows, d_vocab),
        repeated_pairs=offered.repeated,
        repeat_reliability=offered.reliability,
        induction_saving_nats=offered.saving_nats,
    )
    return summary, ngram_rows(seen, unigram, counts, [*codec.words], config.top_k), statistics


def pair_counts(windows: Windows, d_vocab: int) -> sparse.csr_array:
    """Count how often each token (column) follows each token (row) within a window."""
    total = sparse.csr_array((d_vocab, d_vocab), dtype=np.int64)
    for rows in chunks(windows):
        keys = (rows[:, :-1] * d_vocab + rows[:, 1:]).ravel()
        if d_vocab**2 <= CHUNK:
            counted = np.bincount(keys, minlength=d_vocab**2)
            found = np.flatnonzero(counted)
            number = counted[found]
        else:
            found, number = np.unique(keys, return_counts=True)
        total = total + sparse.csr_array(
            (number, (found // d_vocab, found % d_vocab)), shape=total.shape, dtype=np.int64
        )
    return total


def chunks(windows: Windows) -> Iterator[Int64[np.ndarray, "batch pos"]]:
    """Yield all windows in order, each as BOS and n_ctx tokens, in batches of about CHUNK tokens."""
    for part in torch.arange(len(windows)).split(max(1, CHUNK // windows.n_ctx)):
        yield windows.batch(part).numpy()


def entropy(counts: Int64[np.ndarray, "out"]) -> float:
    """Return the entropy −Σ p log p of the distribution p = counts / Σ counts, in nats; 0 if all counts are 0."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def repeated_share(windows: Windows, d_vocab: int) -> float:
    """Return the share of tokens (0 to 1) that complete a trigram that has occurred earlier in the same window."""
    repeated = 0
    for rows in chunks(windows):
        trigrams = (rows[:, :-2] * d_vocab + rows[:, 1:-1]) * d_vocab + rows[:, 2:]
        trigrams.sort(axis=1)
        repeated += int((trigrams[:, 1:] == trigrams[:, :-1]).sum())
    return repeated / (len(windows) * windows.n_ctx)
