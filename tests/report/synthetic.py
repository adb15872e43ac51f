"""Made-up results: a grid in which the paper's claims hold, one in which they do not, and tokens that try to break the
page."""

import dataclasses
import functools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pathsum.records import registry
from pathsum.records.ablations import OUTSIDE, SAME_PAIRS
from pathsum.records.calibration import CalibrationRow, CoverageRow
from pathsum.records.corpus import CorpusSummary, NGramRow
from pathsum.records.doses import DoseRow
from pathsum.records.evaluation import Evaluation
from pathsum.records.onsets import TextOnsets
from pathsum.records.results import Cell, Results
from pathsum.records.sufficiency import HEADS, Kept
from pathsum.records.suffixes import CONTROLS_OF, Condition, Cut
from pathsum.records.summary import CellSummary
from pathsum.report.page.document import Section, Table
from pathsum.report.theme import detectors
from pathsum.report.told import Frames
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
KNOWN = tuple(  # texts on the line onset = 10 000 √(batch · n_ctx) / saving
    TextOnsets(name, f"hash of {name}", saving, 1.0, 4, 256, 2_000_000, (round(320_000 / saving),) * 2)
    for name, saving in {"c": 0.6, "manual": 0.4, "notes": 0.3, "letters": 0.2, "news": 0.1}.items()
)


def made(kind: type[Any], width: float = 0.1, /, **given: Any) -> Any:
    """Return a row of ``kind`` with the ``given`` values. Without one, the ends of an interval lie ``width`` around the
    field before them, and other fields are None if they may be, or else "", False, 12 or 0.1."""
    row: dict[str, Any] = {}
    empty: dict[Any, Any] = {str: "", bool: False, int: 12, float: 0.1}
    value: Any = None
    for field in (f for f in dataclasses.fields(kind) if f.name in given or f.default is dataclasses.MISSING):
        if field.name not in given and field.name.endswith(("low", "high")):
            row[field.name] = None if value is None else value + (width if field.name.endswith("high") else -width)
        else:
            row[field.name] = value = given.pop(field.name, empty.get(field.type))
    return kind(**row, **given)


def rows(record: str, given: Iterable[Mapping[str, Any]], width: float = 0.1, /, **common: Any) -> dict[str, list[Any]]:
    """Return the table of a model with a row for each of the ``given`` values, which all have the ``common`` ones."""
    kind = registry.tables()[record]
    return {record: [made(kind, width, **common, **values) for values in given]}


def at(head: Any) -> dict[str, int]:
    return {"layer": head.layer, "head": head.head}


def early(head: Any) -> dict[str, int]:
    return {f"early_{name}": value for name, value in at(head).items()}


def late(head: Any) -> dict[str, int]:
    return {f"late_{name}": value for name, value in at(head).items()}


DOSES: list[DoseRow] = [
    DoseRow(
        weight=weight,
        seed=seed,
        tokens=9_000_000,
        onset_tokens=1_333_333 if weight == 3 else None,
        matching_led=0.1 * weight,
        matching=0.05 * weight,
        loss_nats=3.4 + 0.01 * weight + 0.1 * (weight == 5),
        previous_token=0.9,
        cut_on_repeats_nats=0.02 * weight,
        cut_elsewhere_nats=0.001,
    )
    for weight in (1.0, 3.0, 5.0)
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
        corpus=made(
            CorpusSummary,
            name="python",
            corpus_hash="c0ffee",
            d_vocab=1024,
            n_ctx=N_CTX,
            train_tokens=9_000_000,
            unigram_entropy_nats=5.9,
            unigram_loss_nats=5.95,
            judged_windows=67,
            bigram_loss_nats=3.4,
            bigram_smoothing="interpolated, 0.9",
        ),
        known=list(KNOWN),
        ngrams=[
            made(NGramRow, kind="bigram", tokens=f"{t}␟{u}", ids="1 2", count=100 - i)
            for i, (t, u) in enumerate(_pairs())
        ],
        provenance={
            "revision": "0123abc",
            "versions": {"torch": "2.13.0", "python": "3.11"},
            "extract": {"windows": 64, "repeated_windows": 32},
        },
        missing=tuple(missing),
        calibration=calibration(works=works),
        doses=DOSES,
        coverage=[
            made(CoverageRow, 0.03, text="held-out text", quantity="head", windows=n, share=0.94) for n in (12, 64)
        ],
    )


