"""The strongest skip-trigrams of each head, and their counts in the text (docs/framework.md §3.8 to §3.10)."""

from pathsum.records.registry import OfHead, record
from pathsum.records.tokens import word_of

CLEAR = 3.0  # least excess of hits over expected hits, in Poisson standard errors, of a skip-trigram beyond chance


def beyond_chance(hits: int, expected: float, lift: float | None) -> bool:
    """Return whether a text contains a skip-trigram beyond chance: whether ``lift`` is defined and hits − expected
    exceeds CLEAR √expected (docs/framework.md §3.9)."""
    return lift is not None and hits - expected > CLEAR * expected**0.5


@record(
    "skip_trigrams",
    "s_L[q] Σ_k A[q, k] s_l[k] · (W_U W_OV W_E)[out, source], k < q with token source",
    "extraction/atlas.py",
)
class SkipTrigramRow(OfHead):
    """Strongest skip-trigrams (source … destination → out) of each head on the choosing documents; their counts in the
    judging documents. See docs/framework.md §3.8."""

    rank: int  # by effect_logits · places, among skip-trigrams beyond chance in the choosing documents
    source: str
    destination: str
    out: str
    places: int  # positions in the choosing windows: destination followed by out, with source before it
    effect_logits: float  # mean effect over places on the logit of out, above the mean over outputs
    change_nats: float  # mean rise of log P(out) by what the source adds to the logits; past layer 0, its direct part
    qk_nats: float  # entry (destination, source) of the QK circuit, above the destination's mean over keys
    ov_logit: float  # entry (out, source) of the OV circuit, above the mean over outputs
    text_places: int  # positions in the judging documents: destination with source before it
    text_hits: int  # those of text_places that are followed by out
    text_expected: float  # text_places · P(out | destination)
    text_lift: float | None  # text_hits / text_expected; None if both are below 5

    @property
    def confirmed(self) -> bool:
        """Return whether the judging documents contain the skip-trigram beyond chance."""
        return beyond_chance(self.text_hits, self.text_expected, self.text_lift)

    @property
    def copies(self) -> bool:
        """Return whether out equals source, up to case and a leading space."""
        return word_of(self.source) == word_of(self.out)


@record("skip_trigram_tallies", "hits − expected > 3 √expected in the judging documents", "extraction/atlas.py")
class SkipTrigramTallyRow(OfHead):
    """Numbers of each head's strongest skip-trigrams: how many copy, and how many the text contains beyond chance. See
    docs/framework.md §3.9."""

    candidates: int
    copying: int  # candidates with out = source, up to case and a leading space
    tested: int  # candidates with a defined lift in the judging documents
    confirmed: int  # candidates beyond chance in the judging documents
    passing: int  # candidates beyond chance in the choosing and in the judging documents
    passing_copying: int  # those of ``passing`` with out = source
    base_rate: float | None  # share with out = source among base_passing triples; None if there are none
    base_passing: int  # number of triples sampled from the text that pass both tests, as in ``passing``


@record("skip_trigram_bugs", "−log(1 − P(out) (1 − e^{−effect})) − effect · [out follows]", "extraction/atlas.py")
class SkipTrigramBugRow(OfHead):
    """Spurious skip-trigrams (bugs), and the rise of the loss that they cause. See docs/framework.md §3.10."""

    rank: int  # by price_nats · places
    source: str
    destination: str
    out: str
    places: int  # positions in the choosing windows: destination with source before it, not followed by out
    price_nats: float  # mean rise of the loss at these places by the effect on the logit of out, > 0
    balance_nats: float  # mean rise over all places, also those followed by out; negative: the effect lowers the loss
    qk_nats: float  # as in SkipTrigramRow, > 0
    ov_logit: float  # as in SkipTrigramRow, > 0
    text_places: int  # as in SkipTrigramRow
    text_hits: int  # as in SkipTrigramRow, not above text_expected
    text_expected: float
    text_lift: float | None
