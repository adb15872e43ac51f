"""Q-, K- and V-composition of pairs of heads, and the rule by which an edge composes."""

from pathsum.records.registry import record

SIGNIFICANT = 0.05  # false-discovery rate of the edges that differ from chance
COMPOSES = 0.55  # threshold of composition in units of chance; tuned on synthetic corpora of seeds 100 to 123
FALSE_COMPOSITION = 0.1  # false-discovery rate of the edges that compose
COMPOSITION_RULE = (  # the rule in the words of the report
    "its composition score, without the direction of the early head's mean write, is above chance (one-sided "
    f"Benjamini–Hochberg q < {FALSE_COMPOSITION}), and at least {COMPOSES} times chance when multiplied by the head's "
    "relative size: the standard deviation of what it writes on held-out text, over the root mean square of that of "
    "all parts that the later layer reads (the embedding and each earlier head)"
)


@record(
    "composition",
    "Q-, K- and V-composition of each pair of heads, its chance and p",
    "‖R W_OV^early‖ / (‖R‖ ‖W_OV^early‖), R = W_QKᵀ (Q), W_QK (K), W_OV (V); chance: random rotations between",
    "circuits/composition.py",
)
class CompositionRow:
    """The composition score of a pair of heads, its chance level and its p-values."""

    kind: str  # Q, K or V
    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    value: float  # 0..1
    varying: float  # the same without the direction of the early head's mean write, which carries no information
    size: float  # variation of the early head's writes over that of an average part of what the later layer reads
    chance: float  # root mean square under spectrum-preserving random rotations
    p_value: float  # two-sided
    p_floor: float  # the smallest p-value of so many rotations; at it, p is an upper bound, "<"
    q_value: float  # Benjamini–Hochberg over all edges of the model
    varying_p_value: float  # of ``varying``, one-sided; at least p_floor / 2
    varying_q_value: float  # Benjamini–Hochberg of these over all edges of the model

    @property
    def above(self) -> bool:
        """Whether the score is above chance, at a false-discovery rate of SIGNIFICANT."""
        return self.value > self.chance and self.q_value < SIGNIFICANT

    @property
    def weight(self) -> float:
        """The score without the mean write, times the early head's relative size. It ranks the edges."""
        return self.varying * self.size

    @property
    def composes(self) -> bool:
        """Whether the edge composes by COMPOSITION_RULE. A head with uniform attention writes one direction everywhere.
        Later heads become aligned with it, but lose nothing without it."""
        return (
            self.varying > self.chance
            and self.varying_q_value < FALSE_COMPOSITION
            and self.weight >= COMPOSES * self.chance
        )

    @property
    def below(self) -> bool:
        """Whether the score is below chance, at the same false-discovery rate."""
        return self.value < self.chance and self.q_value < SIGNIFICANT

    @property
    def at_floor(self) -> bool:
        """Whether p is only an upper bound, because no rotation was as extreme."""
        return self.p_value <= self.p_floor

    @property
    def varying_at_floor(self) -> bool:
        """Whether ``varying_p_value`` is only an upper bound."""
        return self.varying_p_value <= self.p_floor / 2