def only(*cells: Cell, **controls: Cell) -> Results:
    """Return results with these models alone."""
    return replace(results(layers=(2,)), cells={c.name: c for c in cells}, controls=controls)


def frames(*cells: Cell) -> Frames:
    return Frames({c.name: c for c in cells})


def texts(section: Section) -> list[list[list[str]]]:
    """Return the entries of the tables of a section."""
    tables = [block for block in section.blocks if isinstance(block, Table)]
    return [[[entry.text for entry in row] for row in table.rows] for table in tables]


def calibration(*, works: bool) -> list[CalibrationRow]:
    """Return calibration results. All detectors are perfect, or one is wrong and one finds nothing."""
    ends = {f"{share}_{end}": x for share in ("precision", "recall") for end, x in (("low", 0.76), ("high", 1.0))}
    good = [made(CalibrationRow, detector=name, precision=1.0, recall=1.0, **ends) for name in detectors()]
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
    heads = _heads(n_layers, n_heads, works, rng)
    induction = n_layers >= 2 and works
    last = log[-1]
    loss = (3.42 if works else 3.9) if n_layers == 0 else 3.2 - 0.4 * n_layers
    return Cell(
        summary=made(
            CellSummary,
            cell=name,
            n_layers=n_layers,
            n_heads=n_heads,
            d_model=32,
            d_head=8,
            positions="relative",
            norm="none",
            icl_late_token=250,
            n_ctx=N_CTX,
            d_vocab=1024,
            seed=seed,
            batch=4,
            repeat_weight=1.0,
            repeat_tokens=0,
            tokens_seen=BUDGET,
            exactness=3e-14 if works else 2e-7,
            val_loss_nats=loss,
            bigram_excess_nats=loss - 3.4,
            in_context_loss_drop_nats=last.in_context_loss_drop_nats,
            icl_loss_drop_nats=0.8 * last.in_context_loss_drop_nats,
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
        ),
        log=log,
        tables={
            "heads": heads,
            **_weights(n_layers, heads, works, rng),
            **_text(heads, works, rng),
            **rows(
                "exactness",
                ({"step": e.step, "tokens_seen": e.tokens_seen} for e in log),
                max_relative_error=1e-14 if works else 1e-7,
                scores_max_relative_error=1e-14 if n_layers > 1 else None,
            ),
            **_weights_side(heads, rng),
            **_behaviour(n_layers, heads, log),
            **_formation(n_layers, log, works),
            **explored(HOSTILE, heads, log),
            **_ablations(heads, works, rng),
            **_edge_contrasts(n_layers, works, rng),
            **_score_paths(n_layers, heads, works, rng),
            **_suffixes(heads, works),
            **_fuzzy_matching(n_layers, works),
            **_repeated_names(n_layers, works),
            **_how_induction_works(n_layers, heads, log, works),
            **_content(n_layers, heads, works, rng),
        },
    )


def _weights(n_layers: int, heads: Sequence[Any], works: bool, rng: random.Random) -> dict[str, list[Any]]:
    """Return eigenvalues and composition: the K-edge between heads 0 composes if the claims hold."""
    eigenvalues = [
        {**at(h), "real": rng.uniform(-0.1, 1) * h.copying_positivity, "imag": rng.uniform(-0.2, 0.2)}
        for h in heads
        for _ in range(8)
    ]

    def composed(kind: str, a: Any, b: Any) -> dict[str, Any]:
        planted = kind == "K" and a.head == b.head == 0 and works
        p, value = (0.001, 0.45) if planted else (0.6, 0.18 + rng.uniform(-0.03, 0.03))
        scores = {"value": value, "varying": value, "p_value": p, "q_value": p, "varying_p_value": p / 2}
        return {"kind": kind, **early(a), **late(b), **scores, "varying_q_value": p}

    pairs = [(a, b) for a in heads for b in heads if a.layer < b.layer]
    edges = [composed(kind, *pair) for kind in "QKV" for pair in pairs]
    return rows("eigenvalues", eigenvalues) | rows("composition", edges, size=1.0, chance=0.18, p_floor=2e-4)


