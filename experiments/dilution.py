"""The phase change on text with little repetition: `python -m experiments.dilution --text 'prose/*.txt'`

The default two-layer cell, its rates held after the warm-up and later layers' positions slowed, learns the default
corpus diluted with another text, window by window. A straight line through log tokens at the change on log of what
induction can save in such a mixture (experiments/repetition.py) is read off where nothing but the other text is left,
with the 95 % interval of one more model there. That is an extrapolation: it takes a nat that the other text's own
repeats save for as good as one of the code's. The other text alone trains beside the mixtures, in no fit, to see
whether it does as predicted; so do those of its windows that repeat themselves most (data/curriculum.py), where there
is more to be saved and no code. A model that has not changed when time is up counts with its tokens as a lower bound.
Writes dilution.json."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pipelines  # noqa: F401 (first: threads that wait must not spin)

import numpy as np  # isort: skip
import torch  # isort: skip
from torch import Tensor  # isort: skip

from experiments.fits import predicted  # isort: skip
from experiments.onset_law import until_changed  # isort: skip
from experiments.phase_change import Text, probe, default_cell, suite  # isort: skip
from experiments.repetition import induction_saving  # isort: skip
from bench.train_step import THREADS  # isort: skip
from pathsum.config import CorpusConfig, TextCorpus, TokenizerConfig, load, load_corpus  # isort: skip
from pathsum.corpora.corpus import documents, split  # isort: skip
from pathsum.data.curriculum import most_repetitive  # isort: skip
from pathsum.data.tokenizer import tokenizer_hash, train_tokenizer  # isort: skip
from pathsum.data.tokens import read_tokens, write_tokens  # isort: skip
from pathsum.data.windows import Windows  # isort: skip
from pipelines.paths import params  # isort: skip

OUTPUT = Path(__file__).with_name("dilution.json")


@dataclass
class Mixture(Text):
    """Windows of two texts: each of a batch is from ``windows`` with probability ``share``, from ``other`` if not."""

    other: Windows
    share: float

    @classmethod
    def of_two(cls, windows: Windows, other: Windows, share: float, d_vocab: int) -> Mixture:
        """Probe with tokens that both texts hold."""
        both = windows.present(d_vocab) * other.present(d_vocab)
        return cls(windows, d_vocab, *probe(windows.n_ctx, d_vocab, both), other, share)

    def batch(self, seed: int, step: int, size: int) -> Tensor:
        """Draw windows with replacement; a pure function of its arguments."""
        generator = torch.Generator().manual_seed(1_000_003 * seed + step)
        first = int((torch.rand(size, generator=generator) < self.share).sum())
        drawn = ((self.windows, first), (self.other, size - first))
        return torch.cat([w.batch(torch.randint(len(w), (n,), generator=generator)) for w, n in drawn])


def tokenized(
    corpora: dict[str, CorpusConfig], config: TokenizerConfig, n_ctx: int, folder: Path
) -> dict[tuple[str, str], Windows]:
    """Return training and held-out windows by corpus and part, in the tokens of one tokenizer trained on all."""
    texts: dict[tuple[str, str], list[str]] = {}
    for name, corpus in corpora.items():
        for document in documents(corpus):
            texts.setdefault((name, split(document, corpus.validation_share)), []).append(document)
    if absent := [f"{n} ({p})" for n in corpora for p in ("train", "tuning") if (n, p) not in texts]:
        raise ValueError(
            f"expected documents to train on and to hold out of each text, got none of: {', '.join(absent)}; give more "
            "of them (--separator splits files)"
        )
    tokenizer = train_tokenizer([d for (_, part), text in texts.items() if part == "train" for d in text], config)
    found = {}
    for (name, part), text in texts.items():
        path = folder / f"{name}_{part}.bin"
        write_tokens(path, text, tokenizer, tokenizer_hash(tokenizer))
        found[name, part] = Windows(read_tokens(path).tokens, n_ctx)
    return found


def prediction(cells: Sequence[dict[str, Any]], at: float) -> dict[str, float]:
    """Fit the exponent of tokens by saving, and predict one more model ``at`` another saving, with 95 % intervals.
    Share 0, the other text alone, is predicted and in no fit."""
    mixed = [c for c in cells if c["share"]]
    savings, tokens = (np.log([c[what] or c["tokens_seen"] for c in mixed]) for what in ("saving", "tokens"))
    unchanged = np.array([c["tokens"] is None for c in mixed])
    slope, more = predicted(savings, tokens, unchanged, math.log(at))
    ends = ("", "_low", "_high")
    exponent = {f"exponent{end}": round(value, 3) for end, value in zip(ends, slope, strict=True)}
    return exponent | {f"tokens{end}": round(math.exp(value)) for end, value in zip(ends, more, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", nargs="+", required=True, help="paths or globs of the other text")
    parser.add_argument("--separator", default="", help="between documents of a file, as corpus.separator")
    parser.add_argument("--shares", type=float, nargs="*", default=[1, 0.7, 0.5, 0.35, 0.25, 0.125, 0], help="of code")
    parser.add_argument("--repetitive", type=float, nargs="*", default=[0.05, 0.1, 0.2], help="of the other text alone")
    parser.add_argument("--models", type=int, default=2, help="of each share")
    parser.add_argument("--minutes", type=float, default=30)
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
            raise ValueError(f"expected texts in which induction saves something, got {saved} nats per token")
        code_text, prose = windows["code", "train"], windows["other", "train"]
        kinds = [(s, 1.0, prose, s * saved["code"] + (1 - s) * saved["other"]) for s in options.shares]
        for part in options.repetitive:
            chosen = most_repetitive(prose, part, config.d_vocab)
            kinds.append((0.0, part, chosen, induction_saving(prose, chosen, config.d_vocab)))
        runs = []
        for seed, (share, part, others, saving) in enumerate(kind for kind in kinds for _ in range(options.models)):
            mixture = Mixture.of_two(code_text, others, share, config.d_vocab)
            about = {"share": share, "repetitive": part, "seed": seed, "saving": round(saving, 4)}
            runs.append((about, suite(f"{share:.3f} {part:.2f}", seed, model, train, mixture, math.inf)))
        until_changed([run for _, run in runs], options.minutes)
    cells = [
        about | {"tokens": change.tokens if (change := r.change()) else None, "tokens_seen": r.curve[-1].tokens}
        for about, r in runs if r.curve
    ]  # fmt: skip
    found: dict[str, Any] = {"saving": saved, "cells": cells}
    if len({c["share"] for c in cells if c["share"] and c["tokens"]}) > 2:
        found["law"] = prediction(cells, saved["other"])
        at = {str(c["repetitive"]): c["saving"] for c in cells if c["repetitive"] < 1}
        found["chosen"] = {part: prediction(cells, saving) for part, saving in at.items()}
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({k: v for k, v in found.items() if k != "cells"}, indent=1))


if __name__ == "__main__":
    main()
