"""Skip-trigrams: the strongest of each head, and what the text says of them."""

from __future__ import annotations

from dataclasses import dataclass

from pathsum.records.registry import record
from pathsum.records.tokens import word_of

CLEAR = 3.0  # Poisson standard errors from which a count is no accident


def beyond_chance(hits: int, expected: float, lift: float | None) -> bool:
    """Tell whether a text holds a skip-trigram more often than chance, by CLEAR standard errors."""
    return lift is not None and hits - expected > CLEAR * expected**0.5


@record(
    "skip_trigrams",
    "source … destination → out, by the sum of effects on documents that choose; counts of documents that judge",
    "s_final Σ_k A[q, k] s_read[k] · (W_U W_OV W_E)[out, source]",
    "extraction/atlas.py",
)
@dataclass(frozen=True)
class SkipTrigramRow:
    """source … destination → out, among those that a head is worth most by on held-out text."""

    layer: int
    head: int
    rank: int  # by effect_logits · places, of those that the choosing documents hold beyond chance
    source: str
    destination: str
    out: str
    places: int  # of choosing windows: source before destination → out
    effect_logits: float  # mean over places of what the source adds to out, above the mean over outputs
    change_nats: float  # mean log P(out) minus that without all the source adds; direct part only after layer 0
    qk_nats: float  # score of the key above the query's own mean, from the weights
    ov_logit: float  # what attending to source adds to out, centred over the vocabulary, from the weights
    text_places: int  # of the judging documents, which chose nothing: source before destination
    text_hits: int  # of those, followed by out
    text_expected: float  # hits if the output did not depend on the source
    text_lift: float | None  # hits over expected; None where both are under 5

    @property
    def borne_out(self) -> bool:
        """Whether the judging documents hold the skip-trigram beyond chance."""
        return beyond_chance(self.text_hits, self.text_expected, self.text_lift)

    @property
    def copies(self) -> bool:
        """Whether the output is the source token, up to case and a leading space."""
        return word_of(self.source) == word_of(self.out)


@record(
    "skip_trigram_tallies",
    "of each head's strongest before the text chooses: how many copy, how many the text bears out",
    "hits − expected hits > 3 √expected, in documents that judge",
    "extraction/atlas.py",
)
@dataclass(frozen=True)
class SkipTrigramTallyRow:
    """The skip-trigrams of a head with the largest sum of effects, before any is chosen by the text."""

    layer: int
    head: int
    candidates: int
    copying: int  # of those, output = source
    told: int  # of those, frequent enough to tell in the judging documents
    borne_out: int  # of those, held beyond chance there
    passing: int  # of all candidates, those that both the choosing and the judging documents hold beyond chance
    passing_copying: int  # of those, output = source
    base_rate: float | None  # share with output = source of triples drawn from the text that pass the same two tests
    base_passing: int  # how many of the triples drawn pass them


@record(
    "skip_trigram_bugs",
    "triples that come of factorising, and their price",
    "rise of −log P of what follows instead",
    "extraction/atlas.py",
)
@dataclass(frozen=True)
class SkipTrigramBugRow:
    """A triple that a head raises because it raises two others with its source, and that the text does not support."""

    layer: int
    head: int
    rank: int  # by price_nats · places
    source: str
    destination: str
    out: str
    places: int  # of the windows of the patterns: source before destination, something else than out after it
    price_nats: float  # mean rise of the loss there by what the source adds to the logit of out, > 0
    balance_nats: float  # the same over the places where out follows, too; negative where the triple pays
    qk_nats: float  # as in SkipTrigramRow, > 0
    ov_logit: float  # > 0
    text_places: int
    text_hits: int  # not above text_expected
    text_expected: float
    text_lift: float | None