def _text(heads: Sequence[Any], works: bool, rng: random.Random) -> dict[str, list[Any]]:
    """Return bigrams, attention by distance, and skip-trigrams: the source is the output if the claims hold."""
    counts = {"text_places": 90, "text_hits": 30, "text_expected": 10.0, "text_lift": 3.0, "change_nats": 0.5}
    tallies = {"candidates": 300, "copying": 90, "tested": 200, "confirmed": 120, "passing": 100, "passing_copying": 40}
    triples = [(h, k, t, u) for h in heads for k, (t, u) in enumerate(_pairs(), start=1)]
    trigrams = [
        {**at(h), "rank": k, "source": t, "destination": u, "out": t if works else u + "…", "places": 30 - k}
        | {"qk_nats": 3.0 - k / 9}
        for h, k, t, u in triples
    ]
    bugs = [
        {**at(h), "rank": k, "source": t, "destination": u, "out": u, "price_nats": 0.04 / k}
        for h, k, t, u in triples
        if k <= 3
    ]
    bigrams = [
        {"token": t, "next": u, "count": 500 - i}
        | {f"{of}_log_prob_nats": -rng.uniform(0, 5) for of in ("corpus", "model")}
        for i, (t, u) in enumerate(_pairs() * 4)
    ]
    attention = [
        {**at(h), "distance": d, "attention": h.previous_token if d == 1 else 0.3 / (d + 2)}
        for h in heads
        for d in range(N_CTX)
    ]
    return {
        **rows("distances", attention),
        **rows("skip_trigrams", trigrams, effect_logits=2.0, **counts),
        **rows("skip_trigram_tallies", map(at, heads), base_rate=0.016, base_passing=250, **tallies),
        **rows("skip_trigram_bugs", bugs, text_places=90, text_hits=2),
        **rows("bigrams", bigrams),
        **rows("copying", ({**at(h), "attended_nats": 0.5 * h.copies, "windows": 64} for h in heads)),
    }


def _edge_contrasts(n_layers: int, works: bool, rng: random.Random) -> dict[str, list[Any]]:
    """Return edge contrasts: the K-edge between heads 0 has the largest effect if the claims hold, and a small one
    otherwise."""
    x = (1.9 if works else -1.9) + rng.uniform(0, 0.05)
    rivals = {OUTSIDE: "L0H1 → L1H1 (Q)"} | {kind: f"L0H0 → L1H0 ({kind})" for kind in SAME_PAIRS}
    contrasts = [
        {"method": method, "rival": kind, "rivals": edge}
        for method in ("zero", "resample")
        for kind, edge in rivals.items()
        if n_layers >= 2
    ]
    ours = {"edges": "L0H0 → L1H0 (K)", "key_nats": x, "difference_nats": x, "windows": 64}
    return rows("edge_contrasts", contrasts, 0.2, **ours)


def _ablations(heads: Sequence[Any], works: bool, rng: random.Random) -> dict[str, list[Any]]:
    """Return ablations in which the loss on repeats rises without heads 0 and without the K-edge between them."""

    def ablated(lost: float, head: Any, **about: Any) -> dict[str, Any]:
        rise = {"loss_nats": rng.uniform(0, 0.2), "second_copy_nats": lost + rng.uniform(0, 0.1)}
        return {**at(head), **rise, **about}

    planted = "K" if works else "V"
    pairs = [(a, b) for a in heads for b in heads if a.layer < b.layer]
    found = [
        ablated(2.0 * (works and h.head == 0 and method != "rotated"), h, target="head", method=method)
        for h in heads
        for method in (*METHODS, "rotated")
    ]
    found += [
        ablated(
            2.0 * (kind == planted and a.head == b.head == 0), b, target="edge", kind=kind, method=method, **early(a)
        )
        for kind in "QKV"
        for method in METHODS
        for a, b in pairs
    ]
    first = [h for h in heads if pairs and h.layer == 0]
    found += [ablated(0.1, h, target="pattern", method="previous token") for h in first]
    return rows("ablations", found, patterns="recomputed", prefix_matching=0.0, loss_drop_nats=0.0)


