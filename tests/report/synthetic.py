"""Made-up results: a grid in which the paper's claims hold, one in which they do not, and tokens that try to break the
page."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pathsum.records.ablations import (
    OUTSIDE,
    SAME_PAIRS,
    AblationRow,
    AttentionSinkRow,
    EdgeContrastRow,
    JointAblationRow,
)
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pathsum.records.composition import CompositionRow
from pathsum.records.corpus import BigramRow, CorpusSummary, NGramRow
from pathsum.records.doses import DoseRow
from pathsum.records.evaluation import Evaluation
from pathsum.records.formation import ChangePointRow, FormationRow, TokenLossRow
from pathsum.records.fuzzy_matching import FuzzyMatchingRow
from pathsum.records.heads import CopyingRow, DistanceRow, EigenvalueRow, HeadRow, LabelRow, SoftmaxCompetitionRow
from pathsum.records.paths import (
    ContentRow,
    ContentScoreRow,
    ExactnessRow,
    LensRow,
    MatchingRow,
    NormScaleRow,
    ScorePathRow,
    TermRow,
)
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramBugRow, SkipTrigramRow, SkipTrigramTallyRow
from pathsum.records.sufficiency import HEADS, Kept, SufficiencyRow
from pathsum.records.suffixes import (
    CONTROLS_OF,
    Condition,
    Cut,
    SuffixCutRow,
    SuffixMatchRow,
    SuffixPredictionRow,
)
from pathsum.records.summary import CellSummary
from pathsum.records.weights_side import (
    BalanceRow,
    BandwidthRow,
    DeletingRow,
    DirectionRow,
    JointCopyingRow,
    OverlapRow,
    TokenClusterRow,
    VirtualHeadRow,
)
from pathsum.report.theme import detectors
from tests.report.synthetic_explorer import explored

HOSTILE = (
    "</script><script>alert(1)</script>",
    "|' onmouseover='alert(1)' x='",
    "`code`",
    "שלום",
    "\u202eevil",
    "🙂",
    "\n",
    "<img src=http://x.example/a.png>",
    '$x_1$" onfocus="alert(1)" autofocus x="',
    "**bold** [link](javascript:alert(1))",
    "\\x80",
    "x" * 10_000,
)
METHODS = ("zero", "mean", "resample")
N_CTX, EVALS, BUDGET = 64, 12, 8_000_000


DOSES = [
    DoseRow(w, seed, 9_000_000, None if w == 1 else 1_333_333, 0.1 * w, 0.05 * w, 0.9, 3.4 + 0.01 * w, 0.02 * w, 0.001)
    for w in (1.0, 3.0)
    for seed in (8, 9, 10)
]


def results(
    layers: Sequence[int] = (0, 1, 2),
    heads: Sequence[int] = (2, 4),
    seeds: Sequence[int] = (0, 1),
    *,
    works: bool = True,
    missing: Sequence[str] = (),
) -> Results:
    """Return the results of a grid. ``works`` tells whether the paper's claims hold in it."""
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
            111,
            90,
            *(10, 11),
            9_000_000,
            *(1_000_000, 1_100_000),
            30_000_000,
            *(3_000_000, 3_300_000),
            *(9, 67, 0.12),
            5.9,
            5.95,
            3.4,
            "interpolated, 0.9",
            0.21,
        ),
        ngrams=[NGramRow("bigram", f"{t}␟{u}", "1 2", 100 - i, -1.0) for i, (t, u) in enumerate(_pairs())],
        provenance={
            "revision": "0123abc",
            "versions": {"torch": "2.13.0", "python": "3.11"},
            "extract": {"windows": 64, "repeated_windows": 32},
        },
        missing=tuple(missing),
        calibration=calibration(works=works),
        doses=DOSES,
        coverage=[CoverageRow("held-out text", "head", n, 192, 100, 94, 0.94, 0.9, 0.97, 5) for n in (12, 64)],
    )


