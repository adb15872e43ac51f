"""Made-up results: a sweep where the paper holds, one where it does not, and tokens that try to break the page."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from pathsum.evaluation import Evaluation
from pathsum.records import (
    BigramRow,
    CellSummary,
    CompositionRow,
    CorpusSummary,
    DistanceRow,
    EigenvalueRow,
    ExactnessRow,
    HeadRow,
    NGramRow,
    SkipTrigramRow,
)
from pathsum.results import Cell, Results

HOSTILE = (
    "</script><script>alert(1)</script>",
    "|",
    "`code`",
    "שלום",
    "\u202eevil",
    "🙂",
    "\n",
    "<img src=http://x.example/a.png>",
    "$x_1$",
    "**bold** [link](http://x.example)",
    "\\x80",
    "x" * 10_000,
)
N_CTX, EVALS, BUDGET = 64, 12, 8_000_000


def results(
    layers: Sequence[int] = (0, 1, 2),
    heads: Sequence[int] = (2, 4),
    seeds: Sequence[int] = (0, 1),
    *,
    works: bool = True,
    missing: Sequence[str] = (),
) -> Results:
    """A sweep; ``works`` says whether the paper's claims hold in it."""
    cells = [cell(n, h, seed, works=works) for n in layers for h in (heads if n else (0,)) for seed in seeds]
    return Results(
        cells={c.name: c for c in cells},
        controls={c.name: c for c in controls(works=works)} if 2 in layers else {},
        corpus=CorpusSummary(
            "python",
            "c0ffee",
            "beef",
            1024,
            N_CTX,
            90,
            10,
            9_000_000,
            1_000_000,
            30_000_000,
            3_000_000,
            5.9,
            5.95,
            3.4,
            "interpolated, 0.9",
            0.21,
        ),
        ngrams=[NGramRow("bigram", f"{t}␟{u}", "1 2", 100 - i, -1.0) for i, (t, u) in enumerate(_pairs())],
        provenance={"revision": "0123abc", "versions": {"torch": "2.13.0", "python": "3.11"}},
        missing=tuple(missing),
    )


def controls(*, works: bool) -> list[Cell]:
    """One layer with smeared keys, which does what two layers do where the paper holds, and two untrained layers."""
    smeared, untrained = cell(2, 2, 0, works=works), cell(2, 2, 0, works=False)
    one = replace(smeared.summary, cell="smeared", n_layers=1, smeared_keys=True)
    none = replace(untrained.summary, cell="untrained", tokens_seen=0, prefix_matching=0.01)
    return [replace(smeared, summary=one), replace(untrained, summary=none, log=untrained.log[:1])]


def cell(n_layers: int, n_heads: int, seed: int, *, works: bool = True) -> Cell:
    rng = random.Random(f"{n_layers} {n_heads} {seed}")
    name = f"L{n_layers}H{n_heads}S{seed}" if n_layers else f"L0S{seed}"
    log = [_evaluation(i, n_layers, n_heads, works, rng) for i in range(EVALS)]
    heads = [_head(layer, head, works, n_layers, rng) for layer in range(n_layers) for head in range(n_heads)]
    induction = n_layers >= 2 and works
    last = log[-1]
    return Cell(
        summary=CellSummary(
            cell=name,
            n_layers=n_layers,
            n_heads=n_heads,
            d_model=32,
            d_head=8,
            n_ctx=N_CTX,
            d_vocab=1024,
            seed=seed,
            positions="relative",
            norm="none",
            smeared_keys=False,
            tokens_seen=BUDGET,
            weights_hash="ab",
            exactness=3e-14 if works else 2e-7,
            val_loss_nats=(3.42 if works else 3.9) if n_layers == 0 else 3.2 - 0.4 * n_layers,
            in_context_loss_drop_nats=last.in_context_loss_drop_nats,
            repeat_first_loss_nats=last.repeat_first_loss_nats,
            repeat_second_loss_nats=last.repeat_second_loss_nats,
            prefix_matching=max((h.prefix_matching for h in heads), default=None),
            previous_token=max((h.previous_token for h in heads if h.layer == 0), default=None),
            copying_heads=sum(h.copying_positivity > 0.5 for h in heads) if heads else None,
            onset_tokens=4_200_000 if induction else None,
            onset_low=log[5].tokens_seen if induction else None,
            onset_high=log[6].tokens_seen if induction else None,
            bigram_correlation=0.8 if works else 0.1,
            direct_path_kl_nats=0.1,
        ),
        log=log,
        heads=heads,
        eigenvalues=[
            EigenvalueRow(h.layer, h.head, rng.uniform(-0.1, 1) * h.copying_positivity, rng.uniform(-0.2, 0.2))
            for h in heads
            for _ in range(8)
        ],
        composition=_composition(n_layers, n_heads, works, rng),
        distances=[
            DistanceRow(h.layer, h.head, d, h.previous_token if d == 1 else 0.3 / (d + 2))
            for h in heads
            for d in range(N_CTX)
        ],
        skip_trigrams=[
            SkipTrigramRow(h.layer, h.head, k, t, u, t if works else u + "…", 3.0 - k / 9, 2.0, 6.0 - k)
            for h in heads
            for k, (t, u) in enumerate(_pairs())
        ],
        bigrams=[
            BigramRow(t, u, 500 - i, -rng.uniform(0, 5), -rng.uniform(0, 5)) for i, (t, u) in enumerate(_pairs() * 4)
        ],
        exactness=[ExactnessRow(e.step, e.tokens_seen, 1e-14 if works else 1e-7) for e in log],
    )