def _how_induction_works(
    n_layers: int, heads: Sequence[Any], log: Sequence[Evaluation], works: bool
) -> dict[str, list[Any]]:
    """Return tables in which induction needs heads 0 only, and one layer prefers no key after a match, if the claims
    hold."""
    two, much, little = n_layers > 1, 0.45 if works else 0.1, 0.01
    trials = [("induction", "L1H0", method, much) for method in METHODS] + [("induction", "L1H0", "rotated", little)]
    trials += [("others", "L1H1", method, little) for method in METHODS]
    lost = [
        {"step": e.step, "tokens_seen": e.tokens_seen, "ablated": kind, "heads": head, "method": method}
        | {"loss_drop_lost": x, "share": 2 * x, "share_low": 2 * x - 0.1, "share_high": 2 * x + 0.1}
        | {"behind_nats": much - x, "repeat_gain_lost": x}
        for e in log[4:]
        for kind, head, method, x in trials
        if two
    ]
    shares = {Kept.MODEL: 1.0, Kept.KEYS: much}
    shares |= dict.fromkeys((Kept.CIRCUIT, Kept.PREFERENCE, Kept.MINIMAL), 2 * much)
    kept = [
        {"kept": k.value, "heads": {Kept.NOTHING: "", Kept.ANOTHER: "L0H1"}.get(k, "L0H0"), "prefix_matching": x}
        | {"matching_share": x}
        | ({"repeat_gain_nats": 4 * x, "gain_share": x} if k in HEADS else {})
        | ({"loss_drop_nats": 0.5 * x, "loss_drop_share": x}
           if k in (Kept.MODEL, Kept.CIRCUIT, Kept.NO_PREVIOUS) else {})
        for k in Kept
        if two
        for x in (shares.get(k, 0.02),)
    ]  # fmt: skip
    effect = {"match": 0.3, "after": 8.0 if two or not works else 0.0, "before": 0.1}
    competing = [{**at(h), "place": place, "preference_nats": x} for h in heads for place, x in effect.items()]
    sinks = [{**at(h), "attention": h.bos} for h in heads]
    sinks += [{"layer": h.layer, "attention": h.bos} for h in heads if h.head == 0]  # all heads of the layer
    norms = [{"path": f"L{h.layer}H{h.head}"} for h in heads]
    nats = dict.fromkeys(("silenced_nats", "forbidden_nats", "control_nats"), 0.2)
    return {
        **rows("joint_ablation", lost, 0.05, n_heads=1, loss_drop_nats=0.5, repeat_gain_nats=4.0),
        **rows("sufficiency", kept, layer=1, head=0, windows=64, text_windows=64),
        **rows("softmax_competition", competing, windows=32, inhibition_nats=-0.2),
        **rows("attention_sinks", sinks, attention_low=0.1, attention_high=0.3, chance=0.05, **nats),
        **rows("norm_scales", norms, order=1, frozen_nats=0.2, own_nats=0.2),
    }


def _score_paths(n_layers: int, heads: Sequence[Any], works: bool, rng: random.Random) -> dict[str, list[Any]]:
    """Return terms, and score paths: heads 0 match prefixes by K-composition if the claims hold, and by Q&K
    otherwise."""
    effect = (2.0, 1.5, 0.2 if works else 1.9)[: n_layers + 1]
    first, second = ([h for h in heads if h.layer == layer] for layer in (0, 1))
    paths = (1, len(heads), len(first) ** 2)
    terms = [
        {"order": n, "paths": paths[n], "added_nats": x, "removed_nats": x, "own_scale_nats": x}
        for n, x in enumerate(effect)
    ]
    names = ["direct", *(f"L0H{h.head}" for h in first)]
    planted = ("direct" if works else names[-1], "L0H0")
    pairs = [*((q, k) for q in names for k in names), ("position", "position")]
    return rows("terms", terms) | rows("score_paths", _preferred(second, pairs, planted, rng))