def calibration(*, works: bool) -> list[CalibrationRow]:
    """Return calibration results. All detectors are perfect, or one is wrong and one finds nothing."""
    good = [CalibrationRow(name, 24, 12, 12, 12, 1.0, 0.76, 1.0, 1.0, 0.76, 1.0, 24, 12, 2) for name in detectors()]
    if works:
        return good
    weak = replace(good[0], hits=6, precision=0.5, precision_low=0.25, precision_high=0.75)
    blind = replace(good[1], found=0, hits=0, precision=None, precision_low=None, precision_high=None, recall=0.0)
    return [weak, blind, *good[2:]]


def controls(*, works: bool) -> list[Cell]:
    """Return three controls: smeared keys with one layer, smeared keys with two layers, and two untrained layers.

    Where the paper's claims hold, smeared keys do in one layer what two layers do, and in two layers they do so
    earlier.
    """
    smeared, untrained = cell(2, 2, 0, works=works), cell(2, 2, 0, works=False)
    one = replace(smeared.summary, cell="smeared", n_layers=1, smeared_keys=True)
    none = replace(untrained.summary, cell="untrained", tokens_seen=0, prefix_matching=0.01)
    onset = (2_000_000, smeared.log[2].tokens_seen, smeared.log[3].tokens_seen) if works else (None, None, None)
    early = dict(zip(("onset_tokens", "onset_low", "onset_high"), onset, strict=True))
    two = replace(smeared.summary, cell="smeared_two", smeared_keys=True, **early)
    return [
        replace(smeared, summary=one),
        replace(smeared, summary=two),
        replace(untrained, summary=none, log=untrained.log[:1]),
    ]


@functools.cache
def cell(n_layers: int, n_heads: int, seed: int, *, works: bool = True) -> Cell:
    """Return a made-up model. Tests share it, so they change copies."""
    rng = random.Random(f"{n_layers} {n_heads} {seed}")
    name = f"L{n_layers}H{n_heads}S{seed}" if n_layers else f"L0S{seed}"
    log = [_evaluation(i, n_layers, n_heads, works, rng) for i in range(EVALS)]
    heads = [_head(layer, head, works, n_layers, rng) for layer in range(n_layers) for head in range(n_heads)]
    induction = n_layers >= 2 and works
    last = log[-1]
    loss = (3.42 if works else 3.9) if n_layers == 0 else 3.2 - 0.4 * n_layers
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
            shuffled=False,
            repeat_weight=1.0,
            repeat_tokens=0,
            tokens_seen=BUDGET,
            weights_hash="ab",
            exactness=3e-14 if works else 2e-7,
            val_loss_nats=loss,
            bigram_excess_nats=loss - 3.4,
            in_context_loss_drop_nats=last.in_context_loss_drop_nats,
            icl_loss_drop_nats=0.8 * last.in_context_loss_drop_nats,
            icl_late_token=250,
            repeat_first_loss_nats=last.repeat_first_loss_nats,
            repeat_second_loss_nats=last.repeat_second_loss_nats,
            repeat_guessing_nats=6.9,
            repeat_top1=0.3 if induction else 0.001,
            prefix_matching=max((h.prefix_matching for h in heads), default=None),
            previous_token=max((h.previous_token for h in heads if h.layer == 0), default=None),
            copying_heads=sum(h.copying_positivity > 0.5 for h in heads) if heads else None,
            onset_tokens=4_200_000 if induction else None,
            onset_low=log[5].tokens_seen if induction else None,
            onset_high=log[6].tokens_seen if induction else None,
            bigram_correlation=0.8 if works else 0.1,
            unigram_correlation=0.4,
            beyond_unigram_low=0.35 if works else -0.35,
            beyond_unigram_high=0.45 if works else -0.25,
            bigram_partial_correlation=0.7 if works else 0.0,
            direct_path_kl_nats=0.1,
        ),
        log=log,
        tables=dict(
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
                SkipTrigramRow(
                    h.layer,
                    h.head,
                    k,
                    t,
                    u,
                    t if works else u + "…",
                    30 - k,
                    2.0,
                    0.5,
                    3.0 - k / 9,
                    2.0,
                    90,
                    30,
                    10.0,
                    3.0,
                )
                for h in heads
                for k, (t, u) in enumerate(_pairs(), start=1)
            ],
            skip_trigram_tallies=[
                SkipTrigramTallyRow(h.layer, h.head, 300, 90, 200, 120, 100, 40, 0.016, 250) for h in heads
            ],
            skip_trigram_bugs=[
                SkipTrigramBugRow(h.layer, h.head, k, t, u, u, 30, 0.04 / k, 0.01, 3.0, 2.0, 90, 2, 2.5, None)
                for h in heads
                for k, (t, u) in enumerate(_pairs()[:3], start=1)
            ],
            bigrams=[
                BigramRow(t, u, 500 - i, -rng.uniform(0, 5), -rng.uniform(0, 5))
                for i, (t, u) in enumerate(_pairs() * 4)
            ],
            exactness=[
                ExactnessRow(e.step, e.tokens_seen, 1e-14 if works else 1e-7, 1e-14 if n_layers > 1 else None)
                for e in log
            ],
            copying=[
                CopyingRow(h.layer, h.head, x, x - 0.1, x + 0.1, 0.1, 0.02, 0.01, 0.03, 64)
                for h in heads
                for x in (0.5 * h.copies,)
            ],
            **_weights_side(heads, rng),
            **_behaviour(n_layers, heads, log),
            **_formation(n_layers, log, works),
            **explored(HOSTILE, heads, log),
            ablations=_ablations(heads, works, rng),
            edge_contrasts=_edge_contrasts(n_layers, works, rng),
            terms=_terms(n_layers, n_heads, works),
            score_paths=_score_paths(heads, works, rng),
            **_suffixes(heads, works),
            fuzzy_matching=_fuzzy_matching(n_layers, works),
            **_how_induction_works(n_layers, heads, log, works),
            **_content(n_layers, heads, works, rng),
        ),
    )


