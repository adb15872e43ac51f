"""Stage `tokenize`: train a tokenizer on the corpus, and write token files for training, tuning and verdicts."""

from __future__ import annotations

import sys

if __name__ == "tokenize":  # imported in place of the standard library's module of this name
    sys.exit("error: run scripts as modules from the repository's root, for example `python -m pipelines.repro`")

from pathsum.config import SyntheticCorpus, TokenizerConfig, load
from pathsum.core.storage import write_json
from pathsum.corpora.corpus import load_corpus
from pathsum.corpora.synthetic import synthetic_corpus
from pathsum.corpora.tokenizing import tokenize_corpus
from pipelines.paths import THREADS, TOKENS, params, section, stage

if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        values = params()
        corpus = load_corpus(section(values, "corpus"))
        tokenize_corpus(
            corpus,
            load(TokenizerConfig, section(values, "tokenizer"), "tokenizer"),
            section(values, "model", "n_ctx"),
            TOKENS,
        )
        if isinstance(corpus, SyntheticCorpus):
            write_json(TOKENS / "truth.json", synthetic_corpus(corpus)[1])