def _preferred(heads: Sequence[Any], pairs: Iterable[tuple[str, str]], planted: tuple[str, str], rng: random.Random,
               ) -> list[dict[str, Any]]:  # fmt: skip
    """Return a preference for each pair at the query and at the key; it is large for the ``planted`` one."""
    found = [
        {**at(h), "query": q, "key": k, "preference_nats": 8.0 if (q, k) == planted else rng.uniform(-0.02, 0.02)}
        for h in heads
        for q, k in pairs
    ]
    known = {"preference_error_nats": 0.01, "exactness": 1e-15}
    return [row | known | {"variance_share": row["preference_nats"] / 8} for row in found]


def _suffixes(heads: Sequence[Any], works: bool) -> dict[str, list[Any]]:
    """Return suffix matching: head 1.0 prefers matches of two tokens through two edges if the claims hold, and none
    otherwise."""
    found = 0.4 if works else 0.0
    rivals = {Condition.TWO_ONE: found, Condition.THREE_TWO: 0.0}
    controls = sorted({control for some in CONTROLS_OF.values() for control in some})
    second = [h for h in heads if h.layer == 1]

    def cut(name: Cut, method: str, x: float, rotation: int | None = None) -> dict[str, Any]:
        cost, kept = 0.8 * works * (name != Cut.NONE), x / found if found else None
        left = {"left": kept, "spared": x - 0.02 if name in controls else None, "gain_nats": 5 * x}
        return {"cut": name, "method": method, "rotation": rotation, "advantage": x, "second_copy_nats": cost, **left}

    without = {Cut.QUERY_EDGE: 0.02, Cut.KEY_EDGE: 0.02, Cut.BUT_ONE_TOKEN: 0.0, **dict.fromkeys(controls, found)}
    cuts = [
        cut(name, method, min(x, found), i)
        for name, x in without.items()
        for method in ("resample", "mean")
        for i in (range(4) if name in (Cut.QUERY_RANDOM, Cut.KEY_RANDOM) else [None])
    ]
    matches = [{**at(h), "condition": c, "longer": 0.3 + x, "advantage": x} for h in second for c, x in rivals.items()]
    predictions = [{"condition": c, "longer_nats": 2 + x, "advantage_nats": x} for c, x in rivals.items()]
    cuts = [cut(Cut.NONE, "", found), *cuts] if second else []
    return {
        **rows("suffix_matches", matches, 0.05, shorter=0.3, chance=1 / 64, sequences=64),
        **rows("suffix_predictions", predictions, shorter_nats=2.0, sequences=64),
        **rows("suffix_cuts", cuts, 0.05, sequences=64, edges="Q←L0H0", layer=1, head=0, alone_left=1.0),
    }


def _fuzzy_matching(n_layers: int, works: bool) -> dict[str, list[Any]]:
    """Return fuzzy matching: head 1.0 matches variants half as well as equal tokens, or not at all. The model never
    learns the new names."""
    effect = {
        name: x
        for kind in ("case", "leading space")
        for name, x in ((f"equal ({kind})", 0.6), (kind, 0.3 * works), (f"unrelated ({kind})", 0.0))
    }
    over = {"attention over unrelated": 1, "log-probability over unrelated": 4, "match score over unrelated": 7}
    gains = {"gain after a kept token": 1.0, "gain after a renamed token": 0.2, "gain of a renamed token": -1.2}
    copies = {"renamed copy": 1.5, "shuffled passage": 0.5, "another passage": 0.0, "renamed − shuffled": 1.0}
    copies |= {"renamed − another": 1.5}
    values = {
        **{(kind, "attention"): 0.02 + x for kind, x in effect.items()},
        **{(kind, m): s * x for m, s in over.items() for kind, x in effect.items() if "unrelated" not in kind},
        **{(kind, "match score"): 7 * x for kind, x in effect.items()},
        ("chance", "attention"): 0.02,
        **{(copy, m): s * x * works for m, x in gains.items() for copy, s in copies.items()},
        **{("exact copy", m): 0.9 for m in gains},
    }
    found = [
        {"kind": kind, "measure": m, "value": x} | ({} if m.startswith("gain") else {"layer": 1, "head": 0})
        for (kind, m), x in values.items()
        if n_layers > 1
    ]
    return rows("fuzzy_matching", found, 0.05, n=39)


