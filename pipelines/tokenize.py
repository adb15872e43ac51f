"""Stage `tokenize`: train a tokenizer on the corpus, and write token files for training, tuning and verdicts."""

import sys

if __name__ == "tokenize":  # imported in place of the standard library's module of this name
    sys.exit("error: run scripts as modules from the repository's root, for example `python -m pipelines.repro`")

from pathsum.config import SyntheticCorpus, TokenizerConfig, load
from pathsum.core.storage import read_value, write_json
from pathsum.text.corpus import load_corpus
from pathsum.text.synthetic import synthetic_corpus
from pathsum.text.tokenizing import CUT, tokenize_corpus
from pipelines.paths import THREADS, TOKENS, params, section, stage

if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        values = params()
        corpus = load_corpus(section(values, "corpus"))
        headers = tokenize_corpus(
            corpus,
            load(TokenizerConfig, section(values, "tokenizer"), "tokenizer"),
            section(values, "model", "n_ctx"),
            TOKENS,
        )
        if (TOKENS / CUT).is_file():
            found, pieces = read_value(TOKENS / CUT)["documents"], [header.documents for header in headers.values()]
            print(
                f"pathsum: corpus {corpus.name}: got {found} document{'s' * (found != 1)}, too few for tuning and "
                f"verdicts; cut into {sum(pieces)} pieces ({pieces[1]} for tuning, {pieces[2]} for verdicts), so "
                "held-out losses are lower than on new documents, and intervals too narrow (docs/your-text.md)",
                file=sys.stderr,
            )
        if isinstance(corpus, SyntheticCorpus):
            write_json(TOKENS / "truth.json", synthetic_corpus(corpus)[1])
