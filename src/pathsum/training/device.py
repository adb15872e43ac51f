"""Choice and description of the training device, with its measured peak FLOP/s."""

from __future__ import annotations

import platform
import time
from functools import lru_cache

import torch

from pathsum.probes.evaluation import Device
from pathsum.training import ranks

_SIDE, _ROUNDS = 8192, 20  # of the timed products: large enough to fill any GPU, some milliseconds in all


def choose(wanted: str) -> torch.device:
    """Return the device for ``train.device``: a GPU if there is one, but never Apple's (``TrainConfig`` says why).

    Raises ValueError, with the key, if a GPU is asked for and there is none.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "train.device: expected a GPU (cuda), got none that torch can see; install a CUDA build of torch, or set "
            "train.device=auto (profile=laptop is the one for two cores)"
        )
    return ranks.local_gpu() if wanted != "cpu" and torch.cuda.is_available() else torch.device("cpu")


@lru_cache
def product_dtype(kind: str) -> torch.dtype:
    """Return the fastest type for matrix products of training on a device of this kind ("cpu" or "cuda").

    It is bfloat16 where the hardware multiplies it, and float32 on CPUs that only emulate it, where bfloat16 is 70
    times slower (measured on AVX2).
    """
    hardware = kind != "cpu" or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if hardware else torch.float32


def describe(device: torch.device) -> Device:
    """Describe the device for a model's records, with the measured peak of a GPU.

    The peak of a CPU varies with its load, so that two runs on one machine would differ; bench/ measures it.
    """
    if device.type == "cpu":
        products = str(product_dtype("cpu")).removeprefix("torch.")
        name = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, {products} products"
        return Device(name, ranks.world_size(), None)
    return Device(torch.cuda.get_device_name(device), ranks.world_size(), peak_flops(device, _SIDE))


def peak_flops(device: torch.device, side: int) -> float:
    """Measure the rate of bf16 matrix products alone, in FLOP/s: the best of several rounds."""
    left, right, out = (torch.randn(side, side, device=device).bfloat16() for _ in range(3))
    best = 0.0
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        torch.mm(left, right, out=out)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = max(best, 2 * side**3 / (time.perf_counter() - start))
    return best