def _edge_contrasts(n_layers: int, works: bool, rng: random.Random) -> list[EdgeContrastRow]:
    """Return edge contrasts: the K-edge between heads 0 has the largest effect if the claims hold, and a small one
    otherwise."""
    x, ours, rival = (1.9 if works else -1.9) + rng.uniform(0, 0.05), "L0H0 → L1H0 (K)", "L0H1 → L1H1 (Q)"
    three, none = (x, x - 0.2, x + 0.2), (0.0, -0.2, 0.2)
    methods = ("zero", "resample") if n_layers >= 2 else ()
    rivals = {OUTSIDE: rival} | {kind: f"L0H0 → L1H0 ({kind})" for kind in SAME_PAIRS}
    return [EdgeContrastRow(m, kind, ours, r, *three, *none, *three, 64) for m in methods for kind, r in rivals.items()]


def _ablations(heads: Sequence[HeadRow], works: bool, rng: random.Random) -> list[AblationRow]:
    """Return ablations in which the loss on repeats rises without heads 0 and without the K-edge between them."""

    def row(
        target: str, kind: str | None, method: str, late: HeadRow, early: HeadRow | None, lost: float
    ) -> AblationRow:
        before = (None, None) if early is None else (early.layer, early.head)
        x, y = rng.uniform(0, 0.2), lost + rng.uniform(0, 0.1)
        return AblationRow(
            target, kind, late.layer, late.head, *before, method, "recomputed", x, x - 0.1, x + 0.1, 0.0, y, y - 0.1,
            y + 0.1, 0.0, 12,
        )  # fmt: skip

    planted = "K" if works else "V"
    first = [(method, h) for h in heads for method in ("zero", "mean", "resample", "rotated")]
    pairs = [(a, b) for a in heads for b in heads if a.layer < b.layer]
    return [
        *(row("head", None, m, h, None, 2.0 * (works and h.head == 0 and m != "rotated")) for m, h in first),
        *(
            row("edge", kind, method, late, early, 2.0 * (kind == planted and early.head == late.head == 0))
            for kind in "QKV"
            for method in ("zero", "mean", "resample")
            for early, late in pairs
        ),
        *(row("pattern", None, "previous token", h, None, 0.1) for h in heads if pairs and h.layer == 0),
    ]


