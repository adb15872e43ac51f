"""Stage `tokenize`: train a tokenizer on the corpus, and write token files for training, tuning and verdicts."""

import sys
import warnings
from pathlib import Path
from typing import Any

if __name__ == "tokenize":  # imported in place of the standard library's module of this name
    sys.exit("error: run scripts as modules from the repository's root, for example `python -m pipelines.repro`")

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from pathsum.config import SyntheticCorpus, TokenizerConfig, load
from pathsum.core.storage import read_value, write_json
from pathsum.text.corpus import load_corpus
from pathsum.text.synthetic import synthetic_corpus
from pathsum.text.tokenizing import CUT, tokenize_corpus
from pipelines import grid
from pipelines.paths import THREADS, TOKENS, params, section, stage


def tokenize(values: dict[str, Any], folder: Path) -> None:
    """Write the tokenizer and the token files of one text to ``folder``."""
    corpus = load_corpus(section(values, "corpus"))
    config = load(TokenizerConfig, section(values, "tokenizer"), "tokenizer")
    with warnings.catch_warnings(record=True, action="always") as warned:
        headers = tokenize_corpus(corpus, config, section(values, "model", "n_ctx"), folder)
    notes = [str(warning.message) for warning in warned]
    if (folder / CUT).is_file():
        found, pieces = read_value(folder / CUT)["documents"], [header.documents for header in headers.values()]
        notes.append(
            f"got {found} document{'s' * (found != 1)}, too few for tuning and verdicts; cut into {sum(pieces)} pieces "
            f"({pieces[1]} for tuning, {pieces[2]} for verdicts), so held-out losses are lower than on new documents, "
            "and intervals too narrow (docs/your-text.md)"
        )
    sys.stderr.writelines(f"pathsum: corpus {corpus.name}: {note}\n" for note in notes)
    if isinstance(corpus, SyntheticCorpus):
        write_json(folder / "truth.json", synthetic_corpus(corpus)[1])


if __name__ == "__main__":
    with stage(THREADS, arguments=False):
        (name, first), *others = grid.texts(params()).items()
        with ProcessPoolExecutor(max(1, len(others)), multiprocessing.get_context("spawn")) as beside:
            made = beside.map(tokenize, [values for _, values in others], [TOKENS / other for other, _ in others])
            tokenize(first, TOKENS / name)
            list(made)
