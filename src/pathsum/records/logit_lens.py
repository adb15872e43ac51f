"""Loss by logit lens after each layer (docs/framework.md §3.17)."""

from pathsum.records.registry import record


@record("lens", "loss by logit lens after each layer", "loss of softmax(W_U s x_l)", "circuits/logit_lens.py")
class LensRow:
    """The held-out loss, in nats per token, if the residual stream after the first ``layers`` layers is unembedded
    through the final norm."""

    layers: int  # layers before the unembedding; 0: the embedding alone
    loss_nats: float
    low: float  # 95 % bootstrap over documents
    high: float
