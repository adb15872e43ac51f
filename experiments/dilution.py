"""Study the phase change on text with little repetition: `python -m experiments.dilution --text 'prose/*.txt'`

The default two-layer model, with constant learning rates after the warm-up, trains on mixtures: windows of the default
corpus (source code) and of another text. The saving of a mixture is the loss reduction, in nats per token, that an
ideal induction head could reach on it (experiments/repetition.py). A straight line is fitted to log tokens at the phase
change against log saving. It predicts the tokens for the other text alone, with the 95 % interval of one further model.
This assumes that equal savings in both texts have equal effects. The prediction is tested on models that are not part
of the fit. They train on the other text alone, or on its most repetitive windows (experiments/selected.py), whose
saving is larger. If a model has no phase change within the time limit, its tokens seen are a lower bound. Writes
dilution.json.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.measuring import THREADS
from experiments.fits import predicted
from experiments.repetition import induction_saving
from experiments.runs import Text, default_cell, save, suite, until_changed
from experiments.selected import most_repetitive
from pathsum.config import Corpus, TokenizerConfig, load
from pathsum.corpora.corpus import documents, load_corpus, split
from pathsum.corpora.text_files import TextCorpus
from pathsum.data.tokenizer import tokenizer_hash, train_tokenizer
from pathsum.data.tokens import read_tokens, write_tokens
from pathsum.data.windows import Windows
from pipelines.paths import params


@dataclass
class Mixture(Text):
    """Windows of two texts: each window of a batch comes from ``windows`` with probability ``share``, otherwise from
    ``other``."""

    other: Windows
    share: float

    @cached_property
    def present(self) -> Tensor:
        """Return 1 for each token that occurs in both texts, otherwise 0."""
        return self.windows.present(self.d_vocab) * self.other.present(self.d_vocab)

    def batch(self, seed: int, step: int, size: int) -> Tensor:
        """Sample windows with replacement. Equal arguments give equal windows."""
        generator = torch.Generator().manual_seed(1_000_003 * seed + step)
        first = int((torch.rand(size, generator=generator) < self.share).sum())
        counts = ((self.windows, first), (self.other, size - first))
        return torch.cat([w.batch(torch.randint(len(w), (n,), generator=generator)) for w, n in counts])


def tokenized(
    corpora: dict[str, Corpus], config: TokenizerConfig, n_ctx: int, folder: Path
) -> dict[tuple[str, str], Windows]:
    """Return the windows of each corpus and part, such as ("code", "train"). Write their token files to ``folder``.

    One tokenizer, trained on the training documents of all corpora, encodes them. Raises ValueError if a corpus has no
    documents for training or for tuning.
    """
    texts: dict[tuple[str, str], list[str]] = {}
    for name, corpus in corpora.items():
        for document in documents(corpus):
            texts.setdefault((name, split(document, corpus.validation_share)), []).append(document)
    if absent := [f"{n} ({p})" for n in corpora for p in ("train", "tuning") if (n, p) not in texts]:
        raise ValueError(
            f"expected training documents and held-out documents of each text, got none of: {', '.join(absent)}; "
            "provide more documents (--separator splits files)"
        )
    tokenizer = train_tokenizer([d for (_, part), text in texts.items() if part == "train" for d in text], config)
    found = {}
    for (name, part), text in texts.items():
        path = folder / f"{name}_{part}.bin"
        write_tokens(path, text, tokenizer, tokenizer_hash(tokenizer))
        found[name, part] = Windows(read_tokens(path).tokens, n_ctx)
    return found


def prediction(cells: Sequence[dict[str, Any]], at: float) -> dict[str, float]:
    """Fit log tokens at the phase change against log saving. Return the exponent, and the tokens of a model with saving
    ``at``.

    Savings are in nats per token. Both results have 95 % intervals. Models on the other text alone (share 0) are not
    part of the fit.
    """
    mixed = [c for c in cells if c["share"]]
    savings, tokens = (np.log([c[what] or c["tokens_seen"] for c in mixed]) for what in ("saving", "tokens"))
    unchanged = np.array([c["tokens"] is None for c in mixed])
    slope, more = predicted(savings, tokens, unchanged, math.log(at))
    ends = ("", "_low", "_high")
    exponent = {f"exponent{end}": round(value, 3) for end, value in zip(ends, slope, strict=True)}
    return exponent | {f"tokens{end}": round(math.exp(value)) for end, value in zip(ends, more, strict=True)}


def mixtures(
    windows: dict[tuple[str, str], Windows], saved: dict[str, float], options: argparse.Namespace, d_vocab: int
) -> Iterator[tuple[dict[str, Any], Mixture]]:
    """Yield, for each kind of model, its settings with the saving of its text, and the text."""
    code, prose = windows["code", "train"], windows["other", "train"]
    for share in options.shares:
        saving = share * saved["code"] + (1 - share) * saved["other"]
        yield {"share": share, "repetitive": 1.0, "saving": round(saving, 4)}, Mixture(code, d_vocab, prose, share)
    for part in options.repetitive:
        chosen = most_repetitive(prose, part, d_vocab)
        saving = induction_saving(prose, chosen, d_vocab)
        yield {"share": 0.0, "repetitive": part, "saving": round(saving, 4)}, Mixture(code, d_vocab, chosen, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    shares = [1, 0.7, 0.5, 0.35, 0.25, 0.125, 0]
    repetitive = "shares of the other text: train on these most repetitive windows alone"
    parser.add_argument("--text", nargs="+", required=True, help="paths or globs of the other text")
    parser.add_argument("--separator", default="", help="string between documents of a file, as in corpus.separator")
    parser.add_argument("--shares", type=float, nargs="*", default=shares, help="shares of windows of source code")
    parser.add_argument("--repetitive", type=float, nargs="*", default=[0.05, 0.1, 0.2], help=repetitive)
    parser.add_argument("--models", type=int, default=2, help="number of models for each share")
    parser.add_argument("--minutes", type=float, default=30, help="time limit for all models together")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    values, (model, train) = params(), default_cell()
    train = train.model_copy(update={"decay_share": 0.0})
    code = load_corpus(values["corpus"])
    other = TextCorpus(
        source="text",
        name="other",
        validation_share=code.validation_share,
        paths=tuple(options.text),
        separator=options.separator,
        max_documents=10**6,
    )
    config = load(TokenizerConfig, values["tokenizer"], "tokenizer")
    with tempfile.TemporaryDirectory() as folder:
        windows = tokenized({"other": other, "code": code}, config, model.n_ctx, Path(folder))
        saved = {
            n: induction_saving(windows[n, "train"], windows[n, "tuning"], config.d_vocab) for n in ("code", "other")
        }
        if min(saved.values()) <= 0:
            raise ValueError(f"expected texts in which induction can reduce the loss, got {saved} nats per token")
        kinds = [kind for kind in mixtures(windows, saved, options, config.d_vocab) for _ in range(options.models)]
        runs = [suite({**about, "seed": seed}, model, train, text) for seed, (about, text) in enumerate(kinds)]
        cells = until_changed(runs, options.minutes)
    found: dict[str, Any] = {"saving": saved, "cells": cells}
    if len({c["share"] for c in cells if c["share"] and c["tokens"]}) > 2:
        found["law"] = prediction(cells, saved["other"])
        at = {str(c["repetitive"]): c["saving"] for c in cells if c["repetitive"] < 1}
        found["chosen"] = {part: prediction(cells, saving) for part, saving in at.items()}
    save("dilution.json", found)


if __name__ == "__main__":
    main()