def _repeated_names(n_layers: int, works: bool) -> dict[str, list[Any]]:
    """Return names that cost more without the key edges if the claims hold; the text of one tries to break the page."""
    names = ("D␟urs␟ley", "␟".join(HOSTILE[:2]))
    found = [
        {"kind": kind, "method": method, "name": name, "cut_nats": 0.5 + x, "cost_nats": x}
        for method, more in (("zero", 0.0), ("resample", 0.25))
        for kind, name, x in (("all", "", 2.0), ("control", "", 0.0), *(("name", name, 3.0) for name in names))
        for x in (x * works + more,)
        if n_layers > 1
    ]
    return rows("repeated_names", found, first_nats=3.5, loss_nats=0.5)


def _content(n_layers: int, heads: Sequence[Any], works: bool, rng: random.Random) -> dict[str, list[Any]]:
    """Return tables by content: current against previous token with few second hops if the claims hold. Otherwise two
    tokens are compared, and second hops matter."""
    offsets, second = ("0", "1", "2", "3+", "BOS"), [h for h in heads if h.layer == 1]
    effect = (2.0, 1.5, 0.2 if works else 1.9)[: n_layers + 1]
    hops = [
        {"kind": "hops", "content": str(n), "added_nats": x, "removed_nats": x, "own_scale_nats": x, "windows": 64}
        for n, x in enumerate(effect)
    ]
    hops += [{"kind": "offset", "content": o, "added_nats": 0.5, "removed_nats": 0.5, "windows": 12} for o in offsets]
    pairs = [(q, k) for q in offsets for k in offsets]
    scores = [
        row | {"share_low": row["variance_share"] - 0.1, "share_high": row["variance_share"] + 0.1}
        for row in _preferred(second, pairs, ("0", "1") if works else ("1", "2"), rng)
    ]
    parts = ["embedding", *(f"L{n}" for n in range(n_layers)), *(f"L{h.layer}H{h.head}" for h in heads)]
    balance = [
        {"reader": reader, "part": part}
        for reader in range(n_layers + 1)
        for part in parts
        if part == "embedding" or int(part[1]) < reader
    ]
    matching = [{**at(h), "positivity": h.qk_matching_positivity or 0.0} for h in second]
    return {
        **rows("content", hops, exactness=1e-15),
        **rows("content_scores", scores),
        **rows("matching", matching, query="direct", key="L0H0", judged_share=0.88),
        **rows("balance", balance, norm=30.0, power_share=0.5, projection_share=0.4),
    }


def _behaviour(n_layers: int, heads: Sequence[Any], log: Sequence[Evaluation]) -> dict[str, list[Any]]:
    kinds = (*("induction: " + k for k in ("uniform", "by frequency", "natural")), "uniform, value-weighted")
    labels = [
        {**at(h), "behaviour": b, "score": x, "distance": h.head if b == "offset" else None, "labelled": x > 0.5}
        for h in heads
        for b, x in {
            "previous token": h.previous_token,
            "copies the next token": h.copying,
            "attends to BOS (attention sink)": h.bos,
            "BOS, value-weighted": h.bos,
            "offset": h.previous_token,
            **dict.fromkeys(kinds, h.prefix_matching),
        }.items()
    ]
    losses = [
        {"step": e.step, "tokens_seen": e.tokens_seen, "losses_nats": [4 - 0.1 * i, 4 - 0.02 * i * n_layers, 3.0]}
        for i, e in enumerate(log)
    ]
    return {
        **rows("labels", labels, 0.02, chance=0.01, threshold=0.1),
        **rows("lens", ({"layers": n, "loss_nats": 6.0 - n} for n in range(n_layers + 1))),
        **rows("token_losses", losses),
    }