def _pairs() -> list[tuple[str, str]]:
    return list(zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1], strict=True))


def _evaluation(i: int, n_layers: int, n_heads: int, works: bool, rng: random.Random) -> Evaluation:
    grown = 1 / (1 + math.exp(-4 * (i - 5.5))) if n_layers >= 2 and works else 0.0
    drop = 0.05 + 0.5 * grown
    return Evaluation(
        step=i * 100,
        tokens_seen=BUDGET * i // (EVALS - 1),
        val_loss_nats=3.4 - 0.1 * i,
        in_context_loss_drop_nats=drop,
        repeat_first_loss_nats=8.0,
        repeat_second_loss_nats=8.0 - 5 * grown,
        prefix_matching=_scores(n_layers, n_heads, 0.02 + 0.6 * grown),
        previous_token=_scores(n_layers, n_heads, 0.3 + 0.6 * grown),
        copying=_scores(n_layers, n_heads, 0.1),
        loss_by_position_nats=[5 - drop * math.log2(p + 1) / 3 + rng.gauss(0, 0.05) for p in range(N_CTX)],
    )


def _scores(n_layers: int, n_heads: int, last: float) -> list[list[float]]:
    return [[last * (h + 1) / n_heads for h in range(n_heads)] for _ in range(n_layers)]


def _head(layer: int, head: int, works: bool, n_layers: int, rng: random.Random) -> HeadRow:
    """Head 0 of the first layer looks back by one; head 0 of the second is the induction head."""
    first = head == 0 and works and n_layers >= 2
    sign = 1 if works else -1
    return HeadRow(
        layer=layer,
        head=head,
        prefix_matching=0.7 if first and layer == 1 else (0.02 if works or n_layers >= 2 else 0.3),
        previous_token=0.9 if first and layer == 0 else 0.1,
        copying=0.4,
        bos=0.2,
        copying_positivity=sign * rng.uniform(0.6, 0.99),
        copying_top1=0.4,
        copying_top5=0.6,
        qk_matching_positivity=sign * (0.95 if head == 0 else rng.uniform(-0.3, 0.3)) if layer else None,
        previous_head=0 if layer else None,
    )


def _composition(n_layers: int, n_heads: int, works: bool, rng: random.Random) -> list[CompositionRow]:
    def row(kind: str, early: int, late: int) -> CompositionRow:
        planted = kind == "K" and early == late == 0 and works
        q = 0.001 if planted else 0.6
        return CompositionRow(kind, 0, early, 1, late, 0.45 if planted else 0.18 + rng.uniform(-0.03, 0.03), 0.18, q, q)

    if n_layers < 2:
        return []
    return [row(kind, early, late) for kind in "QKV" for early in range(n_heads) for late in range(n_heads)]
