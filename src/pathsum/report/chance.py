"""What each claim's number would be by chance, from the records where they hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pathsum.claims import content
from pathsum.claims.formatting import number, span
from pathsum.records.heads import LabelRow
from pathsum.records.results import Cell, Results
from pathsum.records.skip_trigrams import SkipTrigramTallyRow

UNKNOWN = "–"


def chance(claim: str, results: Results) -> str:
    """Print the chance level of a claim's number; a dash where there is none or it is not measured."""
    level = LEVELS.get(claim)
    return level(results) if level else UNKNOWN


def passing_share(tallies: Sequence[SkipTrigramTallyRow]) -> float | None:
    """Return the share that copies of all candidates that both halves of the documents hold; None without any."""
    passing = sum(t.passing for t in tallies)
    return sum(t.passing_copying for t in tallies) / passing if passing else None


# ---- levels ---------------------------------------------------------------------------------------------------------


def _unigram_loss(results: Results) -> str:
    excess = results.corpus.unigram_loss_nats - results.corpus.bigram_loss_nats
    return f"{number(excess, 3)} (unigram model)"


def _unigram_correlation(results: Results) -> str:
    return _or_unknown(span([c.summary.unigram_correlation for c in results.cells.values()]), " (unigram model)")


def _uniform(behaviour: str, cells: Callable[[Results], Iterable[Cell]]) -> Callable[[Results], str]:
    """Uniform causal attention, on the windows that the behaviour is measured on."""

    def level(results: Results) -> str:
        rows: list[LabelRow] = [r for c in cells(results) for r in c.rows(LabelRow) if r.behaviour == behaviour]
        return span([r.chance for r in rows], 3)

    return level


def _depth(n_layers: int) -> Callable[[Results], Iterable[Cell]]:
    return lambda results: results.with_layers(n_layers)


def _smeared(results: Results) -> Iterable[Cell]:
    return (c for c in results.controls.values() if c.summary.smeared_keys)


def _one_head_of(results: Results) -> str:
    heads = [c.summary.n_heads for c in results.with_layers(2)]
    return _or_unknown(span(heads, 0), " heads", before="0; the right head: 1 of ")


def _share_of_one_pair(results: Results) -> str:
    """Give every pair of offsets the same preference."""
    pairs = [rows for c in results.with_layers(2) if (rows := content.of_induction_head(c))]
    return span([1 / len(rows) for rows in pairs])


def _always(level: str) -> Callable[[Results], str]:
    return lambda _: level


def _or_unknown(level: str, after: str, before: str = "") -> str:
    return UNKNOWN if level == UNKNOWN else f"{before}{level}{after}"


def _base_rate(results: Results) -> str:
    tallies = [t for c in results.with_layers(1) for t in c.rows(SkipTrigramTallyRow)]
    if not tallies:
        return UNKNOWN
    drawn = span([t.base_rate for t in tallies if t.base_rate is not None], 3)
    return (
        f"{drawn} (n = {span([t.base_passing for t in tallies], 0)}, drawn from the text, same tests); "
        f"{number(passing_share(tallies))} (all candidates that pass them)"
    )


LEVELS: dict[str, Callable[[Results], str]] = {
    "zero_layer_bigram": _unigram_loss,
    "direct_path_bigram": _unigram_correlation,
    "path_expansion_exact": _always(UNKNOWN),  # an identity
    "one_layer_skip_trigrams": _base_rate,
    "one_layer_no_induction": _uniform("induction: uniform", _depth(1)),
    "two_layer_induction": _uniform("induction: uniform", _depth(2)),
    "previous_token_head": _uniform("previous token", _depth(2)),
    "smeared_keys_induction": _uniform("induction: uniform", _smeared),
    "repeat_loss": _always("0 (guessing)"),
    "loss_drop_gap": _always("0 (the best one-layer model)"),
    "k_composition": _one_head_of,
    "composition_mostly_k": _always("1/3"),
    "phase_change_coincides": _always("0"),
    "previous_token_first": _always("0"),
    "induction_key_edge": _always("0"),
    "induction_scores_k": _share_of_one_pair,
}
