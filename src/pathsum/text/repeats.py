"""The weights of targets in the training loss, by which a model can be led to induction (``train.repeat_weight``)."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor


def completes_a_repeat(windows: Int64[Tensor, "batch pos"]) -> Bool[Tensor, "batch n"]:
    """Return whether each target and the token before it form a pair that has occurred earlier in its window."""
    pairs = windows[:, :-1] * (windows.max() + 1) + windows[:, 1:]
    ascending, places = pairs.sort(dim=1, stable=True)  # equal pairs stay in the order of the window
    again = F.pad(ascending[:, 1:] == ascending[:, :-1], (1, 0))
    return torch.empty_like(again).scatter_(1, places, again)


def repeat_weights(windows: Int64[Tensor, "batch pos"], weight: float) -> Float[Tensor, "batch n"]:
    """Return ``weight`` for each target that completes a repeat and 1 for the others, divided by their mean."""
    weights = torch.where(completes_a_repeat(windows), weight, 1.0)
    return weights / weights.mean()
