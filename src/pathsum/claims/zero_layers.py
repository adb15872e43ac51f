"""Claims about bigrams: zero-layer models, and the direct path of all models."""

from pathsum.claims import samples
from pathsum.claims.formatting import number, span
from pathsum.claims.judging import Claim, Finding, each, within
from pathsum.records.results import Cell, Results

TOLERANCE = 0.05  # nats; largest difference from the bigram model's loss, in either direction
CORRELATION = 0.5  # least correlation of the direct path with the corpus's bigrams


def _zero_layer_bigram(cell: Cell) -> Finding:
    s = cell.summary
    if s.bigram_excess_nats is None:
        return Finding(None, False, "not measured")
    unsure = any(within(bound, s.bigram_excess_low, s.bigram_excess_high) for bound in (-TOLERANCE, TOLERANCE))
    return Finding(s.bigram_excess_nats, abs(s.bigram_excess_nats) <= TOLERANCE, unsure=unsure)


def _direct_path(cell: Cell) -> Finding:
    s = cell.summary
    note = (
        f"unigram alone {number(s.unigram_correlation)}, excess from {number(s.beyond_unigram_low)} to "
        f"{number(s.beyond_unigram_high)}"
    )
    return Finding(s.bigram_correlation, s.bigram_correlation >= CORRELATION and s.beyond_unigram_low > 0, note)


def _unigram_loss(results: Results) -> str:
    excess = results.corpus.unigram_loss_nats - results.corpus.bigram_loss_nats
    return f"{number(excess, 3)} (unigram model)"


def _unigram_correlation(results: Results) -> str:
    return samples.or_unknown(span([c.summary.unigram_correlation for c in results.cells.values()]), " (unigram model)")


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "zero_layer_bigram",
        "A zero-layer transformer is a bigram model.",
        "AMF, Zero-Layer Transformers",
        "held-out loss minus that of the best smoothed bigram model (nats)",
        f"within {TOLERANCE} nats",
        each(0, _zero_layer_bigram),
        digits=3,
        chance=_unigram_loss,
        sample=samples.held_out,
        unit="nats per token above the best bigram model",
    ),
    Claim(
        "direct_path_bigram",
        "At every depth the direct path W_U W_E holds bigram statistics.",
        "AMF, The Path Expansion Trick",
        "correlation of W_U W_E with the corpus log P(next | token), by frequency; a unigram model correlates too",
        f"≥ {CORRELATION}, and above the unigram's (95 % interval over current tokens)",
        each(None, _direct_path),
        chance=_unigram_correlation,
        sample=samples.over(lambda cell: [cell.summary.d_vocab], "current tokens"),
        unit="correlation over the pairs of tokens that occur, weighted by count, −1 to 1",
    ),
)
