"""A training step on a GPU, recorded once as a CUDA graph and then replayed.

A step of the profile gpu launches about 300 kernels, and Python takes longer to launch them than the GPU to run them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim import Optimizer

from pathsum.model.transformer import Transformer
from pathsum.training.step import advance

_EAGER = 3  # steps before the recording: they create the state of the optimizers, and what the libraries need


class RecordedStep:
    """Do what ``update`` does, on a GPU in a single process. All batches must have the same shape.

    Kernels are those of ``update``, in the same order, so the weights are the same to the bit. The memory of a step
    stays allocated between steps.
    """

    def __init__(self, model: Transformer, opts: list[Optimizer], autocast: bool) -> None:
        self._arguments = model, opts, autocast
        self._taken = 0
        self._graph = torch.cuda.CUDAGraph()
        self._batch: Tensor
        self._loss: Tensor

    def __call__(self, batch: Tensor) -> float:
        """Take one training step on ``batch``. Return the loss before the step, in nats per token."""
        model, opts, autocast = self._arguments
        self._taken += 1
        if self._taken <= _EAGER:
            return advance(model, opts, batch, autocast).item()
        if self._taken == _EAGER + 1:
            self._batch = batch.clone()
            with torch.cuda.graph(self._graph):
                self._loss = advance(model, opts, self._batch, autocast)
        self._batch.copy_(batch)
        self._graph.replay()
        return self._loss.item()
