"""Evaluate a model during training, always in float32 and on the same windows."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from pathsum.behavior.in_context import in_context_loss_drop
from pathsum.behavior.induction import copying, prefix_matching, repeat_losses
from pathsum.behavior.positional import previous_token
from pathsum.core.threads import in_threads
from pathsum.model.transformer import Transformer
from pathsum.records.evaluation import Evaluation
from pathsum.text.repeated import repeated_random

_CHUNK = 4  # windows per forward pass, so that their float32 logits (batch × pos × vocab) stay in the cache
REPEATED_WINDOWS, REPEATED_SEED = 16, 20_211_222
TRACED = 16  # held-out windows on which previous-token attention is measured


def repeats(n_ctx: int, present: Float[Tensor, "vocab"]) -> tuple[Int[Tensor, "copies pos"], int]:
    """Return the windows of repeated random tokens of all evaluations, and the size of their block. They choose heads,
    and judge nothing."""
    generator = torch.Generator().manual_seed(REPEATED_SEED)
    return repeated_random(REPEATED_WINDOWS, n_ctx, len(present), generator, present)


@torch.no_grad()
def evaluate(
    model: Transformer,
    windows: Int[Tensor, "batch window"],
    repeated: Int[Tensor, "copies pos"],
    block: int,
    step: int,
    tokens_seen: int,
) -> Evaluation:
    """Measure losses, in-context loss drop and head scores on held-out ``windows`` and on ``repeated`` random tokens.

    Each of ``windows`` has n_ctx + 1 tokens, so that each input has its target. Each window of ``repeated`` is BOS
    (beginning of sequence), then the same ``block`` random tokens twice. Attention to the previous token is measured on
    the first TRACED held-out windows.
    """
    trace, natural = model.trace(repeated), model.trace(windows[:TRACED, :-1])
    traced, others = _losses(natural.logits, windows[:TRACED]), token_losses(model, windows[TRACED:])
    by_position = torch.cat([traced, others]).mean(0)
    W_U = model.weights().W_U
    repeats = repeat_losses(trace.logits, repeated, block)
    return Evaluation(
        step=step,
        tokens_seen=tokens_seen,
        val_loss_nats=by_position.mean().item(),
        in_context_loss_drop_nats=in_context_loss_drop(by_position),
        repeat_first_loss_nats=repeats.first_nats,
        repeat_second_loss_nats=repeats.second_nats,
        prefix_matching=[prefix_matching(p, block).tolist() for p in trace.patterns],
        previous_token=[previous_token(p).tolist() for p in natural.patterns],
        copying=[copying(o, repeated, W_U, block).tolist() for o in trace.outputs],
        loss_by_position_nats=by_position.tolist(),
    )


def token_losses(model: Transformer, windows: Int[Tensor, "batch window"]) -> Float[Tensor, "batch pos"]:
    """Return the loss of every token of ``windows`` except the first, in nats, as float64 on the CPU."""

    @torch.no_grad()  # threads do not inherit it
    def of(chunk: Tensor) -> Tensor:
        return _losses(model(chunk[:, :-1]), chunk)

    return torch.cat(in_threads(of, windows.split(_CHUNK)))


def _losses(logits: Float[Tensor, "batch pos vocab"], windows: Int[Tensor, "batch window"]) -> Tensor:
    losses = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none")
    return losses.view(logits.shape[:2]).double().cpu()
