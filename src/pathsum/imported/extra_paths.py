"""Paths that begin at a constant instead of a token: positions and biases are a second vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pathsum.circuits.paths import path_sum
from pathsum.core.weights import Weights
from pathsum.model.opened import Extra, Opened
from pathsum.model.transformer import Trace, Transformer


def extra_logits(
    model: Transformer, weights: Weights, kept: Int[Tensor, "n"], tokens: Int[Tensor, "batch pos"], trace: Trace
) -> Float[Tensor, "*batch_pos n"]:
    """Return the logits of the output tokens ``kept``, those of ``weights``, that are due to b_U and to all paths from
    constants; zeros for a model of this project."""
    if not isinstance(model, Opened):
        return weights.W_U.new_zeros(len(kept))
    return sum((extra_paths(extra, weights, tokens, trace) for extra in model.extras()), model.b_U[kept])


def extra_paths(extra: Extra, weights: Weights, tokens: Tensor, trace: Trace) -> Float[Tensor, "batch pos vocab"]:
    """Return the summed logits of all paths from an extra, for the output tokens of ``weights``."""
    n_vectors, n_out = extra.vectors.shape[1], len(weights.W_U)
    size = max(n_vectors, n_out)  # Weights need as many input tokens as output tokens
    W_E, W_U = pad(extra.vectors, (0, size - n_vectors)), pad(weights.W_U, (0, 0, 0, size - n_out))
    alphabet = Weights(W_E, W_U, weights.layers[extra.layer :])
    letters = (torch.arange(tokens.shape[1]) % n_vectors).expand_as(tokens)
    return path_sum(alphabet, letters, trace.patterns[extra.layer :], trace.scales[extra.layer :])[..., :n_out]