def _how_induction_works(
    n_layers: int, heads: Sequence[HeadRow], log: Sequence[Evaluation], works: bool
) -> dict[str, list[Any]]:
    """Return tables in which induction needs heads 0 only, and one layer prefers no key after a match, if the claims
    hold."""

    two, much, little, three = n_layers > 1, 0.45 if works else 0.1, 0.01, (0.2, 0.1, 0.3)

    def lost(at: Evaluation, ablated: str, method: str, x: float) -> JointAblationRow:
        three = (x, x - 0.05, x + 0.05)
        behind = (much - x, much - x - 0.05, much - x + 0.05)
        head = "L1H0" if ablated == "induction" else "L1H1"
        return JointAblationRow(
            at.step, at.tokens_seen, ablated, head, 1, method, 0.5, *three, *(2 * end for end in three), *behind, 4.0,
            *three, 12,
        )  # fmt: skip

    def left(kept: Kept, names: str, x: float) -> SufficiencyRow:
        three = (x, x - 0.1, x + 0.1)
        gain = (4 * x, *three) if kept in HEADS else (None,) * 4
        drop = (0.5 * x, *three) if kept in (Kept.MODEL, Kept.CIRCUIT, Kept.NO_PREVIOUS) else (None,) * 4
        return SufficiencyRow(kept.value, names, 1, 0, x, *three, *gain, *drop, 64, 64)

    effect = {"match": 0.3, "after": 8.0 if two or not works else 0.0, "before": 0.1}
    trials = (("induction", METHODS, much), ("induction", ("rotated",), little))
    tried = [(kind, m, x) for kind, ms, x in (*trials, ("others", METHODS, little)) for m in ms]
    kept = {Kept.MODEL: 1.0, Kept.CIRCUIT: 2 * much, Kept.PREFERENCE: 2 * much, Kept.KEYS: much, Kept.MINIMAL: 2 * much}
    names = {Kept.NOTHING: "", Kept.ANOTHER: "L0H1"}
    circuit = [left(k, names.get(k, "L0H0"), kept.get(k, 0.02)) for k in Kept]
    return {
        "joint_ablation": [lost(at, *trial) for at in log[4:] for trial in tried if two],
        "sufficiency": circuit if two else [],
        "softmax_competition": [
            SoftmaxCompetitionRow(h.layer, h.head, place, x, x - 0.1, x + 0.1, 0.1, -0.2, 32)
            for h in heads
            for place, x in effect.items()
        ],
        "attention_sinks": [
            AttentionSinkRow(h.layer, head, h.bos, 0.1, 0.3, 0.05, *three, *three, *three, 12)
            for h in heads
            for head in (h.head, *([None] if h.head == 0 else []))
        ],
        "norm_scales": [
            NormScaleRow(f"L{h.layer}H{h.head}", 1, *three, *three, 0.0, -0.1, 0.1, 0.0, 0.0, 12) for h in heads
        ],
    }


def _terms(n_layers: int, n_heads: int, works: bool) -> list[TermRow]:
    effect = (2.0, 1.5, 0.2 if works else 1.9)
    paths = (1, n_layers * n_heads, n_heads**2)
    return [
        TermRow(n, None, None, paths[n], x, x - 0.1, x + 0.1, x, x - 0.1, x + 0.1, x, x - 0.1, x + 0.1, 12)
        for n, x in enumerate(effect[: n_layers + 1])
    ]


def _score_paths(heads: Sequence[HeadRow], works: bool, rng: random.Random) -> list[ScorePathRow]:
    """Return score paths: heads 0 match prefixes by K-composition if the claims hold, and by Q&K otherwise."""
    names = ["direct", *(f"L0H{h.head}" for h in heads if h.layer == 0)]
    planted = ("direct" if works else names[-1], "L0H0") if heads else ()

    def row(h: HeadRow, query: str, key: str) -> ScorePathRow:
        effect = 8.0 if (query, key) == planted else rng.uniform(-0.02, 0.02)
        return ScorePathRow(h.layer, h.head, query, key, effect, 0.01, effect / 8, 1e-15)

    late = [h for h in heads if h.layer == 1]
    pairs = [*((q, k) for q in names for k in names), ("position", "position")]
    return [row(h, *pair) for h in late for pair in pairs]


