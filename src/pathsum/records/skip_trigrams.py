"""The strongest skip-trigrams of each head, and their counts in the text."""

from pathsum.records.registry import record
from pathsum.records.tokens import word_of

CLEAR = 3.0  # Poisson standard errors above chance


def beyond_chance(hits: int, expected: float, lift: float | None) -> bool:
    """Test whether a text contains a skip-trigram more often than chance, by CLEAR standard errors."""
    return lift is not None and hits - expected > CLEAR * expected**0.5


@record(
    "skip_trigrams",
    "source … destination → out, by the sum of effects on the choosing documents; counts in the judging documents",
    "s_final Σ_k A[q, k] s_read[k] · (W_U W_OV W_E)[out, source]",
    "extraction/atlas.py",
)
class SkipTrigramRow:
    """A skip-trigram, source … destination → out, with a large effect on held-out text."""

    layer: int
    head: int
    rank: int  # by effect_logits · places, among those above chance in the choosing documents
    source: str
    destination: str
    out: str
    places: int  # of choosing windows: source before destination → out
    effect_logits: float  # mean over places of the source's effect on out, minus the mean over outputs
    change_nats: float  # mean log P(out) minus that without the source's effects; only the direct part after layer 0
    qk_nats: float  # score of the key above the query's own mean, from the weights
    ov_logit: float  # effect of attending to source on out, centered over the vocabulary, from the weights
    text_places: int  # of the judging documents: source before destination
    text_hits: int  # of these, followed by out
    text_expected: float  # hits if the output did not depend on the source
    text_lift: float | None  # hits over expected; None if both are under 5

    @property
    def borne_out(self) -> bool:
        """Whether the skip-trigram is above chance in the judging documents."""
        return beyond_chance(self.text_hits, self.text_expected, self.text_lift)

    @property
    def copies(self) -> bool:
        """Whether the output is the source token, up to case and a leading space."""
        return word_of(self.source) == word_of(self.out)


@record(
    "skip_trigram_tallies",
    "counts of each head's strongest skip-trigrams: how many copy, how many are above chance in the text",
    "hits − expected hits > 3 √expected, in the judging documents",
    "extraction/atlas.py",
)
class SkipTrigramTallyRow:
    """Counts of a head's skip-trigrams with the largest sum of effects, before the text selects any."""

    layer: int
    head: int
    candidates: int
    copying: int  # of these, output = source
    told: int  # candidates that are frequent enough to test in the judging documents
    borne_out: int  # of these, above chance there
    passing: int  # candidates above chance in both the choosing and the judging documents
    passing_copying: int  # of these, output = source
    base_rate: float | None  # share with output = source of triples sampled from the text that pass both tests
    base_passing: int  # sampled triples that pass both tests


@record(
    "skip_trigram_bugs",
    "spurious skip-trigrams of the factorization, and their cost",
    "rise of −log P of the actual next token",
    "extraction/atlas.py",
)
class SkipTrigramBugRow:
    """A spurious skip-trigram: a head raises it because it raises two others with its source, and the text does not
    support it."""

    layer: int
    head: int
    rank: int  # by price_nats · places
    source: str
    destination: str
    out: str
    places: int  # in the windows of the patterns: source before destination, not followed by out
    price_nats: float  # mean rise of the loss there by the source's effect on the logit of out, > 0
    balance_nats: float  # the mean including places that are followed by out; negative if the effect reduces the loss
    qk_nats: float  # as in SkipTrigramRow, > 0
    ov_logit: float  # > 0
    text_places: int
    text_hits: int  # not above text_expected
    text_expected: float
    text_lift: float | None
