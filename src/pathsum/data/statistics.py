"""What does the corpus itself say about the next token, before any model? Counted on windows as a model sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from scipy import sparse

from pathsum.data.ngrams import ngram_rows
from pathsum.data.smoothing import BigramTable, Counts, Smoothing, add_one, best_smoothing
from pathsum.data.tokens import TokenFile
from pathsum.data.windows import Windows
from pathsum.records import CorpusSummary, NGramRow

CHUNK = 1 << 22  # tokens counted at a time
DENSE_VOCAB = 8192  # largest vocabulary whose bigram counts are a dense table (512 MiB)


@dataclass(frozen=True)
class CorpusStatistics:
    """Counts over the training windows: a token is counted where it is predicted, a bigram as (input, target)."""

    unigram_counts: Int64[np.ndarray, "out"]
    bigram_counts: Counts  # [token, next]; dense up to DENSE_VOCAB, else scipy.sparse.csr_array
    smoothing: Smoothing  # the best on the held-out windows

    @property
    def d_vocab(self) -> int:
        return len(self.unigram_counts)

    def save(self, path: Path) -> None:
        """Writes an .npz without pickles; atomic, and identical statistics give identical bytes."""
        if sparse.issparse(self.bigram_counts):
            c = self.bigram_counts
            table = {"data": c.data, "indices": c.indices, "indptr": c.indptr}
        else:
            table = {"dense": self.bigram_counts}
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".draft")
        with draft.open("wb") as f:
            np.savez(
                f,
                allow_pickle=False,
                unigram_counts=self.unigram_counts,
                smoothing_kind=np.array(self.smoothing.kind),
                smoothing_constant=np.array(self.smoothing.constant),
                **table,
            )
        draft.replace(path)

    @classmethod
    def load(cls, path: Path) -> CorpusStatistics:
        """Raises FileNotFoundError where there is no file, ValueError where it is not corpus statistics."""
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected corpus statistics, got no file; run the tokenize stage again")
        try:
            with np.load(path, allow_pickle=False) as f:
                unigram = f["unigram_counts"]
                dense = "dense" in f
                bigram = f["dense"] if dense else sparse.csr_array((f["data"], f["indices"], f["indptr"]), (len(unigram),) * 2)
                smoothing = Smoothing(str(f["smoothing_kind"]), float(f["smoothing_constant"]))
        except (ValueError, KeyError, OSError, EOFError, AttributeError, TypeError) as error:
            raise ValueError(f"{path}: expected corpus statistics, got something else ({error}); make it again") from error
        return cls(unigram, bigram, smoothing)


def bigram_log_probs(
    statistics: CorpusStatistics, sources: Int64[np.ndarray, "source"]
) -> Float[np.ndarray, "source out"]:
    """log P(out | source) in nats, for every out, under the best smoothed bigram model; costs source × d_vocab."""
    table = BigramTable.of(statistics.bigram_counts, statistics.unigram_counts)
    outs = np.arange(statistics.d_vocab)
    return np.log(table.probabilities(np.asarray(sources)[:, None], outs[None, :], statistics.smoothing))


def measure(
    train: TokenFile, val: TokenFile, n_ctx: int, name: str, vocabulary: list[str], top_k: int
) -> tuple[CorpusStatistics, CorpusSummary, list[NGramRow]]:
    """What are the corpus's n-gram statistics and baselines, for windows of ``n_ctx`` tokens?

    Losses are in nats a token, on all held-out windows. ``vocabulary`` gives the printable tokens of the ``top_k``
    unigrams, bigrams and skip-trigrams. Memory: the count table and CHUNK tokens. Raises ValueError where the two files
    or the vocabulary do not belong together, or a file is smaller than a window.
    """
    _require_same(train, val, vocabulary)
    d_vocab, seen, held_out = train.header.d_vocab, Windows(train.tokens, n_ctx), Windows(val.tokens, n_ctx)
    counts = pair_counts(seen, d_vocab)
    unigram = np.asarray(counts.sum(axis=0)).ravel()
    bigram: Counts = counts.toarray() if d_vocab <= DENSE_VOCAB else counts
    held_out_counts = pair_counts(held_out, d_vocab)
    held_out_unigram = np.asarray(held_out_counts.sum(axis=0)).ravel()
    smoothing, bigram_loss = best_smoothing(BigramTable.of(bigram, unigram), held_out_counts)
    statistics = CorpusStatistics(unigram, bigram, smoothing)
    summary = CorpusSummary(
        name=name,
        corpus_hash=train.header.corpus_hash,
        tokenizer_hash=train.header.tokenizer_hash,
        d_vocab=d_vocab,
        n_ctx=n_ctx,
        train_documents=train.header.documents,
        val_documents=val.header.documents,
        train_tokens=train.header.count,
        val_tokens=val.header.count,
        train_bytes=train.header.text_bytes,
        val_bytes=val.header.text_bytes,
        unigram_entropy_nats=entropy(unigram),
        unigram_loss_nats=float(-(held_out_unigram * np.log(add_one(unigram))).sum() / held_out_unigram.sum()),
        bigram_loss_nats=bigram_loss,
        bigram_smoothing=str(smoothing),
        repeated_share=repeated_share(held_out, d_vocab),
    )
    return statistics, summary, ngram_rows(seen, unigram, counts, vocabulary, top_k)


def pair_counts(windows: Windows, d_vocab: int) -> sparse.csr_array:
    """How often does each token (row) stand before each token (column) that is predicted? The first row is BOS's."""
    total = sparse.csr_array((d_vocab, d_vocab), dtype=np.int64)
    for rows in chunks(windows):
        keys = (rows[:, :-1] * d_vocab + rows[:, 1:]).ravel()
        if d_vocab**2 <= CHUNK:
            counted = np.bincount(keys, minlength=d_vocab**2)
            found = np.flatnonzero(counted)
            number = counted[found]
        else:
            found, number = np.unique(keys, return_counts=True)
        total = total + sparse.csr_array((number, (found // d_vocab, found % d_vocab)), shape=total.shape, dtype=np.int64)
    return total


def chunks(windows: Windows) -> Iterator[Int64[np.ndarray, "batch pos"]]:
    """All windows in order, about CHUNK tokens at a time."""
    for part in torch.arange(len(windows)).split(max(1, CHUNK // windows.n_ctx)):
        yield windows.batch(part).numpy()


def entropy(counts: Int64[np.ndarray, "out"]) -> float:
    """−Σ p log p of the distribution that the counts are, in nats."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def repeated_share(windows: Windows, d_vocab: int) -> float:
    """Which share of the tokens stood before in the same window, after the same two tokens? 0..1.

    What copying from context can gain at most, roughly: a corpus with little of it gives induction heads little to do.
    """
    repeated = 0
    for rows in chunks(windows):
        trigrams = (rows[:, :-2] * d_vocab + rows[:, 1:-1]) * d_vocab + rows[:, 2:]
        trigrams.sort(axis=1)
        repeated += int((trigrams[:, 1:] == trigrams[:, :-1]).sum())
    return repeated / (len(windows) * windows.n_ctx)


def _require_same(train: TokenFile, val: TokenFile, vocabulary: list[str]) -> None:
    if train.header.tokenizer_hash != val.header.tokenizer_hash or train.header.d_vocab != len(vocabulary):
        raise ValueError(
            f"{train.path} and {val.path}: expected one tokenizer, got {train.header.tokenizer_hash[:12]} with "
            f"{train.header.d_vocab} tokens, {val.header.tokenizer_hash[:12]} with {val.header.d_vocab} and a vocabulary "
            f"of {len(vocabulary)}; run the tokenize stage again"
        )