def _suffixes(heads: Sequence[HeadRow], works: bool) -> dict[str, list[Any]]:
    """Return suffix matching: head 1.0 prefers matches of two tokens through two edges if the claims hold, and none
    otherwise."""
    found = 0.4 if works else 0.0
    rivals = {Condition.TWO_ONE: found, Condition.THREE_TWO: 0.0}
    controls = {control for some in CONTROLS_OF.values() for control in some}

    def cut(name: Cut, method: str, left: float, rotation: int | None = None) -> SuffixCutRow:
        cost, share = 0.0 if name == Cut.NONE else 0.8 * works, (None,) * 3
        spared = (left - 0.02, left - 0.07, left + 0.03) if name in controls else (None,) * 3
        if found:
            share = (left / found, left / found - 0.1, left / found + 0.1)  # type: ignore[assignment]
        return SuffixCutRow(
            name, "Q←L0H0", method, rotation, 1, 0, left, left - 0.05, left + 0.05, 0.6, 0.5, 0.7, 5 * left,
            4 * left - 0.1, 6 * left + 0.1, cost, cost - 0.1, cost + 0.1, 64, 12, *share, 1.0, 0.9, 1.1,
            *spared,
        )  # fmt: skip

    without = {
        Cut.QUERY_EDGE: 0.02,
        Cut.KEY_EDGE: 0.02,
        Cut.BUT_ONE_TOKEN: 0.0,
        **dict.fromkeys(sorted(controls), found),
    }
    late = [h for h in heads if h.layer == 1]
    return {
        "suffix_matches": [
            SuffixMatchRow(h.layer, h.head, name, 0.3 + x, 0.3, x, x - 0.05, x + 0.05, 1 / 64, 64)
            for h in late
            for name, x in rivals.items()
        ],
        "suffix_predictions": [
            SuffixPredictionRow(name, 2 + x, 1.9 + x, 2.1 + x, 2.0, 1.9, 2.1, x, x - 0.1, x + 0.1, 0.5 + x, 64)
            for name, x in rivals.items()
        ],
        "suffix_cuts": [
            cut(Cut.NONE, "", found),
            *(
                cut(name, m, min(x, found), i)
                for name, x in without.items()
                for m in ("resample", "mean")
                for i in (range(4) if name in (Cut.QUERY_RANDOM, Cut.KEY_RANDOM) else [None])
            ),
        ]
        if late
        else [],
    }


def _fuzzy_matching(n_layers: int, works: bool) -> list[FuzzyMatchingRow]:
    """Return fuzzy matching: head 1.0 matches variants half as well as equal tokens, or not at all.

    The model never learns the new names.
    """

    def row(kind: str, measure: str, x: float) -> FuzzyMatchingRow:
        head = (None, None) if measure.startswith("gain") else (1, 0)
        return FuzzyMatchingRow(*head, kind, measure, x, x - 0.05, x + 0.05, 39)

    effect = {
        name: x
        for kind in ("case", "leading space")
        for name, x in ((f"equal ({kind})", 0.6), (kind, 0.3 * works), (f"unrelated ({kind})", 0.0))
    }
    scales = {"attention over unrelated": 1, "log-probability over unrelated": 4, "match score over unrelated": 7}
    gains = {"gain after a kept token": 1.0, "gain after a renamed token": 0.2, "gain of a renamed token": -1.2}
    copies = {
        "renamed copy": 1.5,
        "shuffled passage": 0.5,
        "another passage": 0.0,
        "renamed − shuffled": 1.0,
        "renamed − another": 1.5,
    }
    rows = [
        *(row(kind, "attention", 0.02 + x) for kind, x in effect.items()),
        *(row(kind, m, s * x) for m, s in scales.items() for kind, x in effect.items() if "unrelated" not in kind),
        *(row(kind, "match score", 7 * x) for kind, x in effect.items()),
        row("chance", "attention", 0.02),
        *(row(copy, m, s * x * works) for m, x in gains.items() for copy, s in copies.items()),
        *(row("exact copy", m, 0.9) for m in gains),
    ]
    return rows if n_layers > 1 else []