def _formation(n_layers: int, log: Sequence[Evaluation], works: bool) -> dict[str, list[Any]]:
    """Return change-points: the previous-token head forms first if the claims hold, and last otherwise. The loss of
    the zero-layer model bends, with a wide interval."""
    pieces = {
        "previous_token": (3_500_000 if works else 6_000_000, 32),
        "k_composition": (3_600_000, None),
        "key_edge_nats": (3_900_000, 12),
        "prefix_matching": (4_200_000, 12),
        "loss_drop_nats": (4_300_000, 32),
    }
    changes = [
        {"quantity": quantity, "tokens_seen": n, "low": n - 200_000, "high": n + 300_000, "windows": windows}
        | {"low_documents": windows and n - 90_000, "high_documents": windows and n + 90_000}
        for quantity, (n, windows) in pieces.items()
    ]
    bend = {"quantity": "loss_nats", "tokens_seen": 4_000_000, "low": 3_000_000, "high": 5_000_000, "windows": 32}
    bend |= {"low_documents": None, "high_documents": None}
    measured = [
        {"step": e.step, "tokens_seen": e.tokens_seen, "loss_drop_nats": e.in_context_loss_drop_nats}
        | {"loss_nats": e.val_loss_nats}
        for e in log
    ]
    return {
        **rows("formation", measured, 0.02, previous_token=0.1, prefix_matching=0.1, windows=32),
        **rows("changes", {0: [bend], 2: changes}.get(n_layers, [])),
    }


def _weights_side(heads: Sequence[Any], rng: random.Random) -> dict[str, list[Any]]:
    pairs = [(a, b) for a in heads for b in heads if a.layer < b.layer]
    tokens, reverse = "␟".join(HOSTILE), "␟".join(HOSTILE[::-1])
    clusters = [{**at(h), "cohesion": rng.gauss(1, 1)} for h in heads]
    overlaps = [
        {"kind": kind, **early(a), **late(b), "share": rng.uniform(0.1, 0.4)} for kind in "QKV" for a, b in pairs
    ]
    bandwidth = [{"part": part, "effective_rank": 20.0, "rank": 32} for part in ("W_E", "W_U")]
    bandwidth += [{"part": "W_OV", **at(h), "effective_rank": 6.5, "rank": 8} for h in heads]
    deleting = [{**at(h), "alignment": rng.gauss(0, 0.05)} for h in heads if h.layer]
    virtual = [{**early(a), **late(b), "cost_nats": rng.gauss(0, 0.02)} for a, b in pairs]
    return {
        **rows("token_clusters", clusters, tokens=tokens),
        **rows("directions", map(at, heads), read=tokens, written=reverse),
        **rows("joint_copying", ({"layer": h.layer} for h in heads[:1]), heads="0 1", top1=0.5),
        **rows("overlaps", overlaps, chance=0.25, spread=0.01),
        **rows("bandwidth", bandwidth),
        **rows("deleting", deleting, spread=0.01),
        **rows("virtual_heads", virtual, cost_error_nats=0.01),
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


def _heads(n_layers: int, n_heads: int, works: bool, rng: random.Random) -> list[Any]:
    """Return heads: head 0 of the first layer is the previous-token head, and head 0 of the second the induction
    head."""
    sign, two, kind = 1 if works else -1, n_layers >= 2, registry.tables()["heads"]
    return [
        made(
            kind,
            layer=layer,
            head=head,
            prefix_matching=0.7 if first and layer == 1 else (0.02 if works or two else 0.3),
            previous_token=0.9 if first and layer == 0 else 0.1,
            copying=0.4,
            bos=0.2,
            copying_positivity=sign * rng.uniform(0.6, 0.99),
            qk_matching_positivity=sign * (0.95 if head == 0 else rng.uniform(-0.3, 0.3)) if layer else None,
            previous_head=0 if layer else None,
        )
        for layer in range(n_layers)
        for head in range(n_heads)
        for first in (head == 0 and works and two,)
    ]


def with_width(cell: Cell, name: str, d_head: int, **more: object) -> Cell:
    return replace(cell, summary=replace(cell.summary, cell=name, d_head=d_head, **more))  # type: ignore[arg-type]
