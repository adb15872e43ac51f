"""Stage `tokenize`: the corpus as a tokenizer and two token files, train and validation."""

from __future__ import annotations

from pathsum.config import TokenizerConfig, load, load_corpus
from pathsum.data.tokenizing import tokenize_corpus
from pipelines.paths import TOKENS, params, stage

if __name__ == "__main__":
    with stage():
        values = params()
        tokenize_corpus(
            load_corpus(values["corpus"]),
            load(TokenizerConfig, values["tokenizer"], "tokenizer"),
            values["model"]["n_ctx"],
            TOKENS,
        )