def _content(n_layers: int, heads: Sequence[HeadRow], works: bool, rng: random.Random) -> dict[str, list[Any]]:
    """Return tables by content: current against previous token with few second hops if the claims hold.

    Otherwise two tokens are compared, and second hops matter.
    """
    offsets, late = ("0", "1", "2", "3+", "BOS"), [h for h in heads if h.layer == 1]
    planted, effect = ("0", "1") if works else ("1", "2"), (2.0, 1.5, 0.2 if works else 1.9)

    def row(kind: str, name: str, x: float) -> ContentRow:
        own = (x, x - 0.1, x + 0.1) if kind == "hops" else (None, None, None)
        return ContentRow(
            kind, name, x, x - 0.1, x + 0.1, x, x - 0.1, x + 0.1, *own, 64 if kind == "hops" else 12, 1e-15
        )

    def pair(h: HeadRow, query: str, key: str) -> ContentScoreRow:
        nats = 8.0 if (query, key) == planted else rng.uniform(-0.02, 0.02)
        return ContentScoreRow(h.layer, h.head, query, key, nats, 0.01, nats / 8, 1e-15, nats / 8 - 0.1, nats / 8 + 0.1)

    parts = ["embedding", *(f"L{n}" for n in range(n_layers)), *(f"L{h.layer}H{h.head}" for h in heads)]
    return {
        "content": [
            *(row("hops", str(n), x) for n, x in enumerate(effect[: n_layers + 1])),
            *(row("offset", name, 0.5) for name in offsets),
        ],
        "content_scores": [pair(h, q, k) for h in late for q in offsets for k in offsets],
        "matching": [
            MatchingRow(h.layer, h.head, "direct", "L0H0", 0.9, 0.88, h.qk_matching_positivity or 0.0) for h in late
        ],
        "balance": [
            BalanceRow(reader, part, 30.0, 0.5, 0.4)
            for reader in range(n_layers + 1)
            for part in parts
            if part == "embedding" or int(part[1]) < reader
        ],
    }


def _behaviour(n_layers: int, heads: Sequence[HeadRow], log: Sequence[Evaluation]) -> dict[str, list[Any]]:
    def rows(h: HeadRow) -> list[LabelRow]:
        kinds = (*("induction: " + k for k in ("uniform", "by frequency", "natural")), "uniform, value-weighted")
        scores = {
            "previous token": h.previous_token,
            "copies the next token": h.copying,
            "attends to BOS (attention sink)": h.bos,
        }
        scores |= {"BOS, value-weighted": h.bos, "offset": h.previous_token} | dict.fromkeys(kinds, h.prefix_matching)
        return [
            LabelRow(h.layer, h.head, b, x, x - 0.02, x + 0.02, 0.01, 0.1, h.head if b == "offset" else None, x > 0.5)
            for b, x in scores.items()
        ]

    return {
        "labels": [r for h in heads for r in rows(h)],
        "lens": [LensRow(n, 6.0 - n, 5.9 - n, 6.1 - n) for n in range(n_layers + 1)],
        "token_losses": [
            TokenLossRow(e.step, e.tokens_seen, [4 - 0.1 * i, 4 - 0.02 * i * n_layers, 3.0]) for i, e in enumerate(log)
        ],
    }


def _formation(n_layers: int, log: Sequence[Evaluation], works: bool) -> dict[str, list[Any]]:
    """Return change-points: the previous-token head forms first if the claims hold, and last otherwise.

    The loss of the zero-layer model bends, with a wide interval.
    """

    def change(quantity: str, tokens: int, windows: int | None) -> ChangePointRow:
        around = (tokens - 90_000, tokens + 90_000) if windows else (None, None)
        return ChangePointRow(quantity, tokens, tokens - 200_000, tokens + 300_000, *around, windows)

    unsure = ChangePointRow("loss_nats", 4_000_000, 3_000_000, 5_000_000, None, None, 32)
    pieces = [
        change("previous_token", 3_500_000 if works else 6_000_000, 32),
        change("k_composition", 3_600_000, None),
        change("key_edge_nats", 3_900_000, 12),
        change("prefix_matching", 4_200_000, 12),
        change("loss_drop_nats", 4_300_000, 32),
    ]
    return {
        "formation": [
            FormationRow(e.step, e.tokens_seen, 0.1, None, None, 0.1, x, x - 0.02, x + 0.02, 0.05, e.val_loss_nats, 32)
            for e in log
            for x in (e.in_context_loss_drop_nats,)
        ],
        "changes": pieces if n_layers == 2 else [unsure] if n_layers == 0 else [],
    }


