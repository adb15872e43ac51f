"""Q-, K- and V-composition of pairs of heads, and the rule that decides whether an edge composes."""

from pathsum.records.registry import record

SIGNIFICANT = 0.05  # largest q-value (two-sided) of an edge that is above or below chance
COMPOSES = 0.55  # least score times size, in units of chance; tuned on synthetic corpora of seeds 100 to 123
FALSE_COMPOSITION = 0.1  # largest q-value (one-sided) of an edge that composes
KEYS_COMPOSE = 1.3  # least score of a K-edge that composes, in units of chance; set after seeds 24 to 47 were judged
COMPOSITION_RULE = (  # docs/framework.md §4.5, as the report prints it after "if"
    "its composition score, computed without the direction of the early head's mean write, is above chance (one-sided "
    f"Benjamini–Hochberg q < {FALSE_COMPOSITION}; for keys, at least {KEYS_COMPOSE} times chance) and, multiplied by "
    f"the early head's relative size, is at least {COMPOSES} times chance. The relative size is the standard deviation "
    "of the head's writes on held-out text, divided by the root mean square of this quantity over all parts that the "
    "later layer reads (the embedding and each earlier head)"
)


@record(
    "composition",
    "‖R W_OV^early‖ / (‖R‖ ‖W_OV^early‖), R = W_QKᵀ (Q), W_QK (K), W_OV (V) of the late head; chance: R times a random "
    "rotation times W_OV^early",
    "circuits/composition.py",
)
class CompositionRow:
    """Q-, K- and V-composition of each pair of heads, with chance level and p-values. See docs/framework.md §4."""

    kind: str  # Q, K or V
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    value: float  # composition score, 0..1
    varying: float  # composition score without the direction of the early head's mean write
    size: float  # standard deviation of the early head's writes, relative to the parts that the later layer reads
    chance: float  # root mean square of the score under random rotations
    p_value: float  # of ``value``, two-sided
    p_floor: float  # smallest p-value that this number of rotations can give
    q_value: float  # Benjamini–Hochberg q of p_value over all edges of the model
    varying_p_value: float  # of ``varying``, one-sided; at least p_floor / 2
    varying_q_value: float  # Benjamini–Hochberg q of varying_p_value over all edges of the model

    @property
    def above(self) -> bool:
        """Return whether the score is above chance with a q-value below SIGNIFICANT."""
        return self.value > self.chance and self.q_value < SIGNIFICANT

    @property
    def weight(self) -> float:
        """Return ``varying`` times ``size``, by which edges are ranked."""
        return self.varying * self.size

    @property
    def composes(self) -> bool:
        """Return whether the edge composes by COMPOSITION_RULE."""
        return (
            self.varying > self.chance
            and self.varying_q_value < FALSE_COMPOSITION
            and self.weight >= COMPOSES * self.chance
            and (self.kind != "K" or self.varying >= KEYS_COMPOSE * self.chance)
        )

    @property
    def below(self) -> bool:
        """Return whether the score is below chance with a q-value below SIGNIFICANT."""
        return self.value < self.chance and self.q_value < SIGNIFICANT

    @property
    def at_floor(self) -> bool:
        """Return whether ``p_value`` is only an upper bound, because no random rotation gave as extreme a score."""
        return self.p_value <= self.p_floor

    @property
    def varying_at_floor(self) -> bool:
        """Return whether ``varying_p_value`` is only an upper bound; no random rotation gave as high a score."""
        return self.varying_p_value <= self.p_floor / 2
