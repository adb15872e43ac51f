"""Lead models to induction on text where it hardly pays: `python -m experiments.dose_response --text english.txt`

Two-layer models with the recipe of the profile `prose`, but smaller, train on one text with several weights of repeats
in the loss (docs/framework.md §6.7), all else equal. The weight is held for the first third of training and has fallen
to 1 by the end of the second; the last third has the plain loss. For each model: the onset, of the evaluations up to
the highest prefix matching; prefix matching at the end of the first third and of training; the held-out loss; and what
cutting the circuit costs on verdict documents. That is little if a head that was led to is idle. Finished models are
kept in .scratch/dose_response, so the same command continues. Writes dose_response.csv.
"""

from __future__ import annotations

import argparse
import functools
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from experiments.runs import HERE
from pathsum.config import CellConfig, TokenizerConfig, load
from pathsum.core.storage import read_lines
from pathsum.corpora.corpus import load_corpus
from pathsum.corpora.tokenizing import tokenize_corpus
from pathsum.data.repeats import completes_a_repeat
from pathsum.data.tokens import read_tokens
from pathsum.data.windows import HeldOut, Windows
from pathsum.extraction.edges import Edge, cut
from pathsum.interventions.run import Run
from pathsum.model.checkpoint import load_checkpoint
from pathsum.model.transformer import Transformer
from pathsum.probes.evaluation import Evaluation
from pathsum.records.doses import DoseRow
from pathsum.records.roles import HeadRoles
from pathsum.statistics.phase_change import onset
from pathsum.training.loop import train
from pathsum.training.store import CHECKPOINTS, LOG, fingerprint
from pipelines.compose import compose
from pipelines.paths import params, training_code

SCRATCH = Path(".scratch/dose_response")
SMALLER = ("model.d_model=128", "model.d_head=32", "model.n_ctx=256", "train.batch=8", "sweep.n_heads=[4]")
EVALUATIONS = 30  # linearly spaced, so that the thirds of training end at some
JUDGED, CHUNK = 256, 16  # windows on which the circuit is cut, and windows in memory at the same time


def cost(model: Transformer, windows: Int[Tensor, "batch pos"], edge: Edge) -> tuple[float, float]:
    """Return the rise of the loss, in nats per token, when ``edge`` reads the writes of another window: on tokens that
    complete a repeat, and on all others."""
    rise, again = [], []
    for part in windows.split(CHUNK):
        clean = Run(model, part)
        rise.append(cut(clean, [edge], "resample").losses() - clean.losses())
        again.append(completes_a_repeat(part))
    nats, repeats = torch.cat(rise).double(), torch.cat(again)
    return nats[repeats].mean().item(), nats[~repeats].mean().item()


def measured(cell: CellConfig, folder: Path) -> DoseRow:
    """Train the model on the tokens in ``folder``, unless it is there already, and return its row."""
    torch.set_num_threads(1)
    text, tuning, verdict = (read_tokens(folder / f"{part}.bin") for part in ("train", "tuning", "verdict"))
    header, n_ctx, shown = text.header, cell.model.n_ctx, cell.train.eval_windows
    windows = Windows(text.tokens, n_ctx), HeldOut.of(tuning.tokens, n_ctx, shown, shown).windows
    run = folder / fingerprint(cell, header.token_hash, training_code())
    title = f"weight {cell.train.repeat_weight:g}, seed {cell.seed}"
    train(cell, header.d_vocab, header.tokenizer_hash, windows, run, lambda _: None, title)
    log = read_lines(run / LOG, Evaluation)
    matching = [max(max(heads) for heads in evaluation.prefix_matching) for evaluation in log]
    led = next(i for i, evaluation in enumerate(log) if evaluation.tokens_seen >= cell.train.tokens / 3)
    roles = HeadRoles.of(log)
    assert roles.previous is not None
    later = log[-1].prefix_matching[1]
    model = load_checkpoint(max((run / CHECKPOINTS).iterdir()), header.tokenizer_hash)
    judged = HeldOut.of(verdict.tokens, n_ctx, JUDGED, JUDGED).batch()[:, :-1]
    on_repeats, elsewhere = cost(model, judged, Edge("K", roles.previous, (1, later.index(max(later)))))
    until = 1 + max(1, matching.index(max(matching)))  # matching falls again after the release
    found = onset([e.tokens_seen for e in log[:until]], matching[:until])
    return DoseRow(
        weight=cell.train.repeat_weight,
        seed=cell.seed,
        tokens=log[-1].tokens_seen,
        onset_tokens=found.tokens_seen if found else None,
        matching_led=round(matching[led], 4),
        matching=round(matching[-1], 4),
        previous_token=round(max(log[-1].previous_token[0]), 4),
        loss_nats=round(log[-1].val_loss_nats, 4),
        cut_on_repeats_nats=round(on_repeats, 4),
        cut_elsewhere_nats=round(elsewhere, 4),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", nargs="+", required=True, help="paths or globs of the text")
    parser.add_argument("--separator", default="", help="string between documents of a file, as in corpus.separator")
    parser.add_argument("--weights", type=float, nargs="+", default=[1, 2, 3, 5, 10])
    parser.add_argument("--seeds", type=int, nargs="+", default=[8, 9, 10])
    parser.add_argument("--tokens", type=int, default=9_000_000)
    parser.add_argument("--jobs", type=int, default=2, help="models at a time, each in one thread")
    options = parser.parse_args()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    paths = f"corpus.paths=[{','.join(repr(path) for path in options.text)}]"
    compose(SCRATCH / "params.yaml", ["profile=prose", *SMALLER, paths, f"corpus.separator='{options.separator}'"])
    values = params(SCRATCH)
    cell = next(cell for name, cell in values["cells"].items() if name.startswith("L2"))
    if not (SCRATCH / "verdict.json").exists():
        tokenize_corpus(
            load_corpus(values["corpus"]),
            load(TokenizerConfig, values["tokenizer"], "tokenizer"),
            cell["model"]["n_ctx"],
            SCRATCH,
        )
    length = {"tokens": options.tokens, "n_linear_evals": EVALUATIONS}
    cells = [
        load(
            CellConfig,
            {
                "seed": seed,
                "model": cell["model"],
                "train": {
                    **cell["train"],
                    **length,
                    "repeat_weight": weight,
                    "repeat_tokens": options.tokens * 2 // 3,
                },
            },
            "cell",
        )
        for seed in options.seeds
        for weight in options.weights
    ]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        rows = list(pool.map(functools.partial(measured, folder=SCRATCH), cells))
    found = pd.DataFrame([vars(row) for row in rows]).astype({"onset_tokens": "Int64"}).sort_values(["weight", "seed"])
    found.to_csv(HERE / "dose_response.csv", index=False, lineterminator="\n")
    print(found.to_string(index=False), file=sys.stderr)


if __name__ == "__main__":
    main()