def _weights_side(heads: Sequence[HeadRow], rng: random.Random) -> dict[str, list[Any]]:
    pairs = [(a, b) for a in heads for b in heads if a.layer < b.layer]
    return {
        "token_clusters": [
            TokenClusterRow(h.layer, h.head, 1, 2.0, rng.gauss(1, 1), 0.1, 0.3, "␟".join(HOSTILE)) for h in heads
        ],
        "directions": [
            DirectionRow(h.layer, h.head, 1, 3.0, 0.1, "␟".join(HOSTILE), "␟".join(HOSTILE[::-1])) for h in heads
        ],
        "joint_copying": [JointCopyingRow(h.layer, "0 1", 0.6, 0.7, 0.5, 0.6, 0.3, None) for h in heads[:1]],
        "overlaps": [
            OverlapRow(kind, a.layer, a.head, b.layer, b.head, rng.uniform(0.1, 0.4), 0.25, 0.01)
            for kind in "QKV"
            for a, b in pairs
        ],
        "bandwidth": [BandwidthRow(part, None, None, 20.0, 32) for part in ("W_E", "W_U")]
        + [BandwidthRow("W_OV", h.layer, h.head, 6.5, 8) for h in heads],
        "deleting": [DeletingRow(h.layer, h.head, rng.gauss(0, 0.05), 0.01, 0.02) for h in heads if h.layer],
        "virtual_heads": [
            VirtualHeadRow(a.layer, a.head, b.layer, b.head, 0.1, 0.09, 0.5, 0.2, 2, 0.3, 0.1, rng.gauss(0, 0.02), 0.01)
            for a, b in pairs
        ],
    }


def _pairs() -> list[tuple[str, str]]:
    return list(zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1], strict=True))


def _evaluation(i: int, n_layers: int, n_heads: int, works: bool, rng: random.Random) -> Evaluation:
    grown = 1 / (1 + math.exp(-4 * (i - 5.5))) if n_layers >= 2 and works else 0.0
    drop = 0.05 + 0.5 * grown
    least = 0.02 if works or n_layers < 2 else 0.15  # without the paper's claims, the induction head is weak
    return Evaluation(
        step=i * 100,
        tokens_seen=BUDGET * i // (EVALS - 1),
        val_loss_nats=3.4 - 0.1 * i,
        in_context_loss_drop_nats=drop,
        repeat_first_loss_nats=8.0,
        repeat_second_loss_nats=8.0 - 5 * grown,
        prefix_matching=_scores(n_layers, n_heads, least + 0.6 * grown, best=n_layers - 1),
        previous_token=_scores(n_layers, n_heads, 0.3 + 0.6 * grown, best=0),
        copying=_scores(n_layers, n_heads, 0.1, best=0),
        loss_by_position_nats=[5 - drop * math.log2(p + 1) / 3 + rng.gauss(0, 0.05) for p in range(N_CTX)],
    )


def _scores(n_layers: int, n_heads: int, most: float, best: int) -> list[list[float]]:
    """Return scores that are largest for the first head of one layer, as in ``_head``, and half of that in other
    layers."""
    return [[most / (1 + h) / (1 if layer == best else 2) for h in range(n_heads)] for layer in range(n_layers)]


def _head(layer: int, head: int, works: bool, n_layers: int, rng: random.Random) -> HeadRow:
    """Return a head: head 0 of the first layer is the previous-token head, and head 0 of the second the induction
    head."""
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
        value = 0.45 if planted else 0.18 + rng.uniform(-0.03, 0.03)
        return CompositionRow(kind, 0, early, 1, late, value, value, 1.0, 0.18, q, 2e-4, q, q / 2, q)

    if n_layers < 2:
        return []
    return [row(kind, early, late) for kind in "QKV" for early in range(n_heads) for late in range(n_heads)]


def with_width(cell: Cell, name: str, d_head: int, **more: object) -> Cell:
    return replace(cell, summary=replace(cell.summary, cell=name, d_head=d_head, **more))  # type: ignore[arg-type]
