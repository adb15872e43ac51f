"""Virtual heads: paths through two heads of different layers (docs/framework.md §2.8)."""

from pathsum.records.registry import record


@record(
    "virtual_heads",
    "composition, pattern and removal cost of each virtual head",
    "A^late A^early ⊗ W_OV^late W_OV^early",
    "circuits/virtual_heads.py",
)
class VirtualHeadRow:
    """The scores of a virtual head by its weights and by its pattern, and its removal cost (docs/framework.md §2.8)."""

    early_layer: int
    early_head: int
    late_layer: int
    late_head: int
    composition: float  # V-composition ‖W_OV^late W_OV^early‖ / (‖W_OV^late‖ ‖W_OV^early‖), 0..1
    composition_chance: float  # root mean square of composition under random rotations
    positivity: float  # Σ Re λ / Σ |λ| of W_U W_OV^late W_OV^early W_E, −1..1
    previous_token: float  # previous-token score of A^late A^early on held-out text, 0..1
    peak_distance: int  # distance of the largest mean attention, up to half of the window, in tokens
    peak_attention: float  # mean attention at this distance, 0..1
    prefix_matching: float  # of A^late A^early on repeated random tokens, 0..1
    cost_nats: float  # loss on held-out text without the path − loss with it
    cost_error_nats: float  # standard error over documents
