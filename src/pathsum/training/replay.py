"""A training step on a GPU, recorded once as a CUDA graph and then replayed, because Python takes longer to launch its
kernels than the GPU to run them."""

import torch
from torch import Tensor
from torch.optim import Optimizer

from pathsum.model.transformer import Transformer
from pathsum.training.step import advance

EAGER = 3  # steps before the recording, which create optimizer states, workspaces of cuBLAS and compiled kernels


class RecordedStep:
    """Do what ``update`` does, with the same weights to the bit, on batches of one shape in a single process."""

    def __init__(self, model: Transformer, opts: list[Optimizer], autocast: bool) -> None:
        self._model, self._opts, self._autocast = model, opts, autocast
        self._steps = 0
        self._graph = torch.cuda.CUDAGraph()
        self._batch: Tensor
        self._loss: Tensor

    def __call__(self, batch: Tensor) -> float:
        """Take one training step on ``batch``. Return the loss before the step, in nats per token."""
        self._steps += 1
        if self._steps <= EAGER:
            return advance(self._model, self._opts, batch, self._autocast).item()
        if self._steps == EAGER + 1:
            self._batch = batch.clone()
            with torch.cuda.graph(self._graph):
                self._loss = advance(self._model, self._opts, self._batch, self._autocast)
        assert batch.shape == self._batch.shape, "expected batches of one shape"
        self._batch.copy_(batch)
        self._graph.replay()
        return self._loss.item()
