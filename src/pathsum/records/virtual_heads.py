"""Virtual heads: pairs of heads of different layers."""

from pathsum.records.registry import record


@record("virtual_heads", "virtual heads", "A^late A^early ⊗ W_OV^late W_OV^early", "circuits/virtual_heads.py")
class VirtualHeadRow:
    """The weights, the pattern and the effect on the loss of a virtual head."""

    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    composition: float  # ‖W_OV^late W_OV^early‖ / (‖W_OV^late‖ ‖W_OV^early‖), 0..1
    composition_chance: float  # root mean square under random rotations
    positivity: float  # Σλ / Σ|λ| of W_U W_OV^late W_OV^early W_E
    previous_token: float  # of A^late A^early, on held-out text
    peak_distance: int  # of the largest mean attention, among distances up to half the window
    peak_attention: float
    prefix_matching: float  # of A^late A^early, on repeated random tokens
    cost_nats: float  # loss on held-out text without its path, minus loss with it
    cost_error_nats: float  # standard error over documents
