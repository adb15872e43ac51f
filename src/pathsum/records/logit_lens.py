"""Loss after each layer."""

from pathsum.records.registry import record


@record("lens", "loss after each layer", "W_U of the residual stream there", "circuits/logit_lens.py")
class LensRow:
    """The held-out loss if the residual stream is unembedded after this many layers; 95 % bootstrap over documents."""

    layers: int  # from 0: the embedding alone
    loss_nats: float
    low: float
    high: float
